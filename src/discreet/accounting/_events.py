"""To and from the `DpEvent` trees of Google's dp_accounting, which is never imported here.

Events are known by the names of their classes and fields. Whatever has to be rounded on the way is
rounded against us, so that neither side promises more than the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

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
from discreet._unit import Change
from discreet.accounting import _tuning, terms
from discreet.accounting._loss import PrivacyLoss, Term
from discreet.errors import InvalidArgument, NoBound, WrongUnit

_DEEPEST = 50
_DIGITS = 15
_BITS = 256


def from_dp_event(
    event: Any,  # Any: a class of a package that isn't imported
    change: Change = Change.ADD_REMOVE,
) -> PrivacyLoss:
    """The privacy loss of a tree of dp_accounting's events, for neighbours that differ in this way.

    An event has the noise over the largest size of one record's value. A record that is
    replaced moves a sum by twice that, so with `Change.REPLACE` noise counts half (as in their
    `PLDAccountant` with `REPLACE_ONE`; their `RdpAccountant` takes it whole).

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class GaussianDpEvent:
    ...     noise_multiplier: float
    >>> from_dp_event(GaussianDpEvent(4.0))
    accounting.Gaussian(multiplier=4)
    """
    if not isinstance(change, Change):
        raise InvalidArgument(f"change = {change!r}: give Change.ADD_REMOVE or Change.REPLACE")
    return _Reader(change).loss(event, depth=0)


def to_dp_event(
    loss: PrivacyLoss | Term,
    events: Any,  # Any: a package that isn't imported
) -> Any:
    """The loss as a tree of the event classes in ``events``, for example `dp_accounting` itself.

    Noise is given over the sensitivity that the term names, whatever the neighbours are. Raises
    `NoBound` for a term for which there is no event, or none in this version.
    """
    whole = PrivacyLoss.of(loss) if isinstance(loss, Term) else loss
    if not isinstance(whole, PrivacyLoss):
        raise InvalidArgument(f"loss = {loss!r}: give a term or a privacy loss")
    return _written(whole, events)


# Reading


@dataclass(slots=True)
class _Reader:
    """The state of reading one tree; results are stored, since trees may share their branches."""

    change: Change
    known: dict[int, tuple[object, PrivacyLoss]] = field(default_factory=dict)

    def loss(self, event: Any, depth: int) -> PrivacyLoss:
        """The loss of this branch, which lies so deep."""
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
                f"{name} says nothing of neighbours with {self.change}: give change={term.change}"
            )
        return PrivacyLoss.of(term)

    def _term(self, event: Any, name: str, depth: int) -> Term | None:
        """The term of an event of this name, or None if it costs nothing."""
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
        return NoBound("NonPrivateDpEvent has no privacy loss: what it stands for is not private")
    if name.endswith("DpEvent"):
        return NoBound(f"nothing is known here of {name}")
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


def _gaussian(event: Any, shift: int) -> Term:
    noise = _checks.positive(noise_multiplier=_field(event, "noise_multiplier"))
    return terms.Gaussian(noise / shift)


def _laplace(event: Any, shift: int) -> Term:
    noise = _checks.positive(noise_multiplier=_field(event, "noise_multiplier"))
    return terms.Laplace(noise / shift)


def _discrete_laplace(event: Any, shift: int) -> Term | None:
    rate = _checks.positive(noise_parameter=_field(event, "noise_parameter"))
    sensitivity = _checks.count(sensitivity=_field(event, "sensitivity"))
    return terms.DiscreteLaplace(1 / rate, shift * sensitivity) if sensitivity else None


def _discrete_gaussian(event: Any, shift: int) -> Term | None:
    """One number moves by a whole number; of vectors, or if nothing is said, the L2 distance is
    known."""
    sigma = _checks.positive(sigma=_field(event, "sigma"))
    move = shift * _checks.not_negative(sensitivity=_field(event, "sensitivity"))
    if _field(event, "dimension") == 1:
        return terms.DiscreteGaussian(sigma, math.floor(move)) if move >= 1 else None
    return terms.DiscreteGaussianVector(sigma, move**2) if move else None


def _randomized_response(event: Any) -> Term | None:
    """With probability p the answer is one of k values, each as probable; else it is true. So the
    true one has odds (1 - p + p/k) / (p/k) against each other."""
    values = _checks.positive_count(num_buckets=_field(event, "num_buckets"))
    if values == 1:
        return None
    noise = _checks.positive(noise_parameter=_field(event, "noise_parameter"))
    if noise > 1:
        raise InvalidArgument(f"noise_parameter = {shown(noise)}: give a number above 0, up to 1")
    if noise == 1:
        return terms.RandomizedResponse(0, values)
    with precision(_BITS):
        epsilon = upper_fraction(ball(values * (1 - noise) / noise).log1p())
    return terms.RandomizedResponse(decimal_up(epsilon, _DIGITS), values)


def _exponential(event: Any) -> Term:
    """Their epsilon is the width of the range in which all losses lie."""
    return terms.BoundedRange(_checks.not_negative(epsilon=_field(event, "epsilon")))


def _permute_and_flip(event: Any) -> Term:
    """epsilon-DP (McKenna and Sheldon 2020, Theorem 1)."""
    return terms.Pure(_checks.not_negative(epsilon=_field(event, "epsilon")))


def _zcdp(event: Any) -> Term:
    """A Renyi divergence of at most xi + rho * order is at most (xi + rho) * order, orders being
    at least 1."""
    rho = _checks.not_negative(rho=_field(event, "rho"))
    return terms.Zcdp(rho + _checks.not_negative(xi=getattr(event, "xi", 0)))


def _approximate(event: Any) -> Term:
    epsilon = _checks.not_negative(epsilon=_field(event, "epsilon"))
    delta = _checks.delta(delta=_field(event, "delta"))
    return terms.Approximate(epsilon, delta) if delta else terms.Pure(epsilon)


def _poisson(event: Any, loss: PrivacyLoss) -> Term:
    return terms.PoissonSampled(loss, _rate(event))


def _rate(event: Any) -> Fraction:
    rate = _checks.not_negative(sampling_probability=_field(event, "sampling_probability"))
    if rate > 1:
        raise InvalidArgument(f"sampling_probability = {shown(rate)}: give a number from 0 to 1")
    return rate


def _without_replacement(event: Any, loss: PrivacyLoss) -> Term:
    return terms.SampledWithoutReplacement(loss, *_sizes(event))


def _with_replacement(event: Any, loss: PrivacyLoss) -> Term:
    return terms.SampledWithReplacement(loss, *_sizes(event))


def _sizes(event: Any) -> tuple[int, int]:
    sample = _checks.positive_count(sample_size=_field(event, "sample_size"))
    size = _checks.positive_count(source_dataset_size=_field(event, "source_dataset_size"))
    return sample, size


def _truncated(event: Any) -> Term:
    """Poisson samples cut at random; one neighbour has one record more than the event says."""
    noise = _checks.positive(noise_multiplier=_field(event, "noise_multiplier"))
    most = _checks.positive_count(truncated_batch_size=_field(event, "truncated_batch_size"))
    records = _checks.count(dataset_size=_field(event, "dataset_size")) + 1
    return terms.TruncatedPoisson(terms.Gaussian(noise), _rate(event), most, records)


def _tuned(event: Any, loss: PrivacyLoss) -> Term:
    """The best of a number of runs that is Poisson, if the shape is infinite, or else negative
    binomial; where their mean can't be met just so, by a hair more runs."""
    mean, shape = _checks.positive(mean=_field(event, "mean")), _field(event, "shape")
    if isinstance(shape, float) and shape == math.inf:
        return terms.TunedPoisson(loss, mean)
    eta = _checks.not_negative(shape=shape)
    if mean < 1:
        raise InvalidArgument(f"mean = {shown(mean)}: give a number of runs, 1 or above")
    runs = _tuning.NegativeBinomial.of_mean(eta, mean)
    return terms.TunedNegativeBinomial(loss, eta, runs.gamma)


