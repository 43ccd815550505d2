"""Prices from accuracy: the least epsilon for which the forecast errors are small enough."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from discreet import _checks
from discreet._bisection import decimal_edge
from discreet._exact import Number
from discreet.errors import InvalidArgument
from discreet.query._answers import _forecast
from discreet.query._answers._forecast import Forecast
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import Noise, QuestionPrice, price_plan

Within = Number | Mapping[str, Number]
"""The largest half-width of an interval: one for all aggregates, or one for each by its name. For a
quantile it is a share of the group's rows, and is given by name."""

_LEAST_DECADE, _LARGEST_DECADE = -6, 4  # of the epsilons that are tried
_DIGITS = 6


def named_price(
    price: QuestionPrice | None,
    epsilon: Number | None,
    *,
    delta: Number,
    noise: Noise | None,
    weights: Mapping[str, Number] | None,
) -> QuestionPrice:
    """The price of a question, given as a value or by its parts."""
    if price is None:
        if epsilon is None:
            raise InvalidArgument("epsilon: give the price of the question, such as epsilon=0.5")
        if isinstance(epsilon, QuestionPrice):
            raise InvalidArgument(
                "epsilon is a QuestionPrice: give it by position, as in question.release(price)"
            )
        return QuestionPrice(epsilon, delta, noise=noise, weights=weights)
    if not isinstance(price, QuestionPrice):
        raise InvalidArgument(
            f"price is of type {type(price).__name__}: give a QuestionPrice, or epsilon=0.5"
        )
    if epsilon is not None or delta or noise is not None or weights is not None:
        raise InvalidArgument("give either a QuestionPrice, or epsilon and its companions")
    return price


def price_for_error(
    plan: Plan, price: QuestionPrice, within: Within, *, group_size: int | None, confidence: Number
) -> QuestionPrice:
    """The price with the least epsilon for which every forecast half-width is at most ``within``,
    in a group of ``group_size`` rows. The epsilon of ``price`` is not read.

    Both kinds of noise are tried where a delta allows it. The epsilon has six digits, and is at
    least 1e-6.
    """
    # 1. the largest error allowed for each name
    most = _limits(plan, within)
    level = _checks.probability(confidence=confidence)
    size = None if group_size is None else _checks.positive_count(group_size=group_size)

    def is_met(found: Forecast) -> bool:
        lines = [line for line in found.lines if line.name in most]
        unknown = next((name for name in most if all(line.name != name for line in lines)), None)
        if unknown is not None:
            raise InvalidArgument(
                f"within: the error of {unknown} depends on the rows; give those of its parts by "
                f"name, such as 10 for {plan.query.aggregates[0].name!r}"
            )
        ranked = next((line.name for line in lines if line.is_in_ranks), None)
        if ranked is not None and not isinstance(within, Mapping):
            raise InvalidArgument(
                f"within: the error of {ranked} is a share of its group's rows; give one for each "
                f"aggregate by name, such as 0.02 for {ranked!r}"
            )
        if size is None and any(line.group_size is not None for line in lines):
            raise InvalidArgument(
                "group_size: give the number of rows in a group, on which the error of a mean "
                "depends"
            )
        return all(line.promised <= most[line.name] for line in lines)

    # 2. the least price
    found = least_price(plan, price, is_met, confidence=level, group_size=size)
    if found is None:
        raise InvalidArgument(
            f"within: no epsilon up to {10**_LARGEST_DECADE:,} gives errors this small; allow "
            "larger ones, or ask for larger groups"
        )
    return found


def least_price(
    plan: Plan,
    price: QuestionPrice,
    is_met: Callable[[Forecast], bool],
    *,
    confidence: Fraction,
    group_size: int | None,
    digits: int = _DIGITS,
) -> QuestionPrice | None:
    """The price with the least epsilon, of this many digits, whose forecast meets a condition that
    all larger epsilons meet, too; None if none meets it. Only the delta, noise and weights of
    ``price`` are read."""

    def least_of(kind: Noise) -> QuestionPrice | None:
        delta = price.delta if kind is Noise.GAUSSIAN or plan.private else Fraction(0)

        def offer(epsilon: Fraction) -> QuestionPrice:
            return QuestionPrice(epsilon, delta, noise=kind, weights=price.weights)

        def is_enough(epsilon: Fraction) -> bool:
            try:
                priced = price_plan(plan, offer(epsilon), confidence)
            except InvalidArgument:  # noise beyond the range of floats, or none that is so small
                return False
            return is_met(_forecast.forecast(priced, confidence, group_size))

        epsilon = least_epsilon(is_enough, digits)
        return None if epsilon is None else offer(epsilon)

    offers = [offer for kind in _kinds(price) if (offer := least_of(kind)) is not None]
    return min(offers, key=lambda one: one.epsilon, default=None)


def _kinds(price: QuestionPrice) -> list[Noise]:
    if price.noise is not None:
        return [price.noise]
    return [Noise.LAPLACE, Noise.GAUSSIAN] if price.delta else [Noise.LAPLACE]


def least_epsilon(is_enough: Callable[[Fraction], bool], digits: int) -> Fraction | None:
    """The least epsilon of this many digits that is enough; None if none is."""
    decades = (Fraction(10) ** n for n in range(_LEAST_DECADE, _LARGEST_DECADE + 1))
    good = next((epsilon for epsilon in decades if is_enough(epsilon)), None)
    if good is None or good == Fraction(10) ** _LEAST_DECADE:
        return good
    return decimal_edge(is_enough, good, good / 10, digits=digits, spare=2)


def _limits(plan: Plan, within: Within) -> dict[str, Fraction]:
    """The largest half-width by the name of each limited aggregate."""
    names = [one.name for one in plan.query.numbers]
    if not isinstance(within, Mapping):
        most = _checks.positive(within=within)
        return dict.fromkeys(plan.query.columns, most)
    unknown = sorted(set(within) - set(names), key=repr)
    if unknown or not within:
        raise InvalidArgument(
            f"within: {unknown[0] if unknown else 'nothing'!r} is no aggregate here; there are "
            f"{', '.join(names)}"
        )
    return {name: _checks.positive(within=each) for name, each in within.items()}
