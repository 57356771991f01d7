"""Adding pictures, folders, projects and videos; saving and loading."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from page_films import draw_things
from page_server import Served
from page_steps import teach_new, wait_for_labels, wait_until_learned

Film = Callable[[str, int], Path]
Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a folder of pictures for each of two things."""
    folder = tmp_path_factory.mktemp("things")
    draw_things(folder)
    (folder / "notes.txt").write_text("not a picture")
    return folder


def open_add(page: Any) -> None:
    page.locator("[data-part=add]").click()


def test_pictures_of_one_thing_ask_for_its_name(
    serve: Serve, things: Path, tmp_path: Path, visit: Any
) -> None:
    served = serve()
    page = visit(served.url, None)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8 no picture")
    open_add(page)
    pictures = [*sorted((things / "cup").iterdir()), broken]
    page.locator("input[data-part=files]").set_input_files(pictures)
    learn = page.get_by_role("button", name="Learn 1 thing")
    assert learn.is_disabled()
    page.get_by_label("Name", exact=True).fill("cup")
    learn.click()
    wait_until_learned(page, "cup")
    page.get_by_text("1 file was left out").wait_for()
    assert page.get_by_text("broken.jpg").is_visible()
    [entry] = served.ask("GET", "/classes")["classes"]
    assert entry["pictures"] == len(pictures) - 1


def test_dropped_pictures_are_previewed(serve: Serve, things: Path, visit: Any) -> None:
    served = serve()
    page = visit(served.url, None)
    page.evaluate(
        """text => {
            const bytes = Uint8Array.from(atob(text), x => x.charCodeAt(0));
            const dropped = new DataTransfer();
            dropped.items.add(new File([bytes], 'a.jpg', { type: 'image/jpeg' }));
            for (const name of ['dragover', 'drop']) {
                const kind = { dataTransfer: dropped, bubbles: true, cancelable: true };
                document.body.dispatchEvent(new DragEvent(name, kind));
            }
        }""",
        base64.b64encode((things / "cup" / "0.jpg").read_bytes()).decode(),
    )
    page.get_by_text("1 picture · new").wait_for()
    page.get_by_label("Name", exact=True).fill("cup")
    page.get_by_role("button", name="Learn 1 thing").click()
    wait_until_learned(page, "cup")
    assert served.labels == ["cup"]


def test_a_folder_is_a_thing_for_each_folder_in_it(serve: Serve, things: Path, visit: Any) -> None:
    served = serve()
    page = visit(served.url, None)
    open_add(page)
    page.locator("input[data-part=folder]").set_input_files(things)
    page.get_by_text("1 file was left out").wait_for()
    page.get_by_role("button", name="Learn 2 things").click()
    page.get_by_text("Learned 2 things.").wait_for()
    assert sorted(served.labels) == ["cup", "phone"]


def pack(path: Path, things: Path, *, kind: str) -> Path:
    """Write a project of Teachable Machine, its pictures stored."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr("manifest.json", json.dumps({"type": kind}))
        for picture in sorted(things.rglob("*.jpg")):
            file.write(picture, f"{picture.parent.name}-!-{picture.name}")
    return path


def pack_folders(path: Path, things: Path) -> Path:
    """Write a zip of folders in a folder, deflated, with what macOS adds."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("__MACOSX/things/cup/._0.jpg", "no picture")
        for picture in sorted(things.rglob("*.jpg")):
            file.write(picture, Path("things") / picture.relative_to(things))
    return path


@pytest.mark.parametrize("is_project", [True, False])
def test_a_project_is_read_from_its_zip(
    serve: Serve, things: Path, tmp_path: Path, visit: Any, is_project: bool
) -> None:
    if is_project:
        project = pack(tmp_path / "project.tm", things, kind="image")
    else:
        project = pack_folders(tmp_path / "things.zip", things)
    served = serve()
    page = visit(served.url, None)
    open_add(page)
    page.locator("input[data-part=files]").set_input_files(project)
    page.get_by_role("button", name="Learn 2 things").click()
    page.get_by_text("Learned 2 things.").wait_for()
    assert sorted(served.labels) == ["cup", "phone"]


def test_a_damaged_zip_and_a_text_are_refused(serve: Serve, tmp_path: Path, visit: Any) -> None:
    zipped, text = tmp_path / "project.tm", tmp_path / "notes.txt"
    zipped.write_bytes(b"PK\x03\x04 cut off")
    text.write_text("no picture")
    served = serve()
    page = visit(served.url, None)
    open_add(page)
    page.locator("input[data-part=files]").set_input_files(zipped)
    page.get_by_text("project.tm cannot be read").wait_for()
    sounds = pack(tmp_path / "sounds.tm", tmp_path, kind="audio")
    page.locator("input[data-part=files]").set_input_files(sounds)
    page.get_by_text("sounds.tm cannot be read").wait_for()
    page.locator("input[data-part=files]").set_input_files(text)
    page.get_by_text("There is no picture or video in it").wait_for()
    assert served.labels == []


