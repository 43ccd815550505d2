"""A sampler's whole tree of choices, walked word by word; and the laws, said a second time."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from itertools import permutations
from math import ceil, comb, factorial, prod
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from flint import arb

from discreet._exact import ball, precision
from discreet.audit import OutOfWords
from discreet.noise import (
    Bits,
    DiscreteLaplaceLaw,
    Law,
    RoundedGaussianLaw,
    Words,
    _affine_quantile,
    _choices,
    _discrete_gaussian,
    _inversion,
    _steps,
)
from discreet.noise._inversion import Inverse

Outcome = TypeVar("Outcome", bound=Hashable)
Real = Fraction | arb
Chance = Callable[[Outcome], Real]  # of each outcome: exact, or a ball at `BITS`

Record = Callable[[str, object], None]

BITS = 512

_CACHES = _inversion._guide, _choices._edges


class Script:
    """`ScriptedBits` without its checks, which take longer than most draws."""

    def __init__(self, words: tuple[int, ...], width: int) -> None:
        self.width = width
        self._words = words
        self._drawn = 0

    def word(self) -> int:
        if self._drawn == len(self._words):
            raise OutOfWords
        self._drawn += 1
        return self._words[self._drawn - 1]

    def words(self, count: int) -> Words:
        if self._drawn + count > len(self._words):
            raise OutOfWords
        self._drawn += count
        return np.array(self._words[self._drawn - count : self._drawn], dtype=np.uint64)


@dataclass(frozen=True)
class Tree(Generic[Outcome]):
    """The exact mass that was decided for each outcome, and what was undecided at each level."""

    decided: dict[Outcome, Fraction]
    undecided: tuple[Fraction, ...]


Walk = Tree[int]


def walk(sampler: Callable[[Bits], Outcome], width: int, depth: int) -> Tree[Outcome]:
    """Play every script of ``depth`` words, extending only those that leave the outcome open."""
    decided: dict[Outcome, Fraction] = {}
    undecided = []
    scripts: list[tuple[int, ...]] = [()]
    for level in range(1, depth + 1):
        chance = Fraction(1, 1 << width * level)
        times: dict[Outcome, int] = {}
        still: list[tuple[int, ...]] = []
        for script in scripts:
            for word in range(1 << width):
                try:
                    outcome = sampler(Script((*script, word), width))
                except OutOfWords:
                    still.append((*script, word))
                else:
                    times[outcome] = times.get(outcome, 0) + 1
        for outcome, count in times.items():
            decided[outcome] = decided.get(outcome, Fraction(0)) + count * chance
        scripts = still
        undecided.append(len(scripts) * chance)
    return Tree(decided, tuple(undecided))


def refutation(found: Tree[Outcome], chance: Chance[Outcome]) -> str | None:
    """Why this tree can't be of a sampler with these chances; ``None`` if nothing speaks against.

    A decided mass only grows as undecided words are refined, so none may lie above its outcome's
    chance. As all masses and the sliver add up to 1, none then lies more than the sliver below.
    """
    total = sum(found.decided.values(), found.undecided[-1])
    if total != 1:
        return f"the masses add up to {float(total)}"
    with precision(BITS):
        for outcome, mass in found.decided.items():
            exact = chance(outcome)
            if _is_above(mass, exact):
                return f"P({outcome}) is at least {float(mass)}, not {float(exact)}"
    return None


def _is_above(mass: Fraction, exact: Real) -> bool:
    if isinstance(exact, Fraction):
        return mass > exact
    assert not ball(mass).overlaps(exact), "more precision is needed to decide"
    return ball(mass) > exact


def assert_exact(
    found: Tree[Outcome], chance: Chance[Outcome], sliver: float, record: Record
) -> None:
    """Each outcome has its chance, to within what is undecided, and that is less than this."""
    record("undecided", [float(left) for left in found.undecided])
    assert refutation(found, chance) is None
    assert found.undecided[-1] < sliver


def assert_refuted(found: Tree[Outcome], chance: Chance[Outcome]) -> None:
    """Some outcome's mass is too large."""
    reason = refutation(found, chance)
    assert reason is not None
    assert "is at least" in reason


class Path(Enum):
    """A way to an outcome, in the code of drawing by inversion."""

    SINGLE = "single"
    BULK = "bulk"
    GUIDE = "guide"

    def refute(self, law: Inverse, chance: Chance[int], patch: pytest.MonkeyPatch) -> None:
        """Draw so, and find what is drawn refuted."""
        width, words = (4, 4) if self is Path.GUIDE else (8, 2)
        if self is Path.GUIDE:
            guided(patch, width)
        if self is Path.SINGLE:
            assert_refuted(walk(partial(_inversion.draw, law), width, words), chance)
        else:
            assert_refuted(walk(in_bulk(law, 1), width, words), independent(chance))


def in_bulk(law: Inverse, count: int) -> Callable[[Bits], tuple[int, ...]]:
    """This many draws at once by inversion."""
    return lambda bits: numbers(_inversion.draws(law, bits, count))


def one(law: Law) -> Callable[[Bits], int]:
    """A single draw."""
    return law.draw


def many(law: Law, count: int) -> Callable[[Bits], tuple[int, ...]]:
    """This many draws at once, as one outcome."""
    return lambda bits: numbers(law.draws(bits, count))


def numbers(array: npt.NDArray[Any]) -> tuple[int, ...]:  # Any: integers of any kind
    """An array as a tuple."""
    return tuple(int(number) for number in array)


