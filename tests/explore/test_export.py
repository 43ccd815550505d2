"""The export holds every view, and asks for nothing from elsewhere."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.explore import export, pages
from discreet.explore._page import written


def recorded(folder: Path, name: str) -> dict[str, object]:
    """The object that the page's script defines, read as JSON."""
    text = (folder / "data" / f"{name}.js").read_text(encoding="utf-8")
    body = text.removeprefix("window.discreetRecorded=").rstrip().removesuffix(";")
    quoted = re.sub(r"(^\{|\n)(at|views|outcomes):", r'\1"\2":', body)
    found: dict[str, object] = json.loads(quoted)
    return found


def test_every_view_is_there_and_equals_the_page(exported: Path) -> None:
    page, data = pages.page("survey"), recorded(exported, "survey")
    views, at = data["views"], data["at"]
    assert isinstance(views, list)
    assert isinstance(at, dict)
    assert list(at) == [written(places) for places in page.all_places()]
    for places in page.all_places():
        found = json.loads(json.dumps(asdict(pages.view("survey", places))))
        assert views[at[written(places)]] == found


def test_every_outcome_is_recorded(exported: Path) -> None:
    outcomes = recorded(exported, "survey")["outcomes"]
    assert isinstance(outcomes, dict)
    assert {name: len(each) for name, each in outcomes.items()} == {"flip": 12, "crowd": 324}
    assert {len(drawn) for each in outcomes.values() for drawn in each.values()} == {2}


def test_pages_say_that_they_are_recorded_and_have_the_policy(exported: Path) -> None:
    for page in ("index.html", "survey.html"):
        text = (exported / page).read_text(encoding="utf-8")
        assert "in advance" in text
        assert "script-src 'self'; style-src 'self'" in text.replace("&#39;", "'")
        assert not re.search(r"""(src|href)=["'](https?:)?//""", text)
        assert 'type="module"' not in text
        for _, link in re.findall(r'(src|href)="([^"#]+)"', text):
            assert (exported / link).is_file(), link


def test_only_a_new_or_empty_folder_is_written(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InvalidArgument, match="new or empty"):
        export(tmp_path)
    with pytest.raises(InvalidArgument, match="new or empty"):
        export(tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("below", ["file/site", "x" * 300, "nul\0"])
def test_a_folder_that_cannot_be_made_is_refused_before_any_work(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(*_: object) -> None:
        raise AssertionError("a view was computed")

    monkeypatch.setattr(pages, "view", compute)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(InvalidArgument, match=r"folder = .*; give another one"):
        export(tmp_path / below)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_stopped_export_leaves_no_file(
    error: BaseException, is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the same command can be given again."""

    def stop(*_: object, **__: object) -> None:
        raise error

    place = tmp_path / "site"
    if not is_new:
        place.mkdir()
    monkeypatch.setattr(pages, "view", stop)
    with pytest.raises(type(error) if isinstance(error, OSError) else KeyboardInterrupt):
        export(place, outcomes=1)
    assert list(tmp_path.rglob("*")) == ([] if is_new else [place])


def test_some_outcomes_are_needed(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="outcomes"):
        export(tmp_path / "new", outcomes=0)
    assert not (tmp_path / "new").exists()


def test_every_set_of_questions_has_a_view() -> None:
    """After any questions in any order, the next view is among the exported ones; here for a
    budget of 2."""
    page = pages.page("budget")
    assert page.history is not None
    at = {places[3:] for places in page.all_places() if places[:3] == (0, 1, 0)}
    seen, todo = set(), [page.none_asked]
    while todo:
        counts = todo.pop()
        seen.add(counts)
        for place in range(len(counts)):
            more = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
            asked = [price for price, n in zip(page.prices, more, strict=True) for _ in range(n)]
            if more not in seen and page.history.admits({"limit": 2, "asked": tuple(asked)}):
                todo.append(more)
    assert at == seen
    assert len(seen) == 36


def test_progress_ends_at_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "NAMES", ("linking",))
    steps: list[tuple[int, int]] = []
    export(tmp_path / "site", outcomes=1, progress=lambda *step: steps.append(step))
    done, wholes = zip(*steps, strict=True)
    assert list(done) == sorted(done)
    assert {*wholes} == {done[-1]}
    assert len(done) == 84 + 84  # views and attacks


@pytest.mark.long
def test_all_pages_are_exported(tmp_path: Path) -> None:
    export(tmp_path / "site", outcomes=1)
    for name in pages.NAMES:
        assert (tmp_path / "site" / f"{name}.html").is_file()
        assert recorded(tmp_path / "site", name)["views"]
