"""Imports between packages, public names, lengths of files, and paths that no text may contain."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STANDARD = frozenset(sys.stdlib_module_names)
OURS = {
    "lrtflite": ROOT / "lrtflite",
    "lrtflite_converters": ROOT / "converters" / "lrtflite_converters",
    "lrtflite_firmware_sim": ROOT / "firmware_sim" / "lrtflite_firmware_sim",
    "lrtflite_cli": ROOT / "cli" / "lrtflite_cli",
    "lrtflite_serve": ROOT / "serve" / "lrtflite_serve",
}
HOST = frozenset({"tensorflow", "tf_keras"})
TFMOT = "tensorflow_model_optimization"
WRITTEN = (
    "lrtflite",
    "converters",
    "firmware_sim",
    "cli",
    "serve",
    "tests",
    "benchmarks",
    "examples",
)
MAX_LINES = 400
# Most modules in a package, and at the top of a distribution.
MAX_MODULES, MAX_TOP_MODULES = 16, 10
# Most lines of a function's body, without its docstring.
MAX_BODY_LINES = 50


@dataclass(frozen=True)
class Rule:
    """Modules that a part may import at once, and those that it may import inside functions."""

    at_once: frozenset[str]
    later: frozenset[str] = frozenset()


# Rules by part. "lrtflite.host" is its own part; "lrtflite" is the device side.
RULES = {
    "lrtflite": Rule(
        frozenset({"numpy", "lrtflite"}),
        frozenset({"PIL", "av", "cryptography", "cv2", "h5py", "picamera2"}),
    ),
    "lrtflite.host": Rule(frozenset({"numpy", "lrtflite", "lrtflite.host", *HOST})),
    "lrtflite_converters": Rule(
        frozenset(
            {
                "numpy",
                "flatbuffers",
                "lrtflite",
                "lrtflite.host",
                "lrtflite_converters",
                *HOST,
                TFMOT,
            }
        )
    ),
    "lrtflite_firmware_sim": Rule(
        frozenset({"numpy", "lrtflite", "lrtflite_firmware_sim"}),
        frozenset({"rich", "matplotlib"}),
    ),
    "lrtflite_firmware_sim.experiment": Rule(
        frozenset({"numpy", "lrtflite", "lrtflite_firmware_sim"}),
        frozenset({"rich", "dask", "distributed", "tomli", "lrtflite_converters"}),
    ),
    "lrtflite_cli": Rule(
        frozenset({"click", "lrtflite", "lrtflite_cli"}),
        frozenset(
            {
                "rich",
                "segno",
                "lrtflite.host",
                "lrtflite_converters",
                "lrtflite_firmware_sim",
                "lrtflite_serve",
            }
        ),
    ),
    "lrtflite_serve": Rule(
        frozenset({"numpy", "lrtflite", "lrtflite_serve", "starlette", "uvicorn", "h11"}),
        frozenset({"PIL", "cryptography", "paho"}),
    ),
}


def sources() -> list[Path]:
    return [path for folder in OURS.values() for path in sorted(folder.rglob("*.py"))]


def part_of(path: Path) -> str:
    if (ROOT / "lrtflite" / "host") in path.parents:
        return "lrtflite.host"
    if (ROOT / "firmware_sim" / "lrtflite_firmware_sim" / "experiment") in path.parents:
        return "lrtflite_firmware_sim.experiment"
    return next(name for name, folder in OURS.items() if folder in path.parents)


def imports(tree: ast.AST, *, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield imported modules, and whether inside a function; skip those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, inside
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole module"
            assert node.module is not None
            yield node.module, inside
        else:
            deeper = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from imports(node, inside=inside or deeper)


def package_of(module: str) -> str:
    names = module.split(".")
    return "lrtflite.host" if names[:2] == ["lrtflite", "host"] else names[0]


Breaches = Iterable[object]


def offenders(paths: list[Path], rule: Callable[[Path], Breaches]) -> dict[str, list[object]]:
    """Return the breaches of a rule by file, without the files that keep it."""
    breaches = {path.relative_to(ROOT).as_posix(): list(rule(path)) for path in paths}
    return {file: lines for file, lines in breaches.items() if lines}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def forbidden_imports(path: Path) -> Iterator[str]:
    rule = RULES[part_of(path)]
    for module, inside in imports(tree_of(path)):
        allowed = STANDARD | rule.at_once | (rule.later if inside else frozenset())
        if package_of(module) not in allowed:
            yield f"{module} {'in a function' if inside else 'at once'}"


def test_arrows_point_one_way() -> None:
    assert offenders(sources(), forbidden_imports) == {}


def rows_of(distribution: str) -> dict[str, int]:
    """Return the packages and single modules of a distribution, with their rows on the page."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition(f"| `{distribution}.` | contents |\n")[2].partition("\n\n")[0]
    rows = [line.partition("|")[2].partition("|")[0] for line in table.splitlines()[1:]]
    return {name: row for row, text in enumerate(rows) for name in re.findall(r"`(\w+)`", text)}


