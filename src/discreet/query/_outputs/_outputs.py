"""Linear forms of noisy sums, whose intervals follow from the exact law of their noise.

The sum or difference of counts and sums is one. The interval of another output follows from those
of its aggregates (`_evaluation`), which share the output's risk.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.noise._sums import pair_half_width, sum_half_width
from discreet.query._estimates._summed_noise import AdditiveNoise, SummedNoise
from discreet.query._expressions._expressions import (
    Arithmetic,
    FunctionCall,
    Literal,
    Measure,
    Operator,
    Scalar,
)
from discreet.query._outputs._post_processing import measures_in

_SAFE = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class LinearForm:
    """A constant, and noisy sums of the plan with their coefficients, in the answer's units for
    each step of the sum."""

    constant: Fraction
    terms: Mapping[str, Fraction]


def noisy_parts(value: Scalar) -> int:
    """The number of intervals that share the risk of an output."""
    return max(len(measures_in([value])), 1)


def noisy_core(value: Scalar) -> Scalar:
    """The part of a value that has all its noise: a function of it and of literals is as noisy."""
    while isinstance(value, FunctionCall):
        inner = [one for one in value.arguments if not isinstance(one, Literal)]
        if len(inner) != 1:
            break
        (value,) = inner
    return value


def linear_form(
    value: Scalar, sources: Mapping[Measure, tuple[str, Fraction]]
) -> LinearForm | None:
    """A value as a linear form of noisy sums, if it is one. ``sources`` gives the sum, and the size
    of its step, of each aggregate that is one sum."""
    match value:
        case Literal(Fraction() as number):
            return LinearForm(number, {})
        case Measure() if value in sources:
            source, step = sources[value]
            return LinearForm(Fraction(0), {source: step})
        case Arithmetic(operator, left, right):
            sides = linear_form(left, sources), linear_form(right, sources)
            if sides[0] is None or sides[1] is None:
                return None
            return _combined(operator, sides[0], sides[1])
    return None


def _combined(operator: Operator, left: LinearForm, right: LinearForm) -> LinearForm | None:
    match operator:
        case Operator.ADD:
            return _plus(left, right, 1)
        case Operator.SUBTRACT:
            return _plus(left, right, -1)
        case Operator.MULTIPLY if not right.terms:
            return _times(left, right.constant)
        case Operator.MULTIPLY if not left.terms:
            return _times(right, left.constant)
        case Operator.DIVIDE if not right.terms and right.constant:
            return _times(left, 1 / right.constant)
    return None


def _plus(left: LinearForm, right: LinearForm, sign: int) -> LinearForm:
    names = dict.fromkeys([*left.terms, *right.terms])
    sums = {
        n: left.terms.get(n, Fraction(0)) + sign * right.terms.get(n, Fraction(0)) for n in names
    }
    return LinearForm(left.constant + sign * right.constant, {n: c for n, c in sums.items() if c})


def _times(form: LinearForm, factor: Fraction) -> LinearForm:
    terms = {name: factor * c for name, c in form.terms.items()} if factor else {}
    return LinearForm(form.constant * factor, terms)


def linear_half_width(
    form: LinearForm, noise: Mapping[str, AdditiveNoise], confidence: Fraction
) -> float | None:
    """An upper bound on the half-width of the form's interval, by the exact law of its noise;
    ``None`` for three sums or more with different noises."""
    weights = {name: abs(coefficient) for name, coefficient in form.terms.items()}
    kinds = {(noise[name], weight) for name, weight in weights.items()}
    if not weights:
        return 0.0
    if len(kinds) == 1:
        ((one, weight),) = kinds
        return one_law_half_width(one, len(weights), confidence) * _up(weight)
    if len(weights) > 2:
        return None
    first, second = weights
    laws = noise[first].law, noise[second].law
    return pair_half_width(laws, (_up(weights[first]), _up(weights[second])), confidence)


def one_law_half_width(noise: AdditiveNoise, count: int, confidence: Fraction) -> int:
    """The half-width of the sum of this many independent noises of one law."""
    if count == 1:
        return noise.error(confidence)
    if isinstance(noise, SummedNoise):
        return sum_half_width(noise.mechanism.law, count * noise.count, confidence)
    return sum_half_width(noise.law, count, confidence)


def linear_stddev(form: LinearForm, noise: Mapping[str, AdditiveNoise]) -> float:
    """The standard deviation of the form's noise."""
    parts = (float(abs(c)) * noise[name].stddev_of_noise() for name, c in form.terms.items())
    return math.hypot(*parts)


def _up(number: Fraction) -> float:
    try:
        near = float(number)
    except OverflowError:
        return math.inf
    return near if near == number else near * _SAFE
