"""Values and gradients of the built-in ops against TensorFlow's autodiff, in TF and in TFLite."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lrtflite.runtime.flatbuffer import custom_ops
from lrtflite_converters.gradients import differentiable as ops
from lrtflite_converters.gradients.renorm import Renorm
from lrtflite_converters.gradients.window import Edges
from lrtflite_converters.tflite.convert import to_tflite

LIMITS: dict[str, Any] = {"r_max": 1.25, "d_max": 0.5}


@dataclass(frozen=True)
class Case:
    """An op of ours, its equivalent in plain TensorFlow, and the shapes of its inputs.

    Only the first `differentiated` inputs have gradients.
    """

    name: str
    ours: Callable[..., Any]
    plain: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    differentiated: int

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        # Wide enough to reach both corners of ReLU6.
        return [rng.normal(0.3, 3.0, shape).astype(np.float32) for shape in self.shapes]

    def upstream(self) -> np.ndarray:
        shape = self.plain(*map(tf.constant, self.inputs())).shape
        return np.random.default_rng(99).normal(size=shape).astype(np.float32)

    def run(self, dy: Any, *inputs: Any) -> dict[str, Any]:
        value, pull = self.ours(*inputs)
        gradients = {f"d{i}": gradient for i, gradient in enumerate(pull(dy))}
        return {"value": value, **gradients}

    def expected(self, seed: int = 0) -> dict[str, np.ndarray]:
        inputs = [tf.constant(array) for array in self.inputs(seed)]
        watched = inputs[: self.differentiated]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            value = self.plain(*inputs)
            total = tf.reduce_sum(value * self.upstream())
        gradients = tape.gradient(total, watched)
        named = {f"d{i}": gradient.numpy() for i, gradient in enumerate(gradients)}
        return {"value": value.numpy(), **named}


def renorm_ours(x: Any, gamma: Any, beta: Any, mean: Any, spread: Any) -> Any:
    norm = Renorm.of([x], gamma, beta, mean, tf.square(spread), **LIMITS)

    def pull(dy: Any) -> Any:
        pulled = norm.pull([x], [dy])
        return pulled(x, dy), pulled.dgamma, pulled.dbeta

    return norm(x), pull


def renorm_plain(x: Any, gamma: Any, beta: Any, mean: Any, spread: Any) -> Any:
    """Compute the paper's formula, with no gradient through r and d."""
    batch_mean, batch_variance = tf.nn.moments(x, [0])
    sigma_b, sigma = tf.sqrt(batch_variance + 1e-5), tf.sqrt(tf.square(spread) + 1e-5)
    r = tf.stop_gradient(tf.clip_by_value(sigma_b / sigma, 1 / 1.25, 1.25))
    d = tf.stop_gradient(tf.clip_by_value((batch_mean - mean) / sigma, -0.5, 0.5))
    return gamma * ((x - batch_mean) / sigma_b * r + d) + beta


def activated(activation: ops.Activation) -> Callable[[Any], Any]:
    """Apply an activation whose gradient comes from its value, not from its input."""

    def ours(x: Any) -> Any:
        y = activation.value(x)
        return y, lambda dy: (activation.gate(y, dy),)

    return ours


def pool_ours(x: Any) -> Any:
    y, pull = ops.global_average_pool(x)
    # The gradient is the same for every pixel, and callers multiply an image with it.
    return y, lambda dy: (tf.ones_like(x) * pull(dy)[0],)


def convolution_case(size: tuple[int, int], stride: int, k: int) -> Case:
    return Case(
        f"convolution_{size[0]}x{size[1]}_s{stride}_k{k}",
        lambda x, w: ops.convolution(x, w, stride=stride),
        lambda x, w: tf.nn.conv2d(x, w, stride, "SAME"),
        ((3, *size, 4), (k, k, 4, 5)),
        2,
    )


def depthwise_case(
    size: tuple[int, int], stride: int, k: int, *, count: int = 3, edges: Edges = None
) -> Case:
    rows, columns = edges or ((0, 0), (0, 0))
    padding = "SAME" if edges is None else "VALID"
    return Case(
        f"depthwise_{size[0]}x{size[1]}_s{stride}_k{k}_n{count}" + ("_edges" if edges else ""),
        lambda x, w: ops.depthwise(x, w, stride=stride, edges=edges),
        lambda x, w: tf.nn.depthwise_conv2d(
            tf.pad(x, [[0, 0], rows, columns, [0, 0]]), w, [1, stride, stride, 1], padding
        ),
        ((count, *size, 4), (k, k, 4, 1)),
        2,
    )


