"""Prices a plan: shares the epsilon among its sums, and chooses the noise of each."""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import field as plain_field
from enum import Enum
from fractions import Fraction
from typing import Annotated, Any

from discreet import _checks
from discreet._exact import Number, decimal_up, root_down, shown
from discreet._fields import Converted, Delta, Positive, field, frozen
from discreet._frozen import FrozenMapping
from discreet.accounting import PrivacyLoss
from discreet.accounting._analytic import gaussian_multiplier
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, DiscreteLaplace, Gaussian, Together
from discreet.mechanisms.quantiles import QuantileIntervals
from discreet.mechanisms.selection import BestOfEachGroup, Moves, PermuteAndFlip
from discreet.mechanisms.thresholds import GaussianThreshold, LaplaceThreshold
from discreet.mechanisms.thresholds._keys import FOR_KEYS
from discreet.mechanisms.thresholds._keys_first import KeysFirst, alone
from discreet.mechanisms.thresholds._noisy_counts import threshold_for
from discreet.query._outputs._post_processing import measure, most_parts
from discreet.query._plan._key_counts import moves_of_counts
from discreet.query._plan._plan import Plan
from discreet.query._plan._private_keys import refuse_without_delta

_WIDEST = 1e200
_SPARE = 1 + Fraction(1, 10**12)


