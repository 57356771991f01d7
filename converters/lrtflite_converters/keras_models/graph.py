"""The layers of a Keras file as one flat list, with models inside models unpacked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lrtflite.arguments import shown
from lrtflite.errors import ModelError
from lrtflite.files.keras import Arrays, KerasFile

# Maximum number of layers, and of models inside each other.
MAX_LAYERS, MAX_DEPTH = 5000, 8
MODELS = ("Functional", "Model", "Sequential")
INPUT = "InputLayer"
# Start of the kind of an operator on tensors, such as x + 1, and of its module in Keras 3.
OPERATOR, OPERATORS = "operator ", "keras.src.ops."


@dataclass(frozen=True)
class Node:
    """A layer with its configuration, its weights, and the nodes that it takes as inputs.

    `numbers` are the other arguments of an operator.
    """

    name: str
    kind: str
    config: Mapping[str, Any]
    weights: Arrays
    inputs: tuple[int, ...]
    registered: str | None = None
    numbers: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


@dataclass(frozen=True)
class Graph:
    """Nodes, each after its inputs. The first is the input; `output` is a node's number.

    `left_out` names layers above the output that are not among the nodes. `made_by` is the tool
    that made the model, where it is known, and `scale` the scaling with which that tool trains.
    """

    name: str
    nodes: tuple[Node, ...]
    output: int
    is_keras_3: bool
    left_out: tuple[str, ...] = ()
    made_by: str = ""
    scale: str | None = None


def read_graph(file: KerasFile) -> Graph:
    """Return the layers of a model, or raise ModelError for a model of another form."""
    reader = _Reader(file)
    try:
        output = reader.model(file.config, "", None, depth=0)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelError(
            f"Expected the configuration of a Keras model in {file.name}, got a damaged one "
            f"({type(error).__name__}: {shown(str(error))})",
            "save the model again",
        ) from error
    if not reader.nodes or reader.nodes[0].kind != INPUT:
        raise ModelError(
            f"Expected a model with an input of known size in {file.name}, got one without",
            "build it with keras.Input((size, size, 3)) and save it again",
        )
    name = str(file.config["config"].get("name", "model"))
    return Graph(name, tuple(_distinct(reader.nodes)), output, file.is_keras_3)


class _Reader:
    """Collects nodes; models are numbered by the node that their output comes from."""

    def __init__(self, file: KerasFile) -> None:
        self.file = file
        self.nodes: list[Node] = []

    def model(
        self, found: Mapping[str, Any], folder: str, source: int | None, *, depth: int
    ) -> int:
        """Add the layers of a model above the node `source`; return the node of its output."""
        kind = found["class_name"]
        if kind not in MODELS:
            raise ModelError(
                f"Expected a functional or sequential model in {self.file.name}, got {shown(kind)}",
                "build the model from Keras's own layers with keras.Model or keras.Sequential",
            )
        if depth > MAX_DEPTH:
            raise ModelError(
                f"Expected at most {MAX_DEPTH} models inside each other, got more in "
                f"{self.file.name}",
                "build it from layers",
            )
        config = found["config"]
        layers: Sequence[Mapping[str, Any]] = config["layers"]
        kinds = [(str(each["class_name"]), _name(each)) for each in layers]
        # Sequential models do not count their input among their layers.
        paths = self.file.of_layers(folder, kinds)
        if kind == "Sequential":
            return self._sequence(config, layers, paths, source, depth)
        return self._functional(config, layers, paths, source, depth)

    def _sequence(
        self,
        config: Mapping[str, Any],
        layers: Sequence[Mapping[str, Any]],
        paths: Sequence[str],
        source: int | None,
        depth: int,
    ) -> int:
        for layer, path in zip(layers, paths):
            if layer["class_name"] == INPUT and source is not None:
                continue
            is_first = source is None and not self.nodes
            if is_first and layer["class_name"] not in (INPUT, *MODELS):
                source = self._input(layer["config"].get("batch_input_shape"), config)
            source = self._add(layer, path, () if source is None else (source,), depth)
        if source is None:
            raise ModelError(
                f"Expected layers in {self.file.name}, got an empty model", "add layers to it"
            )
        return source

    def _functional(
        self,
        config: Mapping[str, Any],
        layers: Sequence[Mapping[str, Any]],
        paths: Sequence[str],
        source: int | None,
        depth: int,
    ) -> int:
        entry = self._one(config["input_layers"], "input")
        exit_ = self._one(config["output_layers"], "output")
        made: dict[str, int] = {}
        waiting = list(zip(layers, paths))
        while waiting:
            late = []
            for layer, path in waiting:
                name, below = _name(layer), self._below(layer)
                if name == entry and source is not None:
                    made[name] = source
                elif all(each in made for each in below):
                    made[name] = self._add(layer, path, [made[each] for each in below], depth)
                else:
                    late.append((layer, path))
            if len(late) == len(waiting):
                name = _name(late[0][0])
                raise ModelError(
                    f"Expected layers that lead from the input to the output in "
                    f"{self.file.name}, got {name}, whose input is missing",
                    "save the model again",
                )
            waiting = late
        return made[exit_]

    def _add(self, layer: Mapping[str, Any], path: str, inputs: Sequence[int], depth: int) -> int:
        if layer["class_name"] in MODELS:
            source = inputs[0] if inputs else None
            return self.model(layer, f"{path}/", source, depth=depth + 1)
        if layer["class_name"] == INPUT and self.nodes:
            raise ModelError(
                f"Expected a model with one input in {self.file.name}, got several "
                f"({_name(layer)})",
                "build one that takes only the image",
            )
        if len(self.nodes) >= MAX_LAYERS:
            raise ModelError(
                f"Expected at most {MAX_LAYERS:,} layers in {self.file.name}, got more",
                "use a smaller model",
            )
        registered, kind = layer.get("registered_name"), str(layer["class_name"])
        numbers = _numbers(layer)
        # An .h5 file has no modules, but layers take no numbers.
        is_operator = bool(numbers) or str(layer.get("module")).startswith(OPERATORS)
        self.nodes.append(
            Node(
                name=_name(layer),
                kind=OPERATOR + kind if is_operator else kind,
                config=dict(layer["config"]),
                weights=self.file.weights(path),
                inputs=tuple(inputs),
                registered=registered if isinstance(registered, str) else None,
                numbers=numbers,
            )
        )
        return len(self.nodes) - 1

    def _input(self, shape: Any, config: Mapping[str, Any]) -> int:
        """Add the input of a sequential model that does not list one."""
        shape = shape or config.get("build_input_shape")
        self.nodes.append(Node("input", INPUT, {"batch_shape": shape}, (), ()))
        return 0

    def _one(self, found: Any, what: str) -> str:
        """Return the layer at a model's only input or output."""
        if isinstance(found, list) and found and isinstance(found[0], str):
            return found[0]
        references = list(found.values()) if isinstance(found, dict) else found
        if len(references) != 1:
            raise ModelError(
                f"Expected a model with one {what} in {self.file.name}, got {len(references)}",
                f"build one with a single {what}",
            )
        return str(references[0][0])

    def _below(self, layer: Mapping[str, Any]) -> list[str]:
        """Return the names of a layer's inputs."""
        calls = layer.get("inbound_nodes", [])
        if len(calls) > 1:
            raise ModelError(
                f"Expected each layer once in {self.file.name}, got {_name(layer)}, which is "
                f"called {len(calls)} times",
                "give each place a layer of its own",
            )
        return [name for call in calls for name in _references(call)]