def test_more_things_than_slots_are_refused_before_any_is_learned(
    serve: Serve, things: Path, tmp_path: Path, visit: Any
) -> None:
    picture = (things / "cup" / "0.jpg").read_bytes()
    for number in range(8):
        (tmp_path / "many" / f"thing {number}").mkdir(parents=True)
        (tmp_path / "many" / f"thing {number}" / "a.jpg").write_bytes(picture)
    served = serve()
    page = visit(served.url, None)
    open_add(page)
    page.locator("input[data-part=folder]").set_input_files(tmp_path / "many")
    page.get_by_text("2 things too many: there is room for 6 new ones").wait_for()
    assert page.get_by_role("button", name="Learn 8 things").is_disabled()
    for number in (0, 1):
        page.get_by_label(f"Learn thing {number}", exact=True).uncheck()
    assert page.get_by_role("button", name="Learn 6 things").is_enabled()
    page.get_by_role("button", name="Cancel").click()
    assert served.labels == []


def test_a_video_is_read_as_frames(serve: Serve, film: Film, tmp_path: Path, visit: Any) -> None:
    video = tmp_path / "cup.webm"
    words = ["-i", str(film("cup-1", 0)), "-t", "2", "-c:v", "libvpx", "-b:v", "1M", str(video)]
    subprocess.run(["ffmpeg", "-loglevel", "error", "-y", *words], check=True)
    served = serve()
    page = visit(served.url, None)
    open_add(page)
    page.locator("input[data-part=files]").set_input_files(video)
    page.get_by_label("Name", exact=True).fill("cup")
    page.get_by_role("button", name="Learn 1 thing").click()
    wait_until_learned(page, "cup")
    [entry] = served.ask("GET", "/classes")["classes"]
    assert 8 <= entry["pictures"] <= 100


def test_a_state_is_saved_and_loaded(
    serve: Serve, film: Film, tmp_path: Path, noisy_visit: Any
) -> None:
    served, other = serve(), serve()
    page = noisy_visit(served.url, film("cup-1", 0))
    teach_new(page, "cup")
    page.locator("[data-action=files]").click()
    with page.expect_download() as found:
        page.get_by_role("button", name="Save: What it learned").click()
    saved = tmp_path / "state.zip"
    found.value.save_as(saved)

    page = noisy_visit(other.url, None)
    page.locator("[data-action=files]").click()
    wrong = tmp_path / "wrong.zip"
    wrong.write_bytes(b"no zip")
    page.locator("input[data-part=state]").set_input_files(wrong)
    page.locator("dialog p[role=status]", has_text="zip").wait_for()
    assert other.labels == []
    page.locator("input[data-part=state]").set_input_files(saved)
    wait_for_labels(page, ["cup"])


def test_kept_pictures_are_moved_deleted_and_learned_again(
    serve: Serve, things: Path, visit: Any
) -> None:
    served = serve("--keep-pictures")
    page = visit(served.url, None)
    open_add(page)
    page.locator("input[data-part=folder]").set_input_files(things)
    page.get_by_role("button", name="Learn 2 things").click()
    page.get_by_text("Learned 2 things.").wait_for()
    before = {entry["label"]: entry["kept"] for entry in served.ask("GET", "/classes")["classes"]}
    page.get_by_role("button", name="Options for cup").click()
    page.get_by_role("button", name="Look at its").click()
    pictures = page.locator("dialog .tray-item")
    pictures.first.click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("Deleted 1 picture.").wait_for()
    pictures.first.click()
    page.get_by_label("Move to …").select_option(label="phone")
    page.get_by_text("Moved 1 picture to phone.").wait_for()
    after = {entry["label"]: entry["kept"] for entry in served.ask("GET", "/classes")["classes"]}
    assert after == {"cup": before["cup"] - 2, "phone": before["phone"] + 1}
    page.get_by_role("button", name="Learn again").click()
    wait_until_learned(page, "cup")


def test_the_check_up_says_what_to_improve(
    serve: Serve, things: Path, tmp_path: Path, visit: Any
) -> None:
    few = tmp_path / "few"
    for label in ("cup", "phone"):
        (few / label).mkdir(parents=True)
        shutil.copy(things / label / "0.jpg", few / label)
    served = serve("--keep-pictures")
    page = visit(served.url, None)
    open_add(page)
    page.locator("input[data-part=folder]").set_input_files(few)
    page.get_by_role("button", name="Learn 2 things").click()
    page.get_by_text("Learned 2 things.").wait_for()
    page.locator("[data-action=check]").click()
    page.locator("dialog .finding, dialog .clear").first.wait_for()
    told = page.locator("dialog .finding p").all_text_contents()
    assert told == [action["summary"] for action in served.ask("GET", "/diagnosis")["actions"]]
    assert told, "one picture of a thing is not enough"
