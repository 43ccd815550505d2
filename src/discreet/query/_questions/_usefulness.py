"""Warnings before a question is paid: aggregates whose intervals will tell nothing."""

from collections.abc import Callable, Collection
from dataclasses import replace
from fractions import Fraction

from discreet._exact import shown
from discreet.query._answers._forecast import Forecast, ForecastLine
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import Noise, QuestionPrice
from discreet.query._questions._accuracy import least_epsilon, least_price

_DELTA = Fraction(1, 10**6)  # of the Gaussian noise that is proposed
_DIGITS = 3
_MUCH = Fraction(5, 4)
_LARGEST = 100  # of the epsilons that are proposed
_NONE = QuestionPrice(_LARGEST)
_NO_EPSILON = f"no epsilon up to {_LARGEST} helps: ask for larger groups, or declare tighter bounds"


def warned(plan: Plan, price: QuestionPrice, predicted: Forecast) -> Forecast:
    """The forecast with a warning for each aggregate that is useless at each forecast size."""
    useless = {}
    for aggregate in plan.query.aggregates:
        lines = [line for line in predicted.lines if line.name == aggregate.name]
        if lines and all(line.is_useless for line in lines):
            useless[aggregate.name] = lines[-1]
    if not useless:
        return predicted
    advice = _advice(plan, price, predicted, useless)
    counts = {one.name for one in plan.query.aggregates if one.argument is None}
    texts = (f"{_warning(line, counts)}; {advice}" for line in useless.values())
    return replace(predicted, warnings=tuple(texts))


def needed_price(
    plan: Plan, price: QuestionPrice, predicted: Forecast, names: Collection[str]
) -> QuestionPrice | None:
    """The price with the least epsilon at which these aggregates are of use, at the largest size of
    the forecast, to three digits; None if no epsilon up to 10,000 is enough. The delta, noise and
    weights of ``price`` stay."""
    level, size = predicted.confidence, max(line.judged_size for line in predicted.lines)

    def is_met(found: Forecast) -> bool:
        return not any(line.is_useless for line in found.lines if line.name in names)

    return least_price(plan, price, is_met, confidence=level, group_size=size, digits=_DIGITS)


def advice_for(is_useful: Callable[[Fraction], bool]) -> str:
    """The epsilon from which on an answer is of use, or what else helps."""
    needed = least_epsilon(is_useful, _DIGITS)
    if needed is None or needed > _LARGEST:
        return _NO_EPSILON
    return f"you would need at least epsilon {shown(needed)}"


def _warning(line: ForecastLine, counts: Collection[str]) -> str:
    if line.is_in_ranks:
        return (
            f"{line.name}: in a group of {line.judged_size:,} rows the interval may hold any value "
            f"of the declared range, since it reaches over {line.width[2:]}"
        )
    if line.is_in_rows:
        return (
            f"{line.name}: in a group of {line.judged_size:,} rows it may be any key, since the "
            f"most frequent one may have {line.half_width:,.0f} rows more"
        )
    whole = "group itself" if line.name in counts else "declared range"
    return (
        f"{line.name}: in a group of {line.judged_size:,} rows the interval is as wide as the "
        f"{whole}, or wider (± {line.half_width:.3g})"
    )


def _advice(plan: Plan, price: QuestionPrice, predicted: Forecast, names: Collection[str]) -> str:
    """The prices at which all these aggregates are of use: with the same delta, and with Gaussian
    noise where that needs a much smaller epsilon."""
    needed = needed_price(plan, price, predicted, names)
    if needed is not None and needed.epsilon > _LARGEST:
        needed = None
    ways = [] if needed is None else [f"epsilon {shown(needed.epsilon)}"]
    if price.delta == 0 and price.noise is None:
        gaussian = replace(price, delta=_DELTA, noise=Noise.GAUSSIAN)
        other = needed_price(plan, gaussian, predicted, names)
        if other is not None and other.epsilon <= price.epsilon:
            ways.append(f"delta {shown(_DELTA)} for Gaussian noise")
        elif other is not None and other.epsilon * _MUCH <= (needed or _NONE).epsilon:
            with_delta = f"epsilon {shown(other.epsilon)} with delta {shown(_DELTA)}"
            ways.append(f"{with_delta} for Gaussian noise")
    if not ways:
        return _NO_EPSILON
    every = "for all of them " if len(names) > 1 else ""
    return f"{every}you would need at least {', or '.join(ways)}"
