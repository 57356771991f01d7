"""A plugin as another project would write it: a policy, a codec, a head and a network of its own.

Heads and networks are named, not imported: a device loads this module too, and has no TensorFlow.
"""

from lrtflite.networks.architecture import NETWORKS
from lrtflite.replay.codecs import CODECS
from lrtflite.replay.policies import POLICIES
from lrtflite_converters.heads import HEADS
from lrtflite_converters.request.strategies import STRATEGIES
from sample_plugin.codec import Bytes
from sample_plugin.network_names import TWO_UNITS
from sample_plugin.policy import ring
from sample_plugin.strategy import NEAREST_MEAN

POLICIES.register("ring", ring)
CODECS.register("bytes", Bytes)
HEADS.register("nearest-mean", "sample_plugin.head:NearestMean")
STRATEGIES.register("nearest-mean", NEAREST_MEAN)
NETWORKS.register("two-units", TWO_UNITS)