class Noise(Enum):
    """A release's noise: discrete Laplace (pure epsilon) or rounded Gaussian (needs a delta)."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


def _noise_kind(**named: object) -> Noise | None:
    ((name, value),) = named.items()
    if value is None or isinstance(value, Noise):
        return value
    raise InvalidArgument(f"{name} = {value!r}: give Noise.LAPLACE, Noise.GAUSSIAN or nothing")


def _weights(**named: object) -> Mapping[str, Fraction]:
    ((name, value),) = named.items()
    if value is not None and not isinstance(value, Mapping):
        raise InvalidArgument(
            f"{name} = {_checks.quoted(value)}: give a number for each name, like {{'pay': 2}}"
        )
    return FrozenMapping({n: _checks.positive(weight=w) for n, w in (value or {}).items()})


@frozen
class QuestionPrice:
    """The epsilon and delta that a caller pays for one question, and how to share them.

    ``weights`` gives aggregates, by name, larger or smaller shares than 1. Without ``noise``, the
    noise with the smaller forecast error is chosen. Gaussian noise needs a ``delta`` above 0.
    """

    epsilon: Positive
    delta: Delta = field(default=0)
    noise: Annotated[Noise | None, _noise_kind] = field(default=None, kw_only=True)
    weights: Annotated[Converted[Mapping[str, Fraction], Mapping[str, Number] | None], _weights] = (
        field(default=None, kw_only=True)
    )

    def __post_init__(self) -> None:
        """Refuse Gaussian noise without a delta."""
        if self.noise is Noise.GAUSSIAN and self.delta == 0:
            raise InvalidArgument(
                "Gaussian noise needs a delta above 0: name one, such as delta=1e-6"
            )


ChoiceOfKeys = PermuteAndFlip | BestOfEachGroup
PartMechanism = DiscreteLaplace | Gaussian | QuantileIntervals | ChoiceOfKeys
Parts = Mapping[str, Bounded[Any]]  # Any: integers or rows


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan with the mechanism of each of its parts, as releases and forecasts need it."""

    plan: Plan
    mechanisms: Mapping[str, PartMechanism] = plain_field(hash=False)
    shares: Mapping[str, Fraction] = plain_field(hash=False)
    threshold: int = 0  # of the count that decides on private keys, as the mechanism gets it

    def __post_init__(self) -> None:
        """Copy both mappings, so that they can't change between the price and the draw."""
        for name in ("mechanisms", "shares"):
            object.__setattr__(self, name, FrozenMapping(getattr(self, name)))

    @property
    def together(self) -> Together | KeysFirst:
        """The mechanisms as one."""
        if not self.plan.private:
            return Together(self.mechanisms)
        others = {
            name: one for name, one in self.mechanisms.items() if not isinstance(one, ChoiceOfKeys)
        }
        noise = others.pop(first := self.plan.deciding.name)
        assert not isinstance(noise, QuantileIntervals)  # which no sum has
        return KeysFirst(
            first,
            LaplaceThreshold(scale=noise.scale, threshold=self.threshold)
            if isinstance(noise, DiscreteLaplace)
            else GaussianThreshold(stddev=noise.stddev, threshold=self.threshold),
            others,
        )

    @property
    def noise(self) -> Noise:
        """The kind of noise, the same for all sums."""
        is_gaussian = any(isinstance(m, Gaussian) for m in self.mechanisms.values())
        return Noise.GAUSSIAN if is_gaussian else Noise.LAPLACE

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the release, for its unit."""
        return self.together.privacy_loss(self.plan.bounded())


def price_plan(plan: Plan, price: QuestionPrice, confidence: Number) -> PricedPlan:
    """The plan with the mechanisms for this price. Where both kinds of noise are possible, it takes
    the one whose half-widths at this confidence have the smaller product. Quantiles and modes take
    their share of epsilon without a delta."""
    if plan.private and price.delta == 0:
        refuse_without_delta(plan)
    shares, level = _shares(plan, price), _checks.probability(confidence=confidence)
    parts, paid = _parts(plan), {name: share * price.epsilon for name, share in shares.items()}
    drawn = _quantiles(plan, parts, paid, level) | _choices(plan, parts, paid)
    offers = []
    if price.noise is not Noise.GAUSSIAN or not plan.sums:
        noise = drawn | _laplace(plan, parts, paid)
        offers.append(_with_threshold(PricedPlan(plan, noise, shares), price.delta))
    if price.noise is not Noise.LAPLACE and price.delta > 0 and plan.sums:
        # with private keys, half of delta is for the noise, nearly half for the keys
        half = price.delta / 2 if plan.private else price.delta
        with suppress(ArithmeticError):  # of a price that is too large for any such noise
            noise = drawn | _gaussian(plan, parts, replace(price, delta=half), shares)
            offers.append(_with_threshold(PricedPlan(plan, noise, shares), half * FOR_KEYS))
    if not offers:
        raise InvalidArgument(
            f"epsilon = {shown(price.epsilon)}, delta = {shown(price.delta)}: no Gaussian noise "
            "is that small; name less, or Noise.LAPLACE"
        )
    for one in offers:
        check_scale(one.mechanisms.values())
    return min(offers, key=lambda one: _size(one, confidence))


def _with_threshold(priced: PricedPlan, delta: Fraction) -> PricedPlan:
    """The plan with the least threshold that shows a unit's own keys with at most this probability;
    without private keys as it is."""
    if not priced.plan.private:
        return priced
    check_scale(priced.mechanisms.values())
    noise = priced.mechanisms[first := priced.plan.deciding.name]
    assert isinstance(noise, DiscreteLaplace | Gaussian)  # as every sum has
    threshold = threshold_for(delta, noise.law, priced.plan.bounded().only(first))
    return replace(priced, threshold=threshold)


def check_scale(mechanisms: Iterable[PartMechanism]) -> None:
    """Refuse noise that could leave the range of floats, in which intervals are computed. At the
    largest standard deviation allowed, 1e308 is more than 1e100 of them away."""
    try:
        widest = max((one.stddev_of_noise() for one in _additive(mechanisms)), default=0)
    except ArithmeticError:
        widest = math.inf
    if not widest < _WIDEST:
        raise InvalidArgument(
            "the noise of this price would have a standard deviation beyond 1e200; name a larger "
            "epsilon or delta"
        )


def _shares(plan: Plan, price: QuestionPrice) -> dict[str, Fraction]:
    """Each part's share of the price. An aggregate gets a share by its weight, and divides it
    equally among its parts; a part that is an aggregate by itself is paid there already. Aggregates
    of the same parts get one share together, by the largest of their weights."""
    names = [aggregate.name for aggregate in plan.query.aggregates]
    unknown = set(price.weights) - set(names)
    if unknown:
        raise InvalidArgument(
            f"weights: {min(unknown)!r} is no aggregate here; there are {', '.join(names)}"
        )
    weights: dict[tuple[str, ...], Fraction] = {}
    for name, sources in zip(names, plan.sources, strict=True):
        weight = price.weights.get(name, Fraction(1))
        weights[sources] = max(weight, weights.get(sources, weight))
    named = {source for sources in plan.sources for source in sources}
    unnamed = [(part.name,) for part in plan.parts if part.name not in named]  # it finds keys
    weights |= dict.fromkeys(unnamed, Fraction(1))
    shares = dict.fromkeys((part.name for part in plan.parts), Fraction(0))
    paid_alone = {sources[0] for sources in weights if len(sources) == 1}
    for sources, weight in weights.items():
        to_pay = [source for source in sources if source not in paid_alone] or sources
        for source in to_pay:
            shares[source] += weight / sum(weights.values()) / len(to_pay)
    return shares


def _parts(plan: Plan) -> Parts:
    """Each part's sensitivity for noise, by its name."""
    stated = plan.bounded()
    if plan.private:
        return {part.name: alone(part.name, stated) for part in plan.parts}
    return {part.name: stated.only(part.name) for part in plan.parts}