CASES = [
    Case("pointwise", ops.pointwise, tf.matmul, ((7, 5), (5, 3)), 2),
    # Even and odd sizes, both strides, other kernels than 3x3.
    *(convolution_case(*c) for c in (((8, 8), 1, 3), ((8, 8), 2, 3), ((7, 5), 2, 3))),
    *(convolution_case(*c) for c in (((6, 7), 2, 5), ((4, 4), 2, 1), ((5, 6), 1, 5))),
    *(depthwise_case(*c) for c in (((8, 8), 1, 3), ((8, 8), 2, 3), ((7, 7), 1, 3))),
    *(depthwise_case(*c) for c in (((9, 5), 2, 3), ((6, 7), 2, 5))),
    depthwise_case((8, 7), 2, 3, edges=((0, 1), (1, 0))),
    # Enough patterns for a product per channel, on small images.
    *(depthwise_case(*c, count=8) for c in (((8, 8), 2, 3), ((4, 4), 1, 3), ((3, 5), 2, 5))),
    depthwise_case((6, 5), 1, 2, count=9),
    depthwise_case((8, 7), 2, 3, count=8, edges=((0, 1), (1, 0))),
    Case("batch_renorm", renorm_ours, renorm_plain, ((40, 6), (6,), (6,), (6,), (6,)), 3),
    Case("linear", activated(ops.linear), tf.identity, ((9, 4),), 1),
    Case("relu", activated(ops.relu), tf.nn.relu, ((9, 4),), 1),
    Case("relu6", activated(ops.relu6), tf.nn.relu6, ((40, 4),), 1),
    Case(
        "global_average_pool",
        pool_ours,
        lambda x: tf.reduce_mean(x, [1, 2]),
        ((3, 5, 4, 6),),
        1,
    ),
    Case(
        "softmax_cross_entropy",
        lambda scores, raw: ops.softmax_cross_entropy(scores, tf.nn.softmax(raw)),
        lambda scores, raw: tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(raw), scores)
        ),
        ((8, 5), (8, 5)),
        1,
    ),
]


def assert_close(found: dict[str, Any], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name, values in expected.items():
        # float32 sums of at most a few hundred terms of size 1, added in another order.
        np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=5e-5, err_msg=name)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_in_tensorflow(case: Case, seed: int) -> None:
    found = case.run(tf.constant(case.upstream()), *map(tf.constant, case.inputs(seed)))
    assert_close(found, case.expected(seed))


@pytest.mark.parametrize(
    ("images", "loops"),
    [((8, 4, 4, 6), False), ((7, 4, 4, 6), True), ((None, 4, 4, 6), True), ((8, 8, 8, 6), True)],
    ids=["small", "few", "any number", "large"],
)
def test_many_small_images_are_multiplied(images: tuple[Any, ...], loops: bool) -> None:
    specs = [tf.TensorSpec(shape, tf.float32) for shape in (images, (3, 3, 6, 1))]
    traced = tf.function(lambda x, w: ops.depthwise(x, w)[0]).get_concrete_function(*specs)
    kinds = {operation.type for operation in traced.graph.get_operations()}
    assert ("DepthwiseConv2dNative" in kinds, "BatchMatMulV2" in kinds) == (loops, not loops)


def test_constant_kernels_are_left_to_delegates() -> None:
    x, kernel = np.ones((8, 4, 4, 6), np.float32), np.ones((3, 3, 6, 1), np.float32)
    traced = tf.function(lambda: ops.depthwise(x, kernel, constant=True)[0])
    kinds = {operation.type for operation in traced.get_concrete_function().graph.get_operations()}
    assert "DepthwiseConv2dNative" in kinds
    assert "BatchMatMulV2" not in kinds


def test_moments_move_as_the_paper_says() -> None:
    x = np.random.default_rng(0).normal(2, 3, (40, 6)).astype(np.float32)
    ones, zeros = np.ones(6, np.float32), np.zeros(6, np.float32)
    norm = Renorm.of([x], ones, zeros, zeros, ones, **LIMITS)
    mean, variance = norm.moved(zeros, ones, rate=0.1)
    np.testing.assert_allclose(mean, 0.1 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.9 + 0.1 * x.var(0, ddof=1), rtol=1e-5)


class AllCases(tf.Module):
    """Return one model with a signature for every case."""

    def signatures(self) -> dict[str, Any]:
        found = {}
        for case in CASES:
            specs = [tf.TensorSpec(case.upstream().shape, tf.float32, "dy")]
            specs += [
                tf.TensorSpec(shape, tf.float32, f"x{i}") for i, shape in enumerate(case.shapes)
            ]
            found[case.name] = tf.function(case.run, input_signature=specs)
        self.kept = found
        return {name: function.get_concrete_function() for name, function in found.items()}


DEVICE = """
import sys
from pathlib import Path
import numpy as np
from lrtflite.runtime.model import Model
path, runtime, inputs, outputs = sys.argv[1:]
model, data, found = Model(Path(path), runtime=runtime), np.load(inputs), {}
for name, signature in model.signatures.items():
    feed = {tensor: data[f"{name}/{tensor}"] for tensor in signature.inputs}
    for key, value in model.run(name, **feed).items():
        found[f"{name}/{key}"] = value
np.savez(outputs, **found)
"""


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ops")
    module = AllCases()
    path = folder / "ops.tflite"
    path.write_bytes(to_tflite(module, module.signatures(), variables=False))
    assert custom_ops(path) == []
    inputs = {}
    for case in CASES:
        for i, array in enumerate(case.inputs()):
            inputs[f"{case.name}/x{i}"] = array
        inputs[f"{case.name}/dy"] = case.upstream()
    np.savez(folder / "inputs.npz", **inputs)
    return path


def test_gradients_in_tflite(converted: Path, runtime: str) -> None:
    inputs, outputs = converted.with_name("inputs.npz"), converted.with_name(f"{runtime}.npz")
    command = [sys.executable, "-c", DEVICE, converted, runtime, inputs, outputs]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(outputs) as archive:
        found = dict(archive)
    for case in CASES:
        prefix = f"{case.name}/"
        mine = {k[len(prefix) :]: v for k, v in found.items() if k.startswith(prefix)}
        assert_close(mine, case.expected())