def quickened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with no table that another test left, and answer the same slow question about the same
    digits once: many scripts ask it."""
    forget()
    table = _discrete_gaussian._TableLaw
    honest, known = _steps.resolve, cache(_steps.resolve)

    def resolve(law: _steps.StepLaw, numerator: int, size: int) -> int | None:
        if isinstance(law, Hashable) and not isinstance(law, _discrete_gaussian._Tails):
            return known(law, numerator, size)
        return honest(law, numerator, size)

    monkeypatch.setattr(_steps, "resolve", resolve)
    monkeypatch.setattr(_affine_quantile, "_by_balls", cache(_affine_quantile._by_balls))
    monkeypatch.setattr(table, "resolve", cache(table.resolve))


def forget() -> None:
    """Make all tables anew."""
    for cached in _CACHES:
        cached.cache_clear()


def guided(monkeypatch: pytest.MonkeyPatch, digits: int) -> None:
    """Have many draws begin with that many digits each, as they come from a word."""
    monkeypatch.setattr(_inversion, "_GUIDE_PAYS", 1)
    monkeypatch.setattr(_inversion, "_GUIDE_BITS", digits)
    forget()


# The laws, each by its definition


def chance_of(law: DiscreteLaplaceLaw | RoundedGaussianLaw) -> Callable[[int], arb]:
    """The probability of each outcome, from the law's definition and not from its tails."""
    return (
        discrete_laplace(law.scale) if isinstance(law, DiscreteLaplaceLaw) else gaussian(law.sigma)
    )


def discrete_laplace(scale: Fraction) -> Callable[[int], arb]:
    """(1 - p) / (1 + p) p^|x|, which is tanh(1 / (2 scale)) e^(-|x| / scale)."""

    def chance(outcome: int) -> arb:
        return ball(1 / (2 * scale)).tanh() * ball(-abs(outcome) / scale).exp()

    return chance


def gaussian(sigma: Fraction) -> Callable[[int], arb]:
    """The standard normal mass between (|x| - 1/2) / sigma and (|x| + 1/2) / sigma."""

    def beyond(point: Fraction) -> arb:
        return (ball(point / sigma) / arb(2).sqrt()).erfc() / 2

    def chance(outcome: int) -> arb:
        middle, half = Fraction(abs(outcome)), Fraction(1, 2)
        return beyond(middle - half) - beyond(middle + half)

    return chance


def discrete_gaussian_law(sigma: Fraction) -> Callable[[int], arb]:
    """e^(-x^2 / (2 sigma^2)) over its sum; from k on that grows by less than 2 e^(-k) at 2 sigma^2
    and above."""

    def weight(outcome: int) -> arb:
        return ball(-Fraction(outcome**2) / (2 * sigma**2)).exp()

    @cache
    def total() -> arb:
        last = max(ceil(2 * sigma**2), BITS)
        rest = arb(0).union(3 * ball(-last).exp())
        return 1 + 2 * sum((weight(k) for k in range(1, last)), arb(0)) + 2 * rest

    return lambda outcome: weight(outcome) / total()


def geometric(success: Fraction) -> Chance[int]:
    """s (1 - s)^x."""
    return lambda outcome: success * (1 - success) ** outcome if outcome >= 0 else Fraction(0)


def weighted(*weights: Fraction | int) -> Chance[int]:
    """Each place's share of all weights."""
    chances = {place: Fraction(weight) / sum(weights) for place, weight in enumerate(weights)}
    return lambda place: chances.get(place, Fraction(0))


def coin(probability: Real) -> Chance[int]:
    """1 with this probability, or 0."""
    return lambda outcome: probability if outcome == 1 else 1 - probability


def binomial_law(n: int, probability: Fraction) -> Chance[int]:
    """n choose k, times p^k (1 - p)^(n - k)."""
    return lambda k: comb(n, k) * probability**k * (1 - probability) ** (n - k)


def ordered(count: int, size: int) -> Chance[tuple[int, ...]]:
    """All lists of ``size`` different numbers below ``count`` are equally likely."""

    def chance(found: tuple[int, ...]) -> Fraction:
        fits = len(set(found)) == len(found) == size and set(found) <= set(range(count))
        return Fraction(factorial(count - size), factorial(count)) if fits else Fraction(0)

    return chance


def softmax(scores: Sequence[Fraction | int], rate: Fraction) -> Chance[int]:
    """e^(rate * score) over its sum."""
    weights = [e_to(rate * score) for score in scores]
    if len(weights) == 1:
        return weighted(1)
    return lambda place: weights[place] / sum(weights, arb(0))


def permute_and_flip_law(scores: Sequence[Fraction | int], rate: Fraction) -> Chance[int]:
    """By its definition: all orders of visits are equally likely, and a visited candidate is taken
    with probability e^(rate * (score - largest score))."""
    taken = [e_to(rate * (score - max(scores))) for score in scores]
    if len(taken) == 1:
        return weighted(1)

    def chance(place: int) -> arb:
        total = arb(0)
        for order in permutations(range(len(scores))):
            before = order[: order.index(place)]
            total += prod((1 - taken[other] for other in before), start=taken[place])
        return total / factorial(len(scores))

    return chance


def e_to(power: Fraction) -> arb:
    """e^power, at the precision that refutations need."""
    with precision(BITS):
        return ball(power).exp()


def independent(chance: Chance[int]) -> Chance[tuple[int, ...]]:
    """The chance of outcomes that have nothing to do with each other."""
    known = cache(chance)

    def together(outcomes: tuple[int, ...]) -> Real:
        return joint(known(outcome) for outcome in outcomes)

    return together


def joint(chances: Iterable[Real]) -> Real:
    """The chance of them all, each by itself."""
    each = list(chances)
    exact = [one for one in each if isinstance(one, Fraction)]
    if len(exact) == len(each):
        return prod(exact, start=Fraction(1))
    return prod((ball(one) if isinstance(one, Fraction) else one for one in each), start=arb(1))
