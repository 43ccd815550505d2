"""Each client's reports by every script of words, against its law and its worst ratio."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet.local import client
from discreet.local.client import _bits, _means, _randomized_response, _unary, _values
from discreet.noise import Bits
from tests.local import kit
from tests.local.kit import Law, law_of, outcome, worst
from tests.noise.walk import Tree, assert_exact, walk

HALF, THREE = Fraction(1, 2), Fraction(3)

DECIDED: dict[str, tuple[Any, int]] = {  # decided by this many words of 2 bits
    "two coins": (client.RandomizedResponse(THREE, 2), 2),
    "randomized response": (client.RandomizedResponse(Fraction(5), 4), 2),
    "unary": (client.UnaryEncoding(HALF, HALF / 2, 3), 4),
    "symmetric unary": (client.UnaryEncoding(HALF * 3 / 2, HALF / 2, 3), 4),
    "hadamard": (client.HadamardResponse(THREE, 3), 2),
    "hashing": (client.LocalHashing(THREE, 4, 2), 3),
    "sketch": (client.CountMeanSketch(HALF, HALF / 2, 4, 2), 4),
    "rappor": (client.Rappor(HALF * 3 / 2, HALF * 3 / 2, 2), 5),
    "duchi": (client.DuchiMean(THREE, 0.0, 4.0), 2),
    "piecewise": (client.PiecewiseMean(THREE, 4, 2, 0.0, 4.0), 4),
}

OPEN: dict[str, tuple[Any, int, float]] = {  # words of 4 bits, and what they leave undecided
    "randomized response": (client.RandomizedResponse(Fraction(27, 10), 3), 4, 0.02),
    "unary": (client.UnaryEncoding(Fraction(3, 5), Fraction(1, 7), 2), 4, 0.2),
    "hadamard": (client.HadamardResponse(Fraction(27, 10), 3), 4, 0.02),
    "hashing": (client.LocalHashing(Fraction(27, 10), 3, 3), 3, 0.4),
}


@pytest.fixture
def _four_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means on four steps, so that every script can be played."""
    for module in (_values, _means, kit):
        monkeypatch.setattr(module, "STEPS", 4)


def tree(of: Any, value: int, width: int, depth: int) -> Tree[Any]:  # Any: each client
    def draw(source: Bits) -> Any:
        given = of.draw_permanent(value, source) if isinstance(of, client.Rappor) else value
        return outcome(of.draw_reports(given, source))

    return walk(draw, width, depth)


def laws(of: Any, depth: int) -> list[Law]:
    """The laws over all scripts of 2-bit words, for all values."""
    found = [tree(of, value, 2, depth) for value in range(held(of))]
    assert all(each.undecided[-1] == 0 for each in found)
    return [each.decided for each in found]


def held(of: Any) -> int:
    return getattr(of, "categories", 5)


@pytest.mark.usefixtures("_four_steps")
@pytest.mark.parametrize("name", DECIDED)
def test_every_script_gives_the_law(name: str) -> None:
    of, depth = DECIDED[name]
    found = laws(of, depth)
    for value, law in enumerate(found):
        assert law == {report: chance for report, chance in law_of(of, value).items() if chance}


@pytest.mark.usefixtures("_four_steps")
@pytest.mark.parametrize("name", DECIDED)
def test_no_report_tells_more_than_the_worst_ratio(name: str) -> None:
    """And some pair of values attains it."""
    of, depth = DECIDED[name]
    ratio = of.worst_ratio(rounds=1) if isinstance(of, client.Rappor) else of.worst_ratio()
    assert worst(laws(of, depth)) == ratio


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("value", [0, 1])
def test_other_odds_have_their_law_too(
    name: str, value: int, record_property: Callable[[str, object], None]
) -> None:
    of, depth, sliver = OPEN[name]
    law = law_of(of, value)
    assert_exact(tree(of, value, 4, depth), law.__getitem__, sliver, record_property)


@pytest.mark.usefixtures("_four_steps")
@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("randomized response", _randomized_response),
        ("unary", _unary),
        ("piecewise", _means),
        ("hashing", _randomized_response),
    ],
)
def test_more_generous_odds_are_caught(
    name: str, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter more of each coin that tells the truth, and less of each that adds noise."""
    honest = _bits.coins

    def generous(chance: Fraction, count: int, source: Bits) -> _bits.Booleans:
        return honest(chance / 2 if chance < HALF else chance + (1 - chance) / 2, count, source)

    monkeypatch.setattr(module, "coins", generous)
    of, _ = DECIDED[name]
    found = [tree(of, value, 3, 5).decided for value in (0, held(of) - 1)]
    assert worst(found) > of.worst_ratio()


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_rounds_of_one_permanent_answer_together(rounds: int) -> None:
    of = client.Rappor(Fraction(4, 5), Fraction(7, 10), 2)
    both = [kit.rappor(of, value, rounds) for value in (0, 1)]
    assert worst(both) == of.worst_ratio(rounds) < of.worst_ratio()
