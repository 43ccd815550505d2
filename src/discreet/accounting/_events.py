"""To and from the `DpEvent` trees of Google's dp_accounting, which is never imported here.

Events are recognised by the names of their classes and fields. Numbers that must be rounded are
rounded against us in both directions, so that neither side promises more than the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from discreet import _checks
from discreet._exact import (
    ball,
    decimal_up,
    float_down,
    float_up,
    fraction,
    precision,
    shown,
    upper_fraction,
)
from discreet._unit import Change, Unit
from discreet.accounting import terms
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.accounting.terms import _best_run
from discreet.errors import InvalidArgument, NoBound, WrongUnit

_DEEPEST = 50
_DIGITS = 15
_BITS = 256

T = TypeVar("T")


def from_dp_event(
    event: Any,  # Any: a class of a package that isn't imported
    change: Change | Unit = Change.ADD_REMOVE,
) -> PrivacyLoss:
    """The privacy loss of a tree of dp_accounting's events, for neighbours that differ in this way.

    An event states the noise over the largest size of one record's value. Replacing a record moves
    a sum by twice that, so `Change.REPLACE` halves the noise (as their `PLDAccountant` does with
    `REPLACE_ONE`; their `RdpAccountant` does not).

    A term of noise holds for any relation between neighbours, so the result doesn't record the
    relation that was given. With a `Unit` in place of the `Change`, the result is for this unit
    only, and so for its relation.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class GaussianDpEvent:
    ...     noise_multiplier: float
    >>> from_dp_event(GaussianDpEvent(4.0))
    accounting.Gaussian(multiplier=4)
    """
    if isinstance(change, Unit):
        return from_dp_event(event, change.change).for_unit(change)
    if not isinstance(change, Change):
        raise InvalidArgument(
            f"change = {change!r}: give Change.ADD_REMOVE, Change.REPLACE or a Unit"
        )
    return _Reader(change).loss(event, depth=0)


def to_dp_event(
    loss: PrivacyLoss | Term,
    events: Any,  # Any: a package that isn't imported
) -> Any:
    """The loss as a tree of the event classes in ``events``, for example `dp_accounting` itself.

    Events state noise over the sensitivity of the term, for any relation between neighbours. Raises
    `NoBound` for a term without an event, or without one in this version of the classes.
    """
    whole = PrivacyLoss.of(loss) if isinstance(loss, Term) else loss
    if not isinstance(whole, PrivacyLoss):
        raise InvalidArgument(f"loss = {loss!r}: give a term or a privacy loss")
    return _tree(whole, events)


# Reading


@dataclass(slots=True)
class _Reader:
    """Reads one tree. Results are cached, since trees may share branches."""

    change: Change
    known: dict[int, tuple[object, PrivacyLoss]] = field(default_factory=dict)

    def loss(self, event: Any, depth: int) -> PrivacyLoss:
        """The loss of the branch at this depth."""
        if depth > _DEEPEST:
            raise InvalidArgument(f"event: give a tree of at most {_DEEPEST} levels")
        if id(event) not in self.known:
            self.known[id(event)] = (event, self._read(event, depth + 1))
        return self.known[id(event)][1]

    def _read(self, event: Any, depth: int) -> PrivacyLoss:
        match type(event).__name__:
            case "NoOpDpEvent":
                return PrivacyLoss()
            case "SelfComposedDpEvent":
                count = _checks.count(count=_field(event, "count"))
                return self.loss(_field(event, "event"), depth) * count
            case "ComposedDpEvent":
                parts = [self.loss(part, depth) for part in _events(event)]
                return PrivacyLoss(tuple(term for part in parts for term in part.terms))
            case name:
                term = self._term(event, name, depth)
        if term is None:
            return PrivacyLoss()
        if term.change not in (None, self.change):
            raise WrongUnit(
                f"{name} has no bound for neighbours with {self.change}: give change={term.change}"
            )
        return PrivacyLoss.of(term)

    def _term(self, event: Any, name: str, depth: int) -> Term | None:
        """The term of an event of this name; None if it costs nothing."""
        if around := _AROUND.get(name):
            return around(event, self.loss(_field(event, "event"), depth))
        if noise := _NOISE.get(name):
            return noise(event, 2 if self.change is Change.REPLACE else 1)
        if other := _OTHERS.get(name):
            return other(event)
        raise _unknown(event)


def _unknown(event: object) -> Exception:
    name = type(event).__name__
    if name == "NonPrivateDpEvent":
        return NoBound(
            "NonPrivateDpEvent has no privacy loss: it marks an access that is not private"
        )
    if name.endswith("DpEvent"):
        return NoBound(f"{name} has no term here")
    return InvalidArgument(f"event is of the class {name}: give a DpEvent")


def _field(event: Any, name: str) -> Any:
    try:
        return getattr(event, name)
    except AttributeError:
        raise InvalidArgument(f"{type(event).__name__} has no field {name!r}") from None


def _events(event: Any) -> list[Any]:
    found = _field(event, "events")
    if not isinstance(found, list | tuple):
        raise InvalidArgument(f"events = {found!r}: give a list of events")
    return list(found)


def _checked(check: Callable[..., T], event: Any, name: str) -> T:
    """The checked value of this field."""
    return check(**{name: _field(event, name)})


def _noise(event: Any) -> Fraction:
    return _checked(_checks.positive, event, "noise_multiplier")


def _epsilon(event: Any) -> Fraction:
    return _checked(_checks.not_negative, event, "epsilon")


def _discrete_laplace(event: Any, shift: int) -> Term | None:
    rate = _checked(_checks.positive, event, "noise_parameter")
    sensitivity = _checked(_checks.count, event, "sensitivity")
    return terms.DiscreteLaplace(1 / rate, shift * sensitivity) if sensitivity else None


def _discrete_gaussian(event: Any, shift: int) -> Term | None:
    """A single number moves by a whole number. For a vector, or an unknown dimension, the
    sensitivity is an L2 distance."""
    sigma = _checked(_checks.positive, event, "sigma")
    move = shift * _checked(_checks.not_negative, event, "sensitivity")
    if _field(event, "dimension") == 1:
        return terms.DiscreteGaussian(sigma, math.floor(move)) if move >= 1 else None
    return terms.DiscreteGaussianVector(sigma, move**2) if move else None


def _randomized_response(event: Any) -> Term | None:
    """With probability p the answer is one of k values, uniformly; else it is true. So the true
    value has odds (1 - p + p/k) / (p/k) against each other value."""
    values = _checked(_checks.positive_count, event, "num_buckets")
    if values == 1:
        return None
    noise = _checked(_checks.positive, event, "noise_parameter")
    if noise > 1:
        raise InvalidArgument(f"noise_parameter = {shown(noise)}: give a number above 0, up to 1")
    if noise == 1:
        return terms.RandomizedResponse(0, values)
    with precision(_BITS):
        epsilon = upper_fraction(ball(values * (1 - noise) / noise).log1p())
    return terms.RandomizedResponse(decimal_up(epsilon, _DIGITS), values)


def _zcdp(event: Any) -> Term:
    """A Renyi divergence of at most xi + rho * order is at most (xi + rho) * order, since orders
    are at least 1."""
    rho = _checked(_checks.not_negative, event, "rho")
    return terms.Zcdp(rho + _checks.not_negative(xi=getattr(event, "xi", 0)))


def _approximate(event: Any) -> Term:
    epsilon, delta = _epsilon(event), _checked(_checks.delta, event, "delta")
    return terms.Approximate(epsilon, delta) if delta else terms.Pure(epsilon)


def _rate(event: Any) -> Fraction:
    rate = _checked(_checks.not_negative, event, "sampling_probability")
    if rate > 1:
        raise InvalidArgument(f"sampling_probability = {shown(rate)}: give a number from 0 to 1")
    return rate


def _sizes(event: Any) -> tuple[int, int]:
    sample = _checked(_checks.positive_count, event, "sample_size")
    return sample, _checked(_checks.positive_count, event, "source_dataset_size")


def _truncated(event: Any) -> Term:
    """A Poisson sample that is cut at random. One of the neighbours has one record more than the
    event states."""
    most = _checked(_checks.positive_count, event, "truncated_batch_size")
    records = _checked(_checks.count, event, "dataset_size") + 1
    return terms.TruncatedPoisson(terms.Gaussian(_noise(event)), _rate(event), most, records)


def _tuned(event: Any, loss: PrivacyLoss) -> Term:
    """The best of a random number of runs: Poisson, if the shape is infinite, else negative
    binomial. The mean may be rounded up a little."""
    mean, shape = _checked(_checks.positive, event, "mean"), _field(event, "shape")
    if isinstance(shape, float) and shape == math.inf:
        return terms.TunedPoisson(loss, mean)
    eta = _checks.not_negative(shape=shape)
    if mean < 1:
        raise InvalidArgument(f"mean = {shown(mean)}: give a number of runs, 1 or above")
    runs = _best_run.NegativeBinomial.of_mean(eta, mean)
    return terms.TunedNegativeBinomial(loss, eta, runs.gamma)


# Noise counts the relation between neighbours: the second argument is 2 for a replaced record.
_NOISE: dict[str, Callable[[Any, int], Term | None]] = {
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "GaussianDpEvent": lambda event, shift: terms.Gaussian(_noise(event) / shift),
    "LaplaceDpEvent": lambda event, shift: terms.Laplace(_noise(event) / shift),
}
_OTHERS: dict[str, Callable[[Any], Term | None]] = {
    "EpsilonDeltaDpEvent": _approximate,
    # their epsilon is the width of the range of all losses
    "ExponentialMechanismDpEvent": lambda event: terms.BoundedRange(_epsilon(event)),
    # McKenna and Sheldon (2020), Theorem 1
    "PermuteAndFlipDpEvent": lambda event: terms.Pure(_epsilon(event)),
    "RandomizedResponseDpEvent": _randomized_response,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "ZCDpEvent": _zcdp,
}
_AROUND: dict[str, Callable[[Any, PrivacyLoss], Term]] = {
    "PoissonSampledDpEvent": lambda event, loss: terms.PoissonSampled(loss, _rate(event)),
    "RepeatAndSelectDpEvent": _tuned,
    "SampledWithReplacementDpEvent": lambda event, loss: terms.SampledWithReplacement(
        loss, *_sizes(event)
    ),
    "SampledWithoutReplacementDpEvent": lambda event, loss: terms.SampledWithoutReplacement(
        loss, *_sizes(event)
    ),
}


# Writing


def _tree(loss: PrivacyLoss, events: Any) -> Any:
    parts = []
    for term, count in loss.terms:
        one = _event(term, events)
        parts.append(_new_event(events, "SelfComposedDpEvent", one, count) if count > 1 else one)
    match parts:
        case []:
            return _new_event(events, "NoOpDpEvent")
        case [only]:
            return only
    return _new_event(events, "ComposedDpEvent", parts)


def _new_event(events: Any, name: str, *values: object) -> Any:
    """An event of this class, which is found in ``events`` or in its module ``dp_event``."""
    for place in (events, getattr(events, "dp_event", None)):
        if kind := getattr(place, name, None):
            return kind(*values)
    raise NoBound(f"there is no {name} among the given events: give a version that has one")


def _event(term: Term, events: Any) -> Any:
    """The event of one term, with its numbers rounded against us."""
    if name_and_values := _noise_event(term) or _promise_event(term):
        name, *values = name_and_values
        return _new_event(events, name, *values)
    match term:
        case terms.PoissonSampled(privacy_loss=loss, rate=rate):
            inner = _tree(loss, events)
            return _new_event(events, "PoissonSampledDpEvent", float_up(rate), inner)
        case terms.SampledWithoutReplacement() | terms.SampledWithReplacement():
            sizes = int(term.population), int(term.sample)
            inner = _tree(term.privacy_loss, events)
            return _new_event(events, f"{type(term).__name__}DpEvent", *sizes, inner)
        case terms.TunedPoisson(privacy_loss=loss, mean=mean, most=0):
            inner = _tree(loss, events)
            return _new_event(events, "RepeatAndSelectDpEvent", inner, float_up(mean), math.inf)
        case terms.TunedNegativeBinomial(privacy_loss=loss, eta=eta, gamma=gamma, most=0):
            if eta >= 0 and fraction(float(eta)) == eta:
                inner, runs = _tree(loss, events), _mean(eta, gamma)
                return _new_event(events, "RepeatAndSelectDpEvent", inner, runs, float(eta))
    raise NoBound(f"there is no event for {term!r}")


def _mean(eta: Fraction, gamma: Fraction) -> float:
    with precision(_BITS):
        return float_up(_best_run.NegativeBinomial(eta, gamma).mean())


_NamedValues = tuple[str, *tuple[float | int | None, ...]]


def _noise_event(term: Term) -> _NamedValues | None:
    """The name and values of the event of a noise term."""
    match term:
        case terms.Gaussian(multiplier=noise):
            return "GaussianDpEvent", float_down(noise)
        case terms.Laplace(multiplier=noise):
            return "LaplaceDpEvent", float_down(noise)
        case terms.DiscreteLaplace(scale=scale, sensitivity=most):
            return "DiscreteLaplaceDpEvent", float_up(1 / scale), int(most)
        case terms.DiscreteGaussian(stddev=stddev, sensitivity=most):
            return "DiscreteGaussianDpEvent", float_down(stddev), float_up(fraction(most)), None
        case terms.DiscreteGaussianVector(stddev=stddev, squared_sensitivity=square):
            with precision(_BITS):
                length = float_up(ball(square).sqrt())
            return "DiscreteGaussianDpEvent", float_down(stddev), length, None
        case terms.RandomizedResponse(epsilon=epsilon, categories=values):
            with precision(_BITS):
                odds = ball(epsilon).exp() + ball(values - 1)
                share = float_down(ball(values) / odds)
            return "RandomizedResponseDpEvent", share, int(values)
    return None


def _promise_event(term: Term) -> _NamedValues | None:
    """The name and values of the event of a term that is a promise."""
    match term:
        case terms.Pure(epsilon=epsilon):
            return "EpsilonDeltaDpEvent", float_up(epsilon), 0.0
        case terms.Approximate(epsilon=epsilon, delta=delta):
            return "EpsilonDeltaDpEvent", float_up(epsilon), float_up(delta)
        case terms.BoundedRange(eta=eta):
            return "ExponentialMechanismDpEvent", float_up(eta)
        case terms.Zcdp(rho=rho):
            return "ZCDpEvent", float_up(rho), 0.0
    return None
