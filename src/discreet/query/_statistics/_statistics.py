"""Moments, regressions and bounds of a table: one release each, and their forecasts."""

from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import _checks
from discreet._exact import Number
from discreet.errors import InvalidArgument, QueryRefused
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Gaussian,
    IntegerArray,
    Mechanism,
    Release,
    Rows,
    rehearse,
    release,
)
from discreet.mechanisms.quantiles import ApproximateBounds
from discreet.mechanisms.statistics import (
    Moments,
    Regression,
    moment_errors,
    moments,
    regression,
    regression_errors,
)
from discreet.query._answers._ranges import is_useless
from discreet.query._plan._price import check_scale
from discreet.query._questions._diagnosis import LEAST_RISK
from discreet.query._statistics._round_numbers import round_ends
from discreet.query._statistics._statistic import Asking, Offer, StatisticForecast

Counts = Bounded[IntegerArray]

_CONFIDENCE = Fraction(95, 100)
_TYPICAL = (
    "for columns without relation to one another, each typical for its bounds: with values from",
    "0 to 80, the mean 60 (or 20) and the standard deviation 10",
)


def released_moments(rows: Bounded[Rows], asking: Asking) -> Moments:
    """The release of all moments of the rows' columns, with the noise that errs less."""
    facts, noise = _noise_of_moments(rows, asking.epsilon, asking.delta)
    rehearse(noise, np.zeros(1, dtype=object))
    found = release(facts, noise, asking.ledger, by=asking.by, request=asking.request)
    return Moments.of(found, rows)


def expected_moments(rows: Bounded[Rows], offer: Offer) -> StatisticForecast:
    """The error of each moment."""
    facts, noise = _noise_of_moments(rows, offer.epsilon, offer.delta)
    found = moment_errors(rows, noise, offer.confidence)
    errors = {" x ".join(place) or "rows": float(error) for place, error in found.items()}
    lines = tuple(f"{name}: ± {error:,.4g}" for name, error in errors.items())
    middles = "sums of distances from the middle of each column's bounds, and of their products"
    useless = (
        f"moments: among {offer.rows:,} rows even their number is uncertain by ± "
        f"{errors['rows']:,.4g}"
    )
    return StatisticForecast(
        noise.privacy_loss(facts),
        offer.confidence,
        errors,
        (middles, *lines),
        (useless,) if is_useless(errors["rows"], offer.rows) else (),
    )


def _noise_of_moments(
    rows: Bounded[Rows], epsilon: Number, delta: Number
) -> tuple[Counts, DiscreteLaplace | Gaussian]:
    facts = moments(rows)
    noise = better_noise(facts, epsilon, delta)
    check_scale([noise])
    return facts, noise


def expected_regression(
    rows: Bounded[Rows], outcome: str, names: tuple[str, ...], offer: Offer
) -> StatisticForecast:
    """Half of the length of each interval, for typical columns without relation."""
    _check_risk(offer.confidence)
    facts, noise = _noise_of_moments(rows, offer.epsilon, offer.delta)
    size = offer.rows
    errors = regression_errors(rows, noise, outcome, names, count=size, confidence=offer.confidence)
    lines = [
        f"{name}, among {size:,} rows: "
        + (f"± {error:,.4g}" if np.isfinite(error) else "any number; the noise hides it")
        for name, error in errors.items()
    ]
    hidden = ", ".join(name for name, error in errors.items() if not np.isfinite(error))
    useless = f"regression: among {size:,} rows the noise hides the coefficients {hidden}"
    return StatisticForecast(
        noise.privacy_loss(facts),
        offer.confidence,
        errors,
        (*lines, *_TYPICAL),
        (useless,) if hidden else (),
    )


def _check_risk(confidence: Fraction) -> None:
    if 1 - confidence < LEAST_RISK:
        raise InvalidArgument("regression: give a confidence of at most 1 - 1e-30")


def expected_bounds(_: Offer) -> StatisticForecast:
    """Refused: the values decide on it."""
    raise QueryRefused(
        "bounds: how many values they hold depends on where the values lie, so no error can be "
        "forecast; release them with a small epsilon, and None says that it was too small"
    )


def released_regression(
    rows: Bounded[Rows], outcome: str, names: tuple[str, ...], asking: Asking
) -> Regression:
    """The release of the moments, and the coefficients that follow from them."""
    _check_risk(asking.confidence)
    known = released_moments(rows, asking)
    with np.errstate(all="ignore"):  # a warning would depend on the noise
        return regression(known, outcome, names, asking.confidence)


def released_bounds(rows: Bounded[Rows], asking: Asking) -> Release[tuple[float, float] | None]:
    """The release of bounds that hold most values, rounded outwards to round numbers, as far as
    the declared bounds reach."""
    search = ApproximateBounds.for_epsilon(asking.epsilon, rows)
    found = released_by(rows, search, asking, "BOUNDS")
    grid = search.grid
    return found.processed(
        lambda ends: None if ends is None else round_ends(ends, within=grid), by="round ends"
    )


def released_by(
    bounded: Bounded[Any], mechanism: Mechanism[Any, Any], asking: Asking, title: str
) -> Release[Any]:  # Any: as the mechanism has it
    """The release of this mechanism, under a title in the ledger."""
    purpose = f"{title}: {bounded.name}"
    by, request = asking.by, asking.request
    return release(bounded, mechanism, asking.ledger, purpose=purpose, by=by, request=request)


def better_noise(
    facts: Bounded[IntegerArray], epsilon: Number, delta: Number
) -> DiscreteLaplace | Gaussian:
    """The kind of noise that errs less at this price."""
    offers: list[DiscreteLaplace | Gaussian] = [DiscreteLaplace.for_epsilon(epsilon, facts)]
    if _checks.not_negative(delta=delta) > 0:
        with suppress(ArithmeticError):  # of a price that is too large for any such noise
            offers.append(Gaussian.for_epsilon(epsilon, delta, facts))
    return min(offers, key=lambda noise: noise.error(_CONFIDENCE))