def _quantiles(
    plan: Plan, parts: Parts, paid: Mapping[str, Fraction], confidence: Fraction
) -> dict[str, PartMechanism]:
    return {
        one.name: QuantileIntervals.for_epsilon(
            paid[one.name],
            parts[one.name],
            level=one.level,
            confidence=_of_quantile(plan, one.name, confidence),
        )
        for one in plan.rows
    }


def _choices(plan: Plan, parts: Parts, paid: Mapping[str, Fraction]) -> dict[str, PartMechanism]:
    """The choice of a key in each group: one price for all groups."""
    moves, groups = moves_of_counts(plan.declaration), len(plan.groups)
    return {
        one.name: choice_of_keys(
            paid[one.name],
            parts[one.name],
            groups,
            len(one.keys),
            moves=moves,
        )
        for one in plan.key_counts
    }


def choice_of_keys(
    epsilon: Number, counts: Bounded[Any], groups: int, keys: int, *, moves: Moves
) -> ChoiceOfKeys:
    """The mechanism that chooses, by the counts of this many keys, the number of one in each group,
    and costs exactly this epsilon."""
    if groups == 1:
        return PermuteAndFlip.for_epsilon(epsilon, counts, range(keys), moves=moves)
    return BestOfEachGroup.for_epsilon(
        epsilon, counts, groups=range(groups), candidates=range(keys), moves=moves
    )


def of_one_group(mechanism: PartMechanism) -> PartMechanism:
    """The same noise for one group."""
    if isinstance(mechanism, QuantileIntervals):
        return replace(mechanism, groups=1)
    if isinstance(mechanism, BestOfEachGroup):
        return PermuteAndFlip(mechanism.candidates, mechanism.rate, moves=mechanism.moves)
    return mechanism


def _of_quantile(plan: Plan, name: str, confidence: Fraction) -> Fraction:
    """The confidence of a quantile's interval, of which outputs may need a higher one."""
    pairs = zip(plan.query.aggregates, plan.sources, strict=True)
    own = {measure(one) for one, sources in pairs if sources == (name,)}
    return 1 - (1 - confidence) / most_parts(plan.query, own)


def _laplace(plan: Plan, parts: Parts, paid: Mapping[str, Fraction]) -> dict[str, PartMechanism]:
    return {
        one.name: DiscreteLaplace.for_epsilon(paid[one.name], parts[one.name]) for one in plan.sums
    }


def _gaussian(
    plan: Plan, parts: Parts, price: QuestionPrice, shares: Mapping[str, Fraction]
) -> dict[str, PartMechanism]:
    """One Gaussian mechanism on the vector of all sums; the sums share its squared mu."""
    of_sums = sum(shares[one.name] for one in plan.sums)
    whole = gaussian_multiplier(of_sums * price.epsilon, price.delta)
    multipliers = {
        one.name: decimal_up(root_down(whole**2 * of_sums / shares[one.name]) * _SPARE, digits=12)
        for one in plan.sums
    }
    return {
        name: Gaussian.for_multiplier(multiplier, parts[name])
        for name, multiplier in multipliers.items()
    }


def _size(one: PricedPlan, confidence: Number) -> float:
    additive = _additive(one.mechanisms.values())
    return math.fsum(math.log(max(m.error(confidence), 0.5)) for m in additive)


def _additive(mechanisms: Iterable[PartMechanism]) -> list[DiscreteLaplace | Gaussian]:
    return [one for one in mechanisms if isinstance(one, DiscreteLaplace | Gaussian)]
