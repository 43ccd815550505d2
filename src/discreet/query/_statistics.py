"""Statistics of a table by the mechanisms of `discreet.mechanisms`, one release each."""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet import _checks
from discreet._budget import Receipt
from discreet._exact import Number
from discreet._unit import Change
from discreet.accounting import PrivacyLoss
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
from discreet.mechanisms.selection import BestOfEachGroup, Moves, PermuteAndFlip, TopK
from discreet.mechanisms.statistics import Moments, Regression, moments, regression
from discreet.query._columns import KeyValue
from discreet.query._diagnosis import LEAST_RISK
from discreet.query._forecast import limits_in_words
from discreet.query._hand_over import TableRows
from discreet.query._plan import Plan
from discreet.query._price import check_scale
from discreet.query._private_keys import refuse_private_keys
from discreet.query._statistic import Asking

_CONFIDENCE = Fraction(95, 100)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class TopGroups:
    """The groups with the most rows, the largest first, without their counts.

    ``error`` is in rows: with probability ``confidence``, each group here has at most this many
    rows fewer than the k-th largest group. Everything here may be shown to anyone.
    """

    plan: Plan
    groups: tuple[tuple[KeyValue, ...], ...]
    error: int
    confidence: Fraction
    release: Release[Any]  # Any: the places of the groups

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the answer, for its unit."""
        return self.release.privacy_loss

    @property
    def receipt(self) -> Receipt:
        """The ledger's proof that the charge was recorded first."""
        return self.release.receipt

    def rows(self) -> list[dict[str, object]]:
        """The groups as dictionaries, with their rank from 1."""
        return [
            {"rank": rank, **dict(zip(self.plan.query.key_names, group, strict=True))}
            for rank, group in enumerate(self.groups, 1)
        ]

    def to_pandas(self) -> "pd.DataFrame":
        """The groups as a pandas frame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = [f"{rank}. {', '.join(map(str, g))}" for rank, g in enumerate(self.groups, 1)]
        level = f"{float(self.confidence):.4g}"
        note = (
            f"each has at most {self.error:,} rows fewer than the group of rank "
            f"{len(self.groups)}, at {level} confidence"
        )
        title = f"by {', '.join(self.plan.query.key_names)}"
        return "\n".join([title, *lines, note, *limits_in_words(self.plan)])


def top_groups(table: TableRows, k: int, asking: Asking) -> TopGroups:
    """The release of the k groups with the most rows."""
    plan, counts = table.plan, table.counts()
    if len(plan.groups) < 2:
        raise QueryRefused("top_k chooses among groups: name columns with keys in group_by")
    is_added = _is_added(plan)
    moves = Moves.TOGETHER if is_added else Moves.ANYHOW
    chosen = TopK.for_epsilon(asking.epsilon, counts, range(len(plan.groups)), k=k, moves=moves)
    error = chosen.error(asking.confidence)
    rehearse(chosen, np.zeros(len(plan.groups), dtype=np.int64))
    found = _released(counts, chosen, asking, f"TOP {k}")
    groups = tuple(plan.groups[cast(int, place)] for place in found.value)
    return TopGroups(plan, groups, error, asking.confidence, found)


@dataclass(frozen=True, slots=True, repr=False)
class Modes:
    """For each group the key of a column that most rows have, or nearly so.

    ``error`` is in rows: with probability ``confidence``, in a group by itself, the key here has at
    most this many rows fewer than the most frequent one. Everything here may be shown to anyone.
    """

    plan: Plan
    modes: tuple[tuple[tuple[KeyValue, ...], KeyValue], ...]
    error: int
    confidence: Fraction
    release: Release[Any]  # Any: a place for each group

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the answer, for its unit."""
        return self.release.privacy_loss

    @property
    def receipt(self) -> Receipt:
        """The ledger's proof that the charge was recorded first."""
        return self.release.receipt

    def rows(self) -> list[dict[str, object]]:
        """The groups and their modes as dictionaries."""
        return [
            dict(zip(self.plan.query.key_names, (*group, mode), strict=True))
            for group, mode in self.modes
        ]

    def to_pandas(self) -> "pd.DataFrame":
        """The modes as a pandas frame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = [", ".join(f"{name} {value}" for name, value in row.items()) for row in self.rows()]
        column = self.plan.query.key_names[-1]
        note = (
            f"each has at most {self.error:,} rows fewer than the most frequent {column}, at "
            f"{float(self.confidence):.4g} confidence, each group by itself"
        )
        return "\n".join([*lines, note, *limits_in_words(self.plan)])


def released_modes(table: TableRows, asking: Asking) -> Modes:
    """The release of the most frequent value of the last key in each group of the others. A unit
    pays for all groups once, by the rows for which it counts in all."""
    plan = table.plan
    refuse_private_keys(plan, "mode")
    column = plan.query.key_names[-1]
    candidates = tuple(dict.fromkeys(group[-1] for group in plan.groups))
    groups = tuple(dict.fromkeys(group[:-1] for group in plan.groups))
    if len(candidates) < 2:
        raise QueryRefused(f"mode chooses among values: {column} has one key")
    is_one, places = len(groups) == 1, range(len(candidates))
    shape = (len(places),) if is_one else (len(groups), len(places))
    counts = table.counts(shape)
    is_added = _is_added(plan)
    moves = Moves.TOGETHER if is_added else Moves.ANYHOW
    chosen = (
        PermuteAndFlip.for_epsilon(asking.epsilon, counts, places, moves=moves)
        if is_one
        else BestOfEachGroup.for_epsilon(
            asking.epsilon, counts, groups=range(len(groups)), candidates=places, moves=moves
        )
    )
    error = chosen.error(asking.confidence)
    rehearse(chosen, np.zeros(shape, dtype=np.int64))
    found = _released(counts, chosen, asking, f"MODE OF {column}")
    drawn = {0: found.value} if is_one else found.value
    modes = tuple(
        (group, candidates[cast(int, drawn[place])]) for place, group in enumerate(groups)
    )
    return Modes(plan, modes, error, asking.confidence, found)


def released_moments(rows: Bounded[Rows], asking: Asking) -> Moments:
    """The release of all moments of the rows' columns, with the noise that errs less."""
    facts = moments(rows)
    noise = better_noise(facts, asking.epsilon, asking.delta)
    check_scale([noise])
    rehearse(noise, np.zeros(1, dtype=object))
    found = release(facts, noise, asking.ledger, by=asking.by, request=asking.request)
    return Moments.of(found, rows)