def _references(call: Any) -> list[str]:
    """Return the layers that a call takes tensors from, in the form of Keras 2 or Keras 3."""
    if isinstance(call, dict):  # Keras 3
        found, waiting = [], [call.get("args", []), call.get("kwargs", {})]
        while waiting:
            each = waiting.pop(0)
            if isinstance(each, dict) and each.get("class_name") == "__keras_tensor__":
                found.append(str(each["config"]["keras_history"][0]))
            elif isinstance(each, dict):
                waiting[:0] = each.values()
            elif isinstance(each, list):
                waiting[:0] = each
        return found
    if call and isinstance(call[0], str):
        return [call[0]]
    return [str(each[0]) for each in call]


def _numbers(layer: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the numbers among the arguments of an operator of Keras 3."""
    calls = [call for call in layer.get("inbound_nodes", []) if isinstance(call, dict)]
    return tuple(float(x) for call in calls for x in call["args"] if isinstance(x, (int, float)))


def _name(layer: Mapping[str, Any]) -> str:
    return str(layer.get("name") or layer["config"]["name"])


def _distinct(nodes: Sequence[Node]) -> list[Node]:
    """Give each node a name of its own, which can also be part of a tensor's name."""
    found, taken = [], Counter[str]()
    for node in nodes:
        name = "".join(c if c.isascii() and (c.isalnum() or c in "_/") else "_" for c in node.name)
        name = name if name[:1].isalpha() else f"layer_{name}"
        key = name.replace("/", "_").lower()
        taken[key] += 1
        if taken[key] > 1:
            name = f"{name}_again{taken[key]}"
        found.append(replace(node, name=name))
    return found
