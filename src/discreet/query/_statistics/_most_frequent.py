"""The groups with the most rows, and the most frequent values: one release each."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet import _html
from discreet._exact import Number
from discreet.accounting import PrivacyLoss
from discreet.errors import QueryRefused
from discreet.mechanisms import (
    Release,
    rehearse,
)
from discreet.mechanisms.selection import TopK
from discreet.query._answers._forecast import limits_in_words
from discreet.query._answers._paid_result import PaidResult
from discreet.query._facts._columns import KeyValue
from discreet.query._plan._key_counts import moves_of_counts
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import ChoiceOfKeys, choice_of_keys
from discreet.query._plan._private_keys import refuse_private_keys
from discreet.query._statistics._hand_over import TableRows
from discreet.query._statistics._statistic import Asking, Offer, StatisticForecast
from discreet.query._statistics._statistics import Counts, released_by

if TYPE_CHECKING:
    import pandas as pd

_COUNT_INSTEAD = (
    "; or give a delta and order the counts, as by agg(n=dp.count()).order_by('n', "
    "descending=True).limit(5)"
)


@dataclass(frozen=True, slots=True, repr=False)
class TopGroups(PaidResult):
    """The groups with the most rows, the largest first, without their counts.

    ``error`` is in rows: with probability ``confidence``, each group here has at most this many
    rows fewer than the k-th largest group. Everything here may be shown to anyone.
    """

    plan: Plan
    groups: tuple[tuple[KeyValue, ...], ...]
    error: int
    confidence: Fraction
    release: Release[Any]  # Any: the places of the groups

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
        title = f"by {', '.join(self.plan.query.key_names)}"
        return "\n".join([title, *lines, *self.notes])

    def _repr_html_(self) -> str:
        return _table_of(self.rows()) + _html.notes(self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: the error of the choice, and what caps may have left out."""
        level = f"{float(self.confidence):.4g}"
        note = (
            f"each has at most {self.error:,} rows fewer than the group of rank "
            f"{len(self.groups)}, at {level} confidence"
        )
        return note, *limits_in_words(self.plan)