_NOISE: dict[str, Callable[[Any, int], Term | None]] = {
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
}
_OTHERS: dict[str, Callable[[Any], Term | None]] = {
    "EpsilonDeltaDpEvent": _approximate,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute_and_flip,
    "RandomizedResponseDpEvent": _randomized_response,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "ZCDpEvent": _zcdp,
}
_AROUND: dict[str, Callable[[Any, PrivacyLoss], Term]] = {
    "PoissonSampledDpEvent": _poisson,
    "RepeatAndSelectDpEvent": _tuned,
    "SampledWithReplacementDpEvent": _with_replacement,
    "SampledWithoutReplacementDpEvent": _without_replacement,
}


# Writing


def _written(loss: PrivacyLoss, events: Any) -> Any:
    parts = []
    for term, count in loss.terms:
        one = _event(term, events)
        parts.append(_made(events, "SelfComposedDpEvent", one, count) if count > 1 else one)
    match parts:
        case []:
            return _made(events, "NoOpDpEvent")
        case [only]:
            return only
    return _made(events, "ComposedDpEvent", parts)


def _made(events: Any, name: str, *values: object) -> Any:
    """The event of this class, found among the events or in their ``dp_event``."""
    for place in (events, getattr(events, "dp_event", None)):
        if kind := getattr(place, name, None):
            return kind(*values)
    raise NoBound(f"there is no {name} among the given events: give a version that has one")


def _event(term: Term, events: Any) -> Any:
    """The event of one term, its numbers rounded against us."""
    if name_and_values := _noise_event(term) or _promise_event(term):
        name, *values = name_and_values
        return _made(events, name, *values)
    match term:
        case terms.PoissonSampled(privacy_loss=loss, rate=rate):
            inner = _written(loss, events)
            return _made(events, "PoissonSampledDpEvent", float_up(rate), inner)
        case terms.SampledWithoutReplacement(privacy_loss=loss, sample=sample, population=whole):
            name, sizes = "SampledWithoutReplacementDpEvent", (int(whole), int(sample))
            return _made(events, name, *sizes, _written(loss, events))
        case terms.SampledWithReplacement(privacy_loss=loss, sample=sample, population=whole):
            name, sizes = "SampledWithReplacementDpEvent", (int(whole), int(sample))
            return _made(events, name, *sizes, _written(loss, events))
        case terms.TunedPoisson(privacy_loss=loss, mean=mean, most=0):
            inner = _written(loss, events)
            return _made(events, "RepeatAndSelectDpEvent", inner, float_up(mean), math.inf)
        case terms.TunedNegativeBinomial(privacy_loss=loss, eta=eta, gamma=gamma, most=0):
            if eta >= 0 and fraction(float(eta)) == eta:
                inner, runs = _written(loss, events), _mean(eta, gamma)
                return _made(events, "RepeatAndSelectDpEvent", inner, runs, float(eta))
    raise NoBound(f"there is no event for {term!r}")


def _mean(eta: Fraction, gamma: Fraction) -> float:
    with precision(_BITS):
        return float_up(_tuning.NegativeBinomial(eta, gamma).mean())


_NamedValues = tuple[str, *tuple[float | int | None, ...]]


def _noise_event(term: Term) -> _NamedValues | None:
    """The event of a term that is noise on a number or a vector, with its values."""
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
    """The event of a term that says what some mechanism satisfies, with its values."""
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
