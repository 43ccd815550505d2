"""The laws of all reports, said a second time; mechanisms of all kinds."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy.typing as npt
from flint import arb

from discreet._exact import ball, precision
from discreet.local import (
    CountMeanSketch,
    DuchiMean,
    HadamardResponse,
    LocalHashing,
    PiecewiseMean,
    RandomizedResponse,
    Rappor,
    SketchReports,
    UnaryEncoding,
    client,
)
from tests.noise.fit import QuickBits

Law = dict[Any, Fraction]  # Any: a place, or a row of truths, or both

BITS = 256


# The laws, each by its definition


def randomized_response(odds: Fraction, categories: int, value: int) -> Law:
    total = odds + categories - 1
    law = dict.fromkeys(range(categories), 1 / total)
    return {**law, value: odds / total}


def unary(chances: Iterable[Fraction]) -> Law:
    """Independent bits."""
    each = tuple(chances)
    return {
        bits: Fraction(prod(p if bit else 1 - p for bit, p in zip(bits, each, strict=True)))
        for bits in product((False, True), repeat=len(each))
    }


def one_hot(kept: Fraction, added: Fraction, categories: int, value: int) -> Law:
    return unary(kept if place == value else added for place in range(categories))


def hadamard(odds: Fraction, size: int, value: int) -> Law:
    """Half of all places have an even number of ones in common with the row."""
    even = [(place & (value + 1)).bit_count() % 2 == 0 for place in range(size)]
    return {
        place: (odds if is_even else Fraction(1)) / (odds + 1) / (size // 2)
        for place, is_even in enumerate(even)
    }


def digits(number: int, base: int, count: int) -> list[int]:
    return [number // base**place % base for place in range(count)]


def hashing(odds: Fraction, categories: int, prime: int, value: int) -> Law:
    count = next(n for n in range(1, 99) if prime**n >= categories)
    law = {}
    for seed in range(prime**count):
        pairs = zip(digits(value, prime, count), digits(seed, prime, count), strict=True)
        bucket = sum(a * b for a, b in pairs) % prime
        for report, chance in randomized_response(odds, prime, bucket).items():
            law[seed * prime + report] = chance / prime**count
    return law


def sketch(of: client.CountMeanSketch, value: int) -> Law:
    law: Law = {}
    for function in range(of.buckets):
        coefficients = digits(value, of.buckets, of.digits)
        bucket = sum(c * function**n for n, c in enumerate(coefficients)) % of.buckets
        for bits, chance in one_hot(of.own, of.other, of.buckets, bucket).items():
            law[function, *bits] = chance / of.buckets
    return law


def rappor(of: client.Rappor, value: int, rounds: int = 1) -> Law:
    """Of the rows of all rounds, one after the other: sum over the permanent answers."""
    law: Law = {}
    for kept, chance in one_hot(of.permanent, 1 - of.permanent, of.categories, value).items():
        for report, more in unary(
            [of.instantaneous if b else 1 - of.instantaneous for b in kept * rounds]
        ).items():
            law[report] = law.get(report, Fraction(0)) + chance * more
    return law


def duchi(odds: Fraction, share: Fraction) -> Law:
    """Rounded to an end, which is then reported with these odds."""
    high = share * odds / (odds + 1) + (1 - share) / (odds + 1)
    return {True: high, False: 1 - high}


def piecewise(of: client.PiecewiseMean, share: Fraction) -> Law:
    """Weights of the odds inside a window, and of 1 outside."""
    total = of.odds * of.window + of.places - of.window
    start, later = divmod(share * (of.places - of.window), 1)

    def law(first: int) -> list[Fraction]:
        inside = range(first, first + of.window)
        return [(of.odds if place in inside else 1) / total for place in range(of.places)]

    pairs = zip(law(int(start)), law(int(start) + 1), strict=True)
    return {place: (1 - later) * a + later * b for place, (a, b) in enumerate(pairs)}


def law_of(of: Any, value: Any) -> Law:  # Any: each client, and what its values are
    """The law of a client's report of this value; of a mean, the value is its step."""
    match of:
        case client.RandomizedResponse():
            return randomized_response(of.odds, of.categories, value)
        case client.UnaryEncoding():
            return one_hot(of.own, of.other, of.categories, value)
        case client.HadamardResponse():
            return hadamard(of.odds, of.size, value)
        case client.LocalHashing():
            return hashing(of.odds, of.categories, of.buckets, value)
        case client.CountMeanSketch():
            return sketch(of, value)
        case client.Rappor():
            return rappor(of, value)
        case client.DuchiMean():
            return duchi(of.odds, Fraction(value, STEPS))
        case client.PiecewiseMean():
            return piecewise(of, Fraction(value, STEPS))
    raise AssertionError(of)


STEPS = 1 << 30


def outcome(report: Any) -> Any:  # Any: reports of all kinds
    """A report as the laws name it."""
    if isinstance(report, SketchReports):
        return (int(report.functions), *map(bool, report.bits))
    plain = report.tolist()
    return tuple(plain) if isinstance(plain, list) else plain


def worst(laws: Iterable[Law]) -> Fraction:
    """The largest ratio of a report's probabilities under two of these laws."""
    every = list(laws)
    return max(
        one[report] / other[report] for one in every for other in every for report in one | other
    )


def lost(p: Law, q: Law, epsilon: Fraction) -> arb:
    """The sum of p - e^epsilon q where that is positive: the least delta."""
    with precision(BITS):
        grown = ball(epsilon).exp()
        return sum((max(ball(p[y]) - grown * ball(q[y]), arb(0)) for y in p), arb(0))


# Mechanisms of all kinds

Make = Callable[[Any], Any]  # Any: an epsilon, and each mechanism

FREQUENCIES: dict[str, Callable[[Any, int], Any]] = {  # epsilon and categories
    "randomized response": RandomizedResponse,
    "symmetric unary": UnaryEncoding.symmetric,
    "optimised unary": UnaryEncoding.optimised,
    "hadamard": HadamardResponse,
    "hashing": LocalHashing,
    "rappor": lambda epsilon, categories: Rappor(
        min(3 * epsilon, 32), once=epsilon, categories=categories
    ),
}

MEANS: dict[str, Make] = {
    "duchi": lambda epsilon: DuchiMean(epsilon, lower=-1, upper=3),
    "piecewise": lambda epsilon: PiecewiseMean(epsilon, lower=-1, upper=3),
}


def _of_four(make: Callable[[Any, int], Any], epsilon: Any) -> Any:
    return make(epsilon, 4)


ALL: dict[str, Make] = {
    **{name: partial(_of_four, make) for name, make in FREQUENCIES.items()},
    "sketch": lambda epsilon: CountMeanSketch(epsilon, 9, buckets=3),
    **MEANS,
}


def values_of(mechanism: Any) -> list[int]:  # Any: each mechanism
    """All values, or some steps of a mean's range."""
    if isinstance(mechanism, DuchiMean | PiecewiseMean):
        return [0, 12345, STEPS // 3, STEPS]
    return list(range(mechanism.client.categories))


def drawn(mechanism: Any, values: npt.ArrayLike, seed: int) -> Any:  # Any: each mechanism
    """Reports from words of a seed."""
    bits = QuickBits(seed)
    if isinstance(mechanism, Rappor):
        return mechanism.client.draw_reports(mechanism.client.draw_permanent(values, bits), bits)
    return mechanism.client.draw_reports(values, bits)