def _table_of(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows as HTML; there is one at least."""
    return _html.table("", list(rows[0]), [[str(value) for value in row.values()] for row in rows])


def top_groups(table: TableRows, k: int, asking: Asking) -> TopGroups:
    """The release of the k groups with the most rows."""
    plan = table.plan
    counts, chosen = _choice_of_top(table, k, asking.epsilon)
    error = chosen.error(asking.confidence)
    rehearse(chosen, np.zeros(len(plan.groups), dtype=np.int64))
    found = released_by(counts, chosen, asking, f"TOP {k}")
    groups = tuple(plan.groups[cast(int, place)] for place in found.value)
    return TopGroups(plan, groups, error, asking.confidence, found)


def expected_top(table: TableRows, k: int, offer: Offer) -> StatisticForecast:
    """The number of rows by which a chosen group may fall short."""
    counts, chosen = _choice_of_top(table, k, offer.epsilon)
    error = chosen.error(offer.confidence)
    line = f"each group has at most {error:,} rows fewer than the group of rank {k}"
    useless = (
        f"top_k: of groups of {offer.rows:,} rows it may choose any, since each may have {error:,} "
        f"rows fewer than the group of rank {k}"
    )
    return _forecast_of(chosen.privacy_loss(counts), offer, error, line=line, useless=useless)


def _forecast_of(
    loss: PrivacyLoss, offer: Offer, error: int, *, line: str, useless: str
) -> StatisticForecast:
    """The forecast of a choice that may fall short by this many rows."""
    warnings = (useless,) if error >= offer.rows else ()
    errors = {"rows": float(error)}
    return StatisticForecast(loss, offer.confidence, errors, (line,), warnings)


def _choice_of_top(table: TableRows, k: int, epsilon: Number) -> tuple[Counts, TopK]:
    plan = table.plan
    refuse_private_keys(plan, "top_k", _COUNT_INSTEAD)
    counts = table.counts()
    if len(plan.groups) < 2:
        raise QueryRefused("top_k chooses among groups: name columns with keys in group_by")
    moves = moves_of_counts(plan.declaration)
    return counts, TopK.for_epsilon(epsilon, counts, range(len(plan.groups)), k=k, moves=moves)


@dataclass(frozen=True, slots=True, repr=False)
class Modes(PaidResult):
    """For each group the key of a column that most rows have, or nearly so.

    ``error`` is in rows: with probability ``confidence``, in a group by itself, the key here has at
    most this many rows fewer than the most frequent one. Everything here may be shown to anyone.
    """

    plan: Plan
    modes: tuple[tuple[tuple[KeyValue, ...], KeyValue], ...]
    error: int
    confidence: Fraction
    release: Release[Any]  # Any: a place for each group

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
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        return _table_of(self.rows()) + _html.notes(self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: the error of each choice, and what caps may have left out."""
        column = self.plan.query.key_names[-1]
        note = (
            f"each has at most {self.error:,} rows fewer than the most frequent {column}, at "
            f"{float(self.confidence):.4g} confidence, each group by itself"
        )
        return note, *limits_in_words(self.plan)


def released_modes(table: TableRows, asking: Asking) -> Modes:
    """The release of the most frequent value of the last key in each group of the others. A unit
    pays for all groups once, by the rows for which it counts in all."""
    plan = table.plan
    groups, candidates = _groups_and_candidates(plan)
    counts, chosen = _choice_of_modes(table, asking.epsilon)
    error = chosen.error(asking.confidence)
    rehearse(chosen, np.zeros(_shape(groups, candidates), dtype=np.int64))
    found = released_by(counts, chosen, asking, f"MODE OF {plan.query.key_names[-1]}")
    drawn = {0: found.value} if len(groups) == 1 else found.value
    modes = tuple(
        (group, candidates[cast(int, drawn[place])]) for place, group in enumerate(groups)
    )
    return Modes(plan, modes, error, asking.confidence, found)


def expected_modes(table: TableRows, offer: Offer) -> StatisticForecast:
    """The number of rows by which a chosen value may fall short."""
    counts, chosen = _choice_of_modes(table, offer.epsilon)
    error = chosen.error(offer.confidence)
    line = f"each value has at most {error:,} rows fewer than the most frequent one in its group"
    useless = (
        f"mode: in a group of {offer.rows:,} rows it may be any value, since the most frequent one "
        f"may have {error:,} rows more"
    )
    return _forecast_of(chosen.privacy_loss(counts), offer, error, line=line, useless=useless)


def _choice_of_modes(table: TableRows, epsilon: Number) -> tuple[Counts, ChoiceOfKeys]:
    plan = table.plan
    refuse_private_keys(plan, "mode")
    groups, candidates = _groups_and_candidates(plan)
    if len(candidates) < 2:
        raise QueryRefused(f"mode chooses among values: {plan.query.key_names[-1]} has one key")
    moves = moves_of_counts(plan.declaration)
    counts = table.counts(_shape(groups, candidates))
    return counts, choice_of_keys(epsilon, counts, len(groups), len(candidates), moves=moves)


def _shape(groups: Sized, candidates: Sized) -> tuple[int, ...]:
    """The shape of the counts: without groups, that of one row."""
    return (len(candidates),) if len(groups) == 1 else (len(groups), len(candidates))


def _groups_and_candidates(
    plan: Plan,
) -> tuple[tuple[tuple[KeyValue, ...], ...], tuple[KeyValue, ...]]:
    """The groups by the other keys, and the values of the last one."""
    groups = tuple(dict.fromkeys(group[:-1] for group in plan.groups))
    return groups, tuple(dict.fromkeys(group[-1] for group in plan.groups))
