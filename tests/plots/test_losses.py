"""Pictures: their data are the losses' own numbers, and they come out as PNGs without a warning."""

import io
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from discreet import plots
from discreet.accounting import Approximate, Gaussian, PoissonSampled, PrivacyLoss, Pure, Term, Zcdp
from discreet.errors import InvalidArgument
from discreet.plots import _style

SGD = 1000 * PoissonSampled(Gaussian(1), 0.01)
TWO: dict[str, PrivacyLoss | Term] = {"little noise": Gaussian(1), "much noise": 2 * Gaussian(4)}


@pytest.fixture(autouse=True)
def without_a_screen() -> Iterator[None]:
    mpl.use("Agg")
    yield
    pyplot.close("all")


def rendered(ax: Axes) -> bytes:
    file = io.BytesIO()
    ax.get_figure().savefig(file, format="png")  # type: ignore[union-attr]  # it has one
    assert file.getvalue().startswith(b"\x89PNG")
    return file.getvalue()


def line(ax: Axes, name: str) -> tuple[list[float], list[float]]:
    (found,) = [one for one in ax.get_lines() if one.get_label() == name]
    return np.asarray(found.get_xdata()).tolist(), np.asarray(found.get_ydata()).tolist()


def said(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    key = [text.get_text() for text in legend.get_texts()] if legend else []
    return [*key, *(text.get_text() for text in ax.texts)]


def works_alike(draw: Any) -> None:  # Any: a picture with everything but its axes given
    """It draws on the axes it is given, and else on a figure of its own."""
    _, ax = pyplot.subplots()
    before = pyplot.get_fignums()
    assert draw(ax=ax) is ax
    assert pyplot.get_fignums() == before
    assert draw() is not ax
    rendered(ax)


class TestProfile:
    def test_lines_are_the_profiles(self) -> None:
        ax = plots.profile(TWO)
        for name, loss in TWO.items():
            known = (PrivacyLoss() + loss).profile()
            assert line(ax, name) == (list(known.epsilons), list(known.deltas))
        assert rendered(ax)
        assert said(ax) == list(TWO)

    def test_titles_and_axes_name_their_quantities(self) -> None:
        ax = plots.profile(SGD)
        assert ax.get_title(loc="left") == "Privacy profile"
        assert "epsilon" in ax.get_xlabel()
        assert "delta" in ax.get_ylabel()
        assert ax.get_yscale() == "log"
        assert said(ax) == ["1000 * PoissonSampled(Gaussian(1), 0.01)"]

    def test_a_delta_is_marked(self) -> None:
        ax = plots.profile(SGD, delta=1e-5)
        (epsilon,) = [text for text in said(ax) if text.startswith("ε = ")]
        exact = Fraction(epsilon.removeprefix("ε = "))
        assert SGD.epsilon(1e-5) <= exact <= SGD.epsilon(1e-5) * 1.01
        dots = [one for one in ax.get_lines() if one.get_marker() == "o"]
        assert [float(np.asarray(one.get_xdata())[0]) for one in dots] == [SGD.epsilon(1e-5)]

    def test_where_delta_falls_no_more_the_line_goes_on(self) -> None:
        two: dict[str, PrivacyLoss | Term]
        two = {"leaky": 10 * Approximate(0.1, 1e-6), "long": Gaussian(1)}
        ax = plots.profile(two, delta=1e-9)
        across, up = line(ax, "leaky")
        assert across[-1] == ax.get_xlim()[1]
        assert up[-1] == up[-2]
        assert (
            len([text for text in said(ax) if text.startswith("ε = ")]) == 1
        )  # the other has none

    @pytest.mark.parametrize("loss", [PrivacyLoss(), 3 * Pure(0.1), 1 * Zcdp(0.1)], ids=repr)
    def test_losses_of_all_kinds(self, loss: PrivacyLoss) -> None:
        assert rendered(plots.profile(loss))

    def test_axes_are_taken_or_made(self) -> None:
        works_alike(lambda **given: plots.profile(TWO, delta=1e-6, **given))


class TestTradeOff:
    def test_lines_are_the_trade_offs(self) -> None:
        ax = plots.trade_off(TWO)
        for name, loss in TWO.items():
            known = (PrivacyLoss() + loss).trade_off()
            (label,) = [text for text in said(ax) if text.startswith(name)]
            assert [list(side) for side in known.curve()] == list(line(ax, label))
            percent = float(label.removesuffix(" %").split()[-1])
            assert known.advantage <= percent / 100 <= known.advantage + 0.001

    def test_titles_and_axes_name_their_quantities(self) -> None:
        ax = plots.trade_off(SGD)
        assert "type I error" in ax.get_xlabel()
        assert "type II error" in ax.get_ylabel()
        assert ax.get_aspect() == 1
        assert "guessing blindly" in said(ax)
        assert rendered(ax)

    def test_axes_are_taken_or_made(self) -> None:
        works_alike(lambda **given: plots.trade_off(TWO, **given))


class TestComposition:
    @pytest.mark.parametrize("loss", [Pure(0.1), 2 * Gaussian(8), Zcdp(0.01)], ids=repr)
    def test_lines_are_the_explanations(self, loss: PrivacyLoss) -> None:
        counts = [1, 10, 100]
        ax = plots.composition(loss, 1e-6, counts)
        explanations = [(count * loss).explain(1e-6) for count in counts]
        for theorem in explanations[0].figures:
            assert line(ax, theorem) == (counts, [one.figures[theorem] for one in explanations])
        assert rendered(ax)

    def test_each_line_is_named_at_its_end_and_the_best_is_bold(self) -> None:
        ax = plots.composition(Pure(0.1), 1e-6, [1, 10, 100, 1000])
        best = (1000 * Pure(0.1)).explain(1e-6).best
        assert sorted(said(ax)) == sorted(str(one.get_label()) for one in ax.get_lines())
        assert [t.get_text() for t in ax.texts if t.get_fontweight() == "bold"] == [best]
        heights = sorted(text.xy[1] for text in ax.texts)  # type: ignore[attr-defined]  # they are annotations
        assert all(b - a > 0.05 for a, b in pairwise(heights))

    def test_scales_follow_the_numbers(self) -> None:
        near = plots.composition(Gaussian(8), 1e-6, range(1, 6))
        assert (near.get_xscale(), near.get_yscale()) == ("linear", "linear")
        assert near.get_ylim()[0] == 0
        far = plots.composition(Pure(0.1), 1e-6, [1, 1000])
        assert (far.get_xscale(), far.get_yscale()) == ("log", "log")

    def test_a_theorem_that_answers_late_starts_late(self) -> None:
        ax = plots.composition(Approximate(0.1, 1e-7), 3.5e-7, [1, 2, 5])
        assert line(ax, "basic composition")[0] == [1, 2]

    def test_titles_and_axes_name_their_quantities(self) -> None:
        ax = plots.composition(Gaussian(8), 2e-6, [3])
        assert ax.get_title(loc="left") == "What repetition costs: Gaussian(8)"
        assert ax.get_ylabel() == "epsilon (ε) at delta (δ) = 2 × 10⁻⁶"
        assert rendered(ax)

    def test_nothing_is_known(self) -> None:
        assert rendered(plots.composition(Gaussian(8), 0, [1, 2]))

    def test_axes_are_taken_or_made(self) -> None:
        works_alike(lambda **given: plots.composition(Pure(0.1), 1e-6, [1, 2], **given))


class TestRefusing:
    @pytest.mark.parametrize("draw", [plots.profile, plots.trade_off])
    @pytest.mark.parametrize("losses", [3, None, {"a": 0.1}, "Pure(1)", {}], ids=str)
    def test_other_values_are_no_losses(self, draw: Any, losses: object) -> None:
        with pytest.raises(InvalidArgument, match="give"):
            draw(losses)

    @pytest.mark.parametrize("delta", [0, 1, -1, math.nan])
    def test_a_bad_delta(self, delta: float) -> None:
        with pytest.raises(InvalidArgument, match=r"^delta = "):
            plots.profile(Pure(1), delta=delta)

    @pytest.mark.parametrize("counts", [[0], [1.5], [math.nan], []])
    def test_bad_counts(self, counts: list[int]) -> None:
        with pytest.raises(InvalidArgument, match=r"^counts"):
            plots.composition(Pure(1), 1e-6, counts)


class TestStyle:
    @given(st.lists(st.floats(-2, 3), min_size=1, max_size=8), st.floats(0.01, 0.3))
    def test_words_keep_apart_in_their_order(self, wanted: list[float], gap: float) -> None:
        placed = _style.apart(wanted, gap)
        inorder = [place for _, place in sorted(zip(wanted, placed, strict=True))]
        assert all(b - a >= gap * (1 - 1e-9) for a, b in pairwise(sorted(placed)))
        assert inorder == sorted(inorder)
        assert sum(placed) == pytest.approx(sum(wanted), abs=1e-9)

    def test_words_with_room_stay(self) -> None:
        assert _style.apart([0.9, 0.1, 0.5], 0.1) == [0.9, 0.1, 0.5]

    def test_no_line_is_like_another(self) -> None:
        first = [look for look, _ in zip(_style.lines(), range(42), strict=False)]
        assert len(set(first)) == 42

    def test_words_are_legible_on_white(self) -> None:
        """Contrast of 4.5 to 1, as WCAG 2 asks of text."""
        for colour in {colour for (colour, _), _ in zip(_style.lines(), range(7), strict=False)}:
            parts = np.array(to_rgb(colour))
            linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
            assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 4.5

    @pytest.mark.parametrize(
        ("level", "text"),
        [(1e-6, "10⁻⁶"), (2.5e-12, "2.5 × 10⁻¹²"), (0.01, "0.01"), (0, "0")],
    )
    def test_small_numbers(self, level: float, text: str) -> None:
        assert _style.written(level) == text


def test_matplotlib_is_imported_when_it_is_needed() -> None:
    code = "import sys, discreet.plots; print('matplotlib' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'discreet\[plots\]'"):
        plots.profile(Pure(1))


def test_pages_show_the_pictures_that_they_draw() -> None:
    docs = Path(__file__).parents[2] / "docs"
    pages = (docs / "pictures.md", docs / "training.md", docs / "bias.md")
    page = "".join(each.read_text(encoding="utf-8") for each in pages)
    drawn = set(re.findall(r'savefig\("(\w+\.png)"', page))
    assert drawn == set(re.findall(r"\]\(pictures/(\w+\.png)\)", page))
    others = (docs / "explorer.md", docs / "service.md")
    shown = "".join(each.read_text(encoding="utf-8") for each in others)
    photographed = set(re.findall(r"\]\(pictures/([\w-]+\.png)\)", shown))
    assert drawn | photographed == {file.name for file in (docs / "pictures").iterdir()}
