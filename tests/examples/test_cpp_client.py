"""The C++ text compiles, and its states are those of the Python client, in both directions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from lrtflite import Bundle, Learner
from lrtflite.bundle.bundle import INITIAL_FILE
from lrtflite.files.reading import FileSource
from lrtflite.files.tensors import DIGEST, Outgoing, TensorFile, write_tensors
from lrtflite.state.folder import read_state
from lrtflite_cli.group import cli
from scripted_losses import CASES, ENOUGH_LOSS, EPOCHS, EXTRA_STEPS, PASS

TEXT = Path(__file__).parents[2] / "examples" / "cpp.md"
COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")
LABELS = ("cup", 'Täßchen ☕ "x"\\ 𝄞', "pen")

# Checks a bundle; or reads the state of one folder, and commits it to another.
MAIN = """
int main(int argc, char** argv) {
  if (argc == 2) {
    try {
      read_manifest(argv[1]);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s", error.what());
      return 1;
    }
    return 0;
  }
  Shape shape;
  for (int k = 6; k < argc; ++k) shape.push_back(std::stoll(argv[k]));
  const Origin origin{identity_of(argv[1]), argv[2], std::stoll(argv[3]), shape};
  State state, before;
  try {
    if (!StateFolder(argv[4], origin).load(state)) return 2;
    StateFolder to(argv[5], origin);
    to.load(before);
    to.commit(state);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s", error.what());
    return 1;
  }
}
"""

# Prints the steps of a session whose losses are the last arguments.
COUNTING = """
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>
using Floats = std::vector<float>;
STEPS
int main(int argc, char** argv) {
  const auto number = [&](int k) { return std::stoi(argv[k]); };
  const Steps steps(number(1), number(2), number(3), number(4), std::stod(argv[5]));
  Floats losses;
  for (int k = 6; steps.another(losses); ++k) losses.push_back(k < argc ? std::stof(argv[k]) : 0.f);
  std::printf("%zu", losses.size());
}
"""

# The part of TensorFlow Lite's headers that the text uses, which no package here has.
HEADERS = {
    "interpreter.h": """
        #pragma once
        #include <cstddef>
        #include <cstdint>
        #include <memory>
        #include <vector>
        enum TfLiteStatus { kTfLiteOk };
        struct TfLiteIntArray { int size; int data[1]; };
        union TfLitePtrUnion { float* f; uint8_t* uint8; };
        struct TfLiteTensor { TfLiteIntArray* dims; size_t bytes; TfLitePtrUnion data; };
        namespace tflite {
        struct SignatureRunner {
          TfLiteStatus AllocateTensors(), Invoke();
          TfLiteTensor* input_tensor(const char*);
          const TfLiteTensor* output_tensor(const char*) const;
          const std::vector<const char*>& input_names();
          const std::vector<const char*>& output_names();
        };
        struct Interpreter {
          SignatureRunner* GetSignatureRunner(const char*);
          TfLiteStatus AllocateTensors();
        };
        struct FlatBufferModel {
          static std::unique_ptr<FlatBufferModel> BuildFromFile(const char*);
        };
        namespace ops::builtin { struct BuiltinOpResolver {}; }
        struct InterpreterBuilder {
          InterpreterBuilder(const FlatBufferModel&, const ops::builtin::BuiltinOpResolver&);
          TfLiteStatus operator()(std::unique_ptr<Interpreter>*);
        };
        }
    """,
    "interpreter_builder.h": "",
    "kernels/register.h": "",
    "model_builder.h": "",
    "signature_runner.h": "",
}


def blocks(text: str) -> str:
    return "\n".join(re.findall(r"```cpp\n(.*?)```", text, re.DOTALL))


def compiled(code: str, folder: Path, *options: str) -> Path:
    assert COMPILER is not None
    (folder / "client.cc").write_text(code)
    warnings = ["-Wall", "-Wextra", "-Wno-sign-compare", "-Werror"]
    command = [COMPILER, "-std=c++17", *warnings, *options, "client.cc"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return folder / "a.out"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = TEXT.read_text(encoding="utf-8")
    files = text[text.index("## The files of a state") : text.index("## A model, called")]
    return compiled(blocks(files) + MAIN, tmp_path_factory.mktemp("cpp"))


def copy(client: Path, demo: Path, old: Path, new: Path) -> str:
    """Let the C++ client read one folder and commit to another; return its complaint, if any."""
    manifest = Bundle.open(demo).manifest
    origin = [str(demo), manifest.replay_layer, str(manifest.replay_size)]
    shape = map(str, manifest.latent_shape)
    command = [str(client), *origin, str(old), str(new), *shape]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def checked(client: Path, bundle: Path) -> str:
    """Let the C++ client check the files of a bundle; return its complaint, if any."""
    done = subprocess.run([client, bundle], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def facts(learner: Learner, probes: Any) -> tuple[Any, ...]:
    memory = learner.memory
    return (
        learner.probabilities(probes).tolist(),
        memory.codes.tolist(),
        memory.slots.tolist(),
        learner.learned,
        learner.committed.history,
    )


def test_the_whole_text_is_sound(tmp_path: Path) -> None:
    for name, content in HEADERS.items():
        path = tmp_path / "tensorflow" / "lite" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    code = blocks(TEXT.read_text(encoding="utf-8"))
    compiled(code, tmp_path, "-I.", "-fsyntax-only")


def test_a_session_takes_the_steps_that_its_losses_ask_for(tmp_path: Path) -> None:
    text = TEXT.read_text(encoding="utf-8")
    [steps] = [
        block
        for block in re.findall(r"```cpp\n(.*?)```", text, re.DOTALL)
        if "struct Steps {" in block
    ]
    counting = compiled(COUNTING.replace("STEPS", steps), tmp_path)
    for losses, numbers, expected in CASES:
        most, extra = numbers.get("most_steps", 1_000_000), numbers.get("extra_steps", EXTRA_STEPS)
        fixed = min(max(EPOCHS * PASS, numbers.get("least_steps", 1)), most)
        enough = numbers.get("enough_loss", ENOUGH_LOSS)
        words = map(str, (fixed, PASS, most, extra, enough, *losses))
        done = subprocess.run([counting, *words], capture_output=True, text=True, check=True)
        assert int(done.stdout) == expected, (losses, numbers)


def test_states_go_from_python_to_cpp_and_back(client: Path, demo: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Learner.open(demo, tmp_path / "python") as learner:
        shape = learner.bundle.manifest.latent_shape
        quick = learner.training.with_options(epochs=1, least_steps=1)
        for label in LABELS:
            learner.learn_latents(rng.random((30, *shape), np.float32), label, training=quick)
        learner.forget("pen")
        learner.learn_latents(rng.random((30, *shape), np.float32), "pen", training=quick)
        probes = rng.random((5, *shape), np.float32)
        taught = facts(learner, probes)
    assert copy(client, demo, tmp_path / "python", tmp_path / "cpp") == ""
    with Learner.open(demo, tmp_path / "cpp") as learner:
        assert facts(learner, probes) == taught
        learner.learn_latents(rng.random((30, *shape), np.float32), "hat", training=quick)
        learner.undo()
        assert facts(learner, probes) == taught
    said = CliRunner().invoke(cli, ["state", str(tmp_path / "cpp"), "--json"])
    assert [each["label"] for each in json.loads(said.output)["classes"]] == list(LABELS)
    # In the folder of the Python client, whose generation stays for `undo`.
    with Learner.open(demo, tmp_path / "python") as learner:
        learner.learn_latents(rng.random((30, *shape), np.float32), "hat", training=quick)
        later = facts(learner, probes)
    assert copy(client, demo, tmp_path / "cpp", tmp_path / "python") == ""
    with Learner.open(demo, tmp_path / "python") as learner:
        assert facts(learner, probes) == taught
        learner.undo()
        assert facts(learner, probes) == later


@pytest.mark.parametrize("most_inline", [0, 1 << 13])
def test_folded_sessions_go_through_cpp(
    client: Path,
    demo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_inline: int,
) -> None:
    monkeypatch.setattr("lrtflite.state.history.BLOCK", 1)
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE_HISTORY", most_inline)
    rng = np.random.default_rng(0)
    with Learner.open(demo, tmp_path / "python", device="kitchen") as learner:
        shape = learner.bundle.manifest.latent_shape
        quick = learner.training.with_options(epochs=1, least_steps=1)
        for label in (*LABELS, "cup"):
            learner.learn_latents(rng.random((3, *shape), np.float32), label, training=quick)
        learner.forget("pen")
        probes = rng.random((5, *shape), np.float32)
        taught = facts(learner, probes)
        assert len(learner.committed.history.folded) == 3
    assert copy(client, demo, tmp_path / "python", tmp_path / "cpp") == ""
    with Learner.open(demo, tmp_path / "cpp") as learner:
        assert facts(learner, probes) == taught
    found = read_state(tmp_path / "cpp").meta
    assert (found.sessions, len(found.history)) == (4, 1)
    # What a client does not know and need not know is dropped at its next write.
    assert found.device is None
    assert found.history[0]["device"] == "kitchen"


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"requires": ["folded", "mood"]}, "it requires mood, which"),
        ({"format": "7"}, "a state of format 7"),
    ],
)
def test_cpp_refuses_what_it_does_not_know_and_does_not_fall_back(
    client: Path, demo: Path, tmp_path: Path, odd: dict[str, Any], said: str
) -> None:
    with Learner.open(demo, tmp_path / "old") as learner:
        shape = learner.bundle.manifest.latent_shape
        learner.learn_latents(np.zeros((3, *shape), np.float32), "cup")
    newest = max((tmp_path / "old").glob("state-*"))
    file = TensorFile(FileSource(newest))
    state = json.dumps({**json.loads(file.meta["state"]), "mood": [1], **odd})
    meta = {"format": odd.get("format", "6"), "state": state}
    arrays = {name: Outgoing.of(file.read(name)) for name in file.entries if name != DIGEST}
    handle = os.open(newest, os.O_WRONLY | os.O_TRUNC)
    write_tensors(handle, meta, arrays)
    os.close(handle)
    assert said in copy(client, demo, tmp_path / "old", tmp_path / "new")
    assert not list((tmp_path / "new").glob("state-*"))


def test_cpp_refuses_a_bundle_without_every_listed_file(
    client: Path, demo: Path, tmp_path: Path
) -> None:
    with Learner.open(demo) as learner:
        shape = learner.bundle.manifest.latent_shape
        learner.learn_latents(np.zeros((3, *shape), np.float32), "cup")
        bundle = learner.ship(tmp_path / "shipped")
    assert checked(client, demo) == ""
    assert checked(client, bundle.path) == ""
    for name in bundle.manifest.files:
        content = (bundle.path / name).read_bytes()
        (bundle.path / name).unlink()
        assert f"no {name} in the bundle" in checked(client, bundle.path)
        for other in (content[:-1], b"x" + content[1:]):
            (bundle.path / name).write_bytes(other)
            assert f"another {name} than the manifest lists" in checked(client, bundle.path)
        (bundle.path / name).write_bytes(content)
    manifest = bundle.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"{INITIAL_FILE}"', f'"../{INITIAL_FILE}"'))
    assert f"an invalid file name: ../{INITIAL_FILE}" in checked(client, bundle.path)


def test_cpp_finds_damage_and_other_bundles(
    client: Path, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE", 0)  # a file of tensors
    old, new = tmp_path / "old", tmp_path / "new"
    with Learner.open(demo, old) as learner:
        shape = learner.bundle.manifest.latent_shape
        for label in LABELS:
            learner.learn_latents(np.random.default_rng(0).random((9, *shape), np.float32), label)
        assert "is in use" in copy(client, demo, old, new)
    for kind in ("tensors", "rows", "state"):
        path = max(old.glob(f"{kind}-*"))
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert copy(client, demo, old, new) == ""
        assert read_state(new).meta.labels[:3] == (*LABELS[:2], None)
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert copy(client, demo, old, new) == ""
    assert read_state(new).meta.labels[:3] == LABELS
    other = shutil.copytree(demo, tmp_path / "other")
    with (other / "head.tflite").open("ab") as file:
        file.write(bytes(4))
    manifest = Bundle.open(demo).manifest
    words = [manifest.replay_layer, str(manifest.replay_size), str(old), str(tmp_path / "third")]
    command = [str(client), str(other), *words, *map(str, manifest.latent_shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a state of another bundle" in done.stderr