@pytest.mark.parametrize("distribution", ["lrtflite", "lrtflite_converters"])
def test_packages_import_from_rows_above_them(distribution: str) -> None:
    rows, folder = rows_of(distribution), OURS[distribution]

    def upward(path: Path) -> Iterator[str]:
        own = path.relative_to(folder).with_suffix("").parts[0]
        for module, _ in imports(tree_of(path)):
            names = module.split(".")
            if names[0] == distribution and names[1:] and rows[names[1]] > rows[own]:
                yield module

    found = {path.relative_to(folder).with_suffix("").parts[0] for path in folder.rglob("*.py")}
    assert found - {"__init__"} == set(rows)
    assert (
        offenders(
            [p for p in sorted(folder.rglob("*.py")) if p.parent != folder or p.stem != "__init__"],
            upward,
        )
        == {}
    )


def test_packages_can_be_overlooked() -> None:
    crowded = {
        folder.relative_to(ROOT).as_posix(): len(modules)
        for top in OURS.values()
        for folder in (top, *top.rglob("*"))
        if (folder / "__init__.py").is_file()
        and len(modules := [path for path in folder.glob("*.py") if path.stem != "__init__"])
        > (MAX_TOP_MODULES if folder == top else MAX_MODULES)
    }
    assert crowded == {}


def test_keras_is_always_tf_keras() -> None:
    # `keras` and `tf.keras` may be Keras 3, which neither the layers nor tfmot work with.
    other = re.compile(r"\btf\.keras\b|tensorflow\.keras")
    assert offenders(sources(), lambda path: other.findall(path.read_text(encoding="utf-8"))) == {}


def test_the_device_side_is_light() -> None:
    # The other half of the rules: modules that those modules import in turn.
    device = (
        "from lrtflite import *; from lrtflite_firmware_sim import *; "
        "import lrtflite.verification.verify, lrtflite.data"
    )
    assert loaded(device) - loaded("import numpy") == {"lrtflite", "lrtflite_firmware_sim"}


def loaded(script: str) -> set[str]:
    """Return the packages that a script loads, without the standard library."""
    script += "; import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split()) - STANDARD


def texts() -> Iterator[Path]:
    """Yield every file that a reader of the project may open."""
    kinds = {".py", ".md", ".toml", ".json", ".yml", ".yaml", ".cfg", ".txt", ".sh", ""}
    others = (ROOT / name for name in ("tests", "docs", "examples", "benchmarks", "tools"))
    for top in (*OURS.values(), *others):
        for path in sorted(top.rglob("*")):
            if path.is_file() and path.suffix in kinds and "__pycache__" not in path.parts:
                yield path
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml"):
        yield ROOT / name
    yield ROOT / ".ci" / "run"


def test_no_text_names_a_folder_of_one_machine() -> None:
    machine = re.compile(r"(?<![\w.])/(?:home|root|tmp|work|Users|opt|var/folders)/")
    for path in texts():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            assert not machine.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def written(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines from the first statement after the docstring to the last one."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def too_long(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if (lines := len(text.splitlines())) > MAX_LINES:
        yield f"{lines} lines"
    for node in functions(ast.parse(text)):
        if (lines := body_lines(node)) > MAX_BODY_LINES:
            yield f"{node.name}: {lines} lines"


def test_files_and_functions_are_short() -> None:
    assert offenders(written(*WRITTEN), too_long) == {}


def private_members(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each use of a private member of another object or module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if is_private(alias.name):
                    yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call):
            named = ast.unparse(node.func).rpartition(".")[2]
            if named in ("getattr", "setattr", "delattr"):
                for given in node.args:
                    if isinstance(given, ast.Constant) and is_private(last_part(given.value)):
                        yield node.lineno, ast.unparse(node)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def last_part(value: object) -> str:
    return str(value).rpartition(".")[2]


def test_tests_use_public_names() -> None:
    assert offenders(written("tests"), lambda path: private_members(tree_of(path))) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("learner._known.state()", "learner._known"),
        ("self.device._ask", "self.device._ask"),
        ("from x import _y", "x._y"),
        ("monkeypatch.setattr(module, '_LIMIT', 1)", "monkeypatch.setattr(module, '_LIMIT', 1)"),
        ("setattr('package.module._LIMIT', 1)", "setattr('package.module._LIMIT', 1)"),
        ("getattr(x, '_y')", "getattr(x, '_y')"),
    ],
)
def test_private_members_are_noticed(text: str, found: str) -> None:
    assert list(private_members(ast.parse(text))) == [(1, found)]


def test_members_of_its_own_are_not() -> None:
    own = "self._x = cls._y\n_z = x.__enter__\nmonkeypatch.setattr(x, '__enter__', 1)"
    assert list(private_members(ast.parse(own))) == []
