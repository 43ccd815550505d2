"""The explorer as files: every view computed in advance, for any web server or none."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from discreet import _checks, _look
from discreet.errors import InvalidArgument
from discreet.explore import pages
from discreet.explore._page import Experiment, Page, to_json, written
from discreet.explore._rendering import STATIC, index, page_html

OUTCOMES = 8
_LONG = 8  # views in the time of an outcome that trains


def export(
    folder: str | Path,
    *,
    outcomes: int = OUTCOMES,
    progress: Callable[[int, int], object] | None = None,
) -> None:
    """Write the pages into a new or empty folder, with all views and with recorded outcomes.

    The pages need no server: any web server can publish the folder, and ``index.html`` opens from
    the disk. ``outcomes`` is how many random outcomes of each kind are recorded; a page shows them
    in turn. ``progress`` gets the work done and the whole work, from time to time.
    """
    wanted = _checks.positive_count(outcomes=outcomes)
    place = Path(folder)
    with _writing(place):
        is_new = not place.exists()
        if not (is_new or (place.is_dir() and not any(place.iterdir()))):
            raise InvalidArgument(
                f"folder = {str(place)!r} is there already: give a new or empty one"
            )
        (place / "data").mkdir(parents=True)
    try:
        _fill(place, wanted, progress)
    except BaseException:  # Ctrl-C, too: the same command can then be given again
        for made in (place / "data", place / "static"):
            shutil.rmtree(made, ignore_errors=True)
        for name in ("index", *pages.NAMES):
            (place / f"{name}.html").unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):  # somebody else wrote into it
                place.rmdir()
        raise


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Names the folder and the reason where it can't be written."""
    try:
        yield
    except InvalidArgument:
        raise
    except (OSError, ValueError) as error:  # a path may hold a null character
        reason = getattr(error, "strerror", None) or "it can't be written"
        raise InvalidArgument(f"folder = {str(place)!r}: {reason}; give another one") from None


def _fill(place: Path, wanted: int, progress: Callable[[int, int], object] | None) -> None:
    with _writing(place):
        for static in (_look.STATIC, STATIC):
            shutil.copytree(static, place / "static", dirs_exist_ok=True)
    done, whole = 0, sum(_work(page, wanted) for page in pages.all_pages())

    def advance(work: int) -> None:
        nonlocal done
        done += work
        if progress is not None:
            progress(done, whole)

    for page in pages.all_pages():
        data = _data(page, wanted, advance)
        html = page_html(page, is_export=True)
        with _writing(place):
            (place / "data" / f"{page.name}.js").write_text(data, encoding="utf-8")
            (place / f"{page.name}.html").write_text(html, encoding="utf-8")
    with _writing(place):
        (place / "index.html").write_text(index(is_export=True), encoding="utf-8")


def _work(page: Page, outcomes: int) -> int:
    """The work for this page: 1 for a view."""
    views = sum(1 for _ in page.all_places())
    return views + sum(
        _work_of(one) * min(outcomes, one.recorded) * sum(1 for _ in page.own_places(one))
        for one in page.experiments
    )


def _work_of(experiment: Experiment) -> int:
    return _LONG if experiment.busy else 1


def _data(page: Page, outcomes: int, advance: Callable[[int], object]) -> str:
    """The script with the page's views and outcomes. Equal views are written once."""
    numbers: dict[str, int] = {}
    at = {}
    for places in page.all_places():
        text = to_json(pages.view(page.name, places))
        at[written(places)] = numbers.setdefault(text, len(numbers))
        advance(1)

    def draw_outcomes(one: Experiment) -> dict[str, list[object]]:
        asked = [
            places for places in page.own_places(one) for _ in range(min(outcomes, one.recorded))
        ]
        found: dict[str, list[object]] = {written(places): [] for places in asked}
        drawn_now = one.outcomes([page.values(places) for places in asked])
        for places, outcome in zip(asked, drawn_now, strict=True):
            found[written(places)].append(asdict(outcome))
            advance(_work_of(one))
        return found

    recorded = {one.name: draw_outcomes(one) for one in page.experiments}
    views = f"[{','.join(numbers)}]"
    return (
        f"window.discreetRecorded={{at:{_compact(at)},\nviews:{views},\n"
        f"outcomes:{_compact(recorded)}}};\n"
    )


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
