"""The description of this plugin's network; imports no TensorFlow."""

from __future__ import annotations

from lrtflite.networks.architecture import Architecture

TWO_UNITS = Architecture(
    name="two-units",
    title="Two units",
    replay_layers=("frames", "first", "second", "pooled"),
    classifier="classes",
    resting_layers=("second", "pooled"),
    lowest_quick="first",
    build="sample_plugin.network:build",
)
