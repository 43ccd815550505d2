"""HTML for notebooks: every number, in tables that parse, with nothing unescaped."""

import math
import re
from fractions import Fraction
from html.parser import HTMLParser

import pytest

from discreet import _html
from discreet._exact import fraction
from discreet._unit import Unit
from discreet.accounting import Gaussian, Interval, PoissonSampled, PrivacyLoss, Pure

SGD = 1000 * PoissonSampled(Gaussian(1), 0.01) + Pure(0.5)


class Reader(HTMLParser):
    """Checks that tags pair up, and collects the cells of each row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.caption = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "caption":
            self.caption += data
        else:
            self.rows[-1].append(data)


def shown(value: object) -> Reader:
    text = value._repr_html_()  # type: ignore[attr-defined]  # what notebooks call
    assert not re.search(r"(?<!-)color|background:(?!none)|https?:|<script|class=", text)
    return Reader(text)


def test_a_loss_shows_its_terms() -> None:
    seen = shown(SGD.for_unit(Unit("person_id")))
    assert "person_id" in seen.caption
    assert seen.rows == [
        ["times", "term"],
        ["1 ×", "Pure(epsilon=0.5)"],
        ["1,000 ×", "PoissonSampled(privacy_loss=Gaussian(multiplier=1), rate=0.01)"],
    ]


def test_nothing_is_shown_as_nothing() -> None:
    assert shown(PrivacyLoss()).rows[-1] == ["nothing"]


def test_a_loss_is_shown_without_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PoissonSampled, "pairs", None)
    monkeypatch.setattr(PoissonSampled, "renyi", None)
    assert len(shown(SGD).rows) == 3


def test_names_are_escaped() -> None:
    seen = shown((1 * Pure(1)).for_unit(Unit("<script>alert(1)</script>&amp;")))
    assert "<script>alert(1)</script>&amp;" in seen.caption


def test_an_explanation_marks_its_best() -> None:
    said = SGD.explain(1e-5)
    seen = shown(said)
    assert seen.caption == "epsilon at delta = 1e-05"
    named = {row[0]: row[1] for row in seen.rows[1:]}
    assert set(named) == {*said.figures, *said.silent}
    assert [name for name, value in named.items() if "best" in value] == [said.best]
    for name, epsilon in said.figures.items():
        written = Fraction(named[name].removesuffix(" ← best"))
        assert fraction(epsilon) <= written <= fraction(epsilon) * Fraction(100001, 100000)


def test_an_explanation_without_figures() -> None:
    said = (1 * Gaussian(1)).explain()
    assert said.best is None
    assert len(shown(said).rows) == 1 + len(said.silent)


def test_an_interval_shows_both_ends() -> None:
    seen = shown(Interval(1.23456789, 1.23456789, 0.001))
    assert seen.rows == [["at least", "1.23456"], ["at most", "1.23457"]]
    assert "farther" not in seen.caption
    wide = shown(Interval(0.0, 2.0, 0.001))
    assert wide.rows == [["at least", "0"], ["at most", "2"]]
    assert "farther apart than was wanted" in wide.caption
    assert shown(Interval(0.0, math.inf, 0.001)).rows[1] == ["at most", "infinite"]


def test_a_profile_and_a_trade_off() -> None:
    profile, errors = SGD.profile(), SGD.trade_off()
    assert len(shown(profile).rows) == 1 + len(profile.table())
    assert len(shown(errors).rows) == 1 + len(errors.table())


@pytest.mark.parametrize("number", [1e-300, 0.1, 1 / 3, 123456.7, 1e300])
@pytest.mark.parametrize("digits", [1, 3, 6])
def test_numbers_are_rounded_to_their_side(number: float, digits: int) -> None:
    low, high = _html.down(number, digits), _html.up(number, digits)
    assert Fraction(low) <= fraction(number) <= Fraction(high)
    assert float(high) <= float(low) * (1 + 11 * 10**-digits)


def test_explanations_as_text_have_two_columns() -> None:
    lines = str(SGD.explain(1e-5)).splitlines()
    assert any(re.fullmatch(r"  privacy loss distribution  \d\S+ +<- best", one) for one in lines)
    assert len({re.match(r"  .*?\S  +(?=\S)", one).end() for one in lines[1:]}) == 1  # type: ignore[union-attr]  # every line has two