def released_regression(
    rows: Bounded[Rows], outcome: str, names: tuple[str, ...], asking: Asking
) -> Regression:
    """The release of the moments, and the coefficients that follow from them."""
    if 1 - asking.confidence < LEAST_RISK:
        raise InvalidArgument("regression: give a confidence of at most 1 - 1e-30")
    known = released_moments(rows, asking)
    with np.errstate(all="ignore"):  # a warning would depend on the noise
        return regression(known, outcome, names, asking.confidence)


def released_bounds(rows: Bounded[Rows], asking: Asking) -> Release[tuple[float, float] | None]:
    """The release of bounds that hold most values."""
    return _released(rows, ApproximateBounds.for_epsilon(asking.epsilon, rows), asking, "BOUNDS")


def _released(
    bounded: Bounded[Any], mechanism: Mechanism[Any, Any], asking: Asking, title: str
) -> Release[Any]:  # Any: as the mechanism has it
    purpose = _purpose(title, bounded)
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


def _purpose(what: str, bounded: Bounded[Any]) -> str:  # Any: rows or counts
    return f"{what}: {bounded.name}"


def _is_added(plan: Plan) -> bool:
    """Whether no count falls when a unit comes. Through another table, a key that two units count
    for is in no group."""
    facts = plan.declaration
    return facts.unit.change is Change.ADD_REMOVE and facts.through is None
