"""Convert a `tf.Module` to a `.tflite` file of built-in ops, or raise an error naming others."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite.errors import ConversionError
from lrtflite.runtime.flatbuffer import custom_ops, read_ops

_REWRITE = "write the head or the network with other ops"


def to_tflite(module: tf.Module, signatures: Mapping[str, Any], *, variables: bool) -> bytes:
    """Convert the signatures of a module.

    With `variables`, each `tf.Variable` stays a variable, shared by all signatures. Otherwise the
    values become constants, so that the converter can fold Batch Norm.
    """
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=dict(signatures))
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        converter.experimental_enable_resource_variables = variables
        try:
            content = bytes(converter.convert())
        except Exception as error:
            # The converter's own exception type is private, and its message runs to several pages.
            raise ConversionError(_explain(error)) from error
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        if others := custom_ops(path):
            raise ConversionError(
                f"Expected built-in TFLite ops only, got {', '.join(others)}", _REWRITE
            )
    return content


def op_names(path: Path) -> list[str]:
    """Return the ops of a `.tflite` file by name and version, such as `CONV_2D v3`."""
    names = {value: name for name, value in vars(schema.BuiltinOperator).items() if name.isupper()}
    return [op.custom or f"{names[op.code]} v{op.version}" for op in read_ops(path)]


def _explain(error: Exception) -> str:
    text = str(error)
    flex = re.search(r"TF Select ops: ([^\n]*)", text)
    custom = re.search(r"Custom ops: ([^\n]*)", text)
    names = ", ".join(match[1].strip() for match in (flex, custom) if match)
    if names:
        return (
            f"Expected built-in TFLite ops only, got ops that need a delegate: {names}; {_REWRITE}"
        )
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return f"The TFLite converter failed: {lines[0]}; {_REWRITE}"
