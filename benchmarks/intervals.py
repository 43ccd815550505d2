"""Coverage and length of the 95 % intervals of each aggregate, by group of three real tables.

Each aggregate is asked alone, at the price at which the narrowest noise has a scale of 10. "held"
is the share of intervals that hold the number without noise, over all groups and draws. "clear" is
this share in groups whose intervals are at most half as long as the longest one, on average; in
other groups the noise hides the number, and an interval as wide as the range always holds it.
"least" and "most" are the shares of single clear groups. "length" is the median, over the clear
groups, of the mean length over the shortest one around the answer that would hold as often as it
says, which is twice the 95 % quantile of the errors. An interval that the range cuts may be shorter
than that.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet._arrays import FloatArray
from discreet.audit import SeededBits
from discreet.mechanisms import DiscreteLaplace, Gaussian
from discreet.mechanisms.quantiles import QuantileIntervals
from discreet.query import AggregateFunction, Noise, QuestionPrice, aggregate
from discreet.query._answers._forecast import law
from discreet.query._bounding import _compiled_plan
from discreet.query._engines import _engine
from discreet.query._expressions._aggregates import ESTIMATORS
from discreet.query._plan._price import PricedPlan
from tests.query.kit import without_noise
from tests.query.real_tables import TABLES

LEVEL = Fraction(95, 100)
SCALE = 10
DRAWS = 20_000  # over all groups of a table
FEWER = 4_000  # for quantiles, which are drawn one by one
FUNCTIONS = [
    one
    for one in AggregateFunction
    if not (ESTIMATORS[one].takes_level or ESTIMATORS[one].is_key)
    and one is not AggregateFunction.COUNT_UNITS  # as COUNT
]


@dataclass(frozen=True, slots=True)
class Group:
    """The share of intervals that held the number, their mean and largest length, and the length of
    the shortest ones that would do."""

    held: float
    length: float
    longest: float
    shortest: float


def shown(groups: Sequence[Group], *, is_cut: bool) -> str:
    """The figures of one aggregate and table; ``is_cut`` says that a range cuts its intervals."""
    most = max(group.longest for group in groups)
    clear = [group for group in groups if not is_cut or group.length <= most / 2]
    text = f"{100 * np.mean([group.held for group in groups]):8.1f}"
    if not clear:
        return text
    shares = 100 * np.array([group.held for group in clear])
    ratios = [group.length / group.shortest for group in clear if group.shortest]
    length = f"{np.median(ratios):8.2f}" if ratios else ""
    return f"{text}{shares.mean():8.1f}{shares.min():8.1f}{shares.max():8.1f}{length}"


def groups_of(name: str, function: AggregateFunction, noise: Noise, draws: int) -> list[Group]:
    """The groups of one table, with this many draws over all of them."""
    table, keys, value, other = TABLES[name]
    asked = aggregate(function, value, other if ESTIMATORS[function].takes_two else None)
    question = table().group_by(*keys).agg(answer=asked)
    truth: list[float] = without_noise(question).to_pandas().answer.tolist()
    delta = 0 if noise is Noise.LAPLACE else 1e-6
    priced = question.price(QuestionPrice(1, delta, noise=noise), LEVEL)
    epsilon = min(_scale(one) for one in priced.mechanisms.values()) / SCALE
    priced = question.price(QuestionPrice(_near(epsilon), delta, noise=noise), LEVEL)
    with _engine.opened() as engine:
        parts = _compiled_plan.prepare(priced.plan, table().source, engine).compute(None)
    exact = priced.plan.bounded(lambda: parts).checked(parts)
    found = []
    for group, drawn in enumerate(_drawn(priced, function, exact, -(-draws // len(truth)))):
        true, (values, low, high) = truth[group], drawn
        if math.isnan(true):  # of no rows
            continue
        errors = np.abs(values - true)[~np.isnan(values)]
        shortest = 2 * float(np.quantile(errors, float(LEVEL))) if len(errors) else 0.0
        held = float(np.mean((low <= true) & (true <= high)))
        found.append(Group(held, float(np.mean(high - low)), float((high - low).max()), shortest))
    return found


def _scale(one: Any) -> float:  # Any: a mechanism of a plan
    return float(one.stddev_of_noise() if isinstance(one, Gaussian) else one.scale)


def _near(epsilon: float) -> Fraction:
    return Fraction(epsilon).limit_denominator(10**6)


def _drawn(
    priced: PricedPlan, function: AggregateFunction, exact: Any, draws: int
) -> Iterator[list[FloatArray]]:
    """For each group, values and both ends of this many answers."""
    (sources,) = priced.plan.sources
    noise: Any = law(priced, sources)  # as the estimator has it
    estimator, bits = ESTIMATORS[function], SeededBits(1)
    mechanisms = [priced.mechanisms[source] for source in sources]
    if isinstance(mechanisms[0], QuantileIntervals):
        every = np.array([mechanisms[0].sample(exact[sources[0]], bits) for _ in range(draws)])
        noisy: Iterator[Any] = (every[:, group].tolist() for group in range(every.shape[1]))
    else:
        noisy = (
            [
                [int(true) + int(step) for step in one.law.draws(bits, draws)]
                for true, one in zip(sums, mechanisms, strict=True)
                if isinstance(one, DiscreteLaplace | Gaussian)  # as every sum has
            ]
            for sums in zip(*(exact[source] for source in sources), strict=True)
        )
    for steps in noisy:
        found = estimator.estimate(noise, steps, LEVEL)
        yield [np.array(side, dtype=float) for side in (found.values, found.low, found.high)]


def main(names: Sequence[str]) -> None:
    """Print a line for each aggregate, noise and table; of all aggregates, if none is named."""
    print("aggregate      noise     table        held   clear   least    most  length")
    for function in [one for one in FUNCTIONS if not names or one.value in names]:
        estimator = ESTIMATORS[function]
        for noise in [Noise.LAPLACE] if estimator.is_in_ranks else list(Noise):
            for table in TABLES:
                draws = FEWER if estimator.is_in_ranks else DRAWS
                found = groups_of(table, function, noise, draws)
                title = f"{function.value:15}{noise.value:10}{table:9}"
                print(f"{title}{shown(found, is_cut=not estimator.has_stddev)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
