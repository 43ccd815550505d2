"""The rows of each group by the keys of a value, from which a mode is chosen.

Each row that a unit counts for has one key. So a unit that comes or goes moves the counts of all
groups and keys by at most its rows in all, in L1, and each of them by at most its rows in a group.
One that is replaced moves them by at most twice as much in L1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet._unit import Change
from discreet.errors import QueryRefused
from discreet.mechanisms import Sensitivity
from discreet.mechanisms._bounded import tables_of
from discreet.mechanisms.selection import Moves
from discreet.query._expressions._expression_text import scalar_text
from discreet.query._expressions._expressions import Condition, Scalar
from discreet.query._expressions._keys import MOST_KEYS, public_keys, without_keys
from discreet.query._expressions._where import keys_where
from discreet.query._facts._columns import KeyValue
from discreet.query._facts._declaration import Declaration
from discreet.query._plan._sums import NO_ARGUMENT


@dataclass(frozen=True, slots=True)
class KeyCountsOf:
    """The number of rows with each of these keys of an argument, in each group."""

    name: str
    argument: Scalar
    keys: Sequence[KeyValue]
    sensitivity: Sensitivity

    def shape(self, groups: int) -> tuple[int, ...]:
        """The shape of the counts; that of one row for a single group."""
        return (len(self.keys),) if groups == 1 else (groups, len(self.keys))


def key_counts_of(
    argument: Scalar | None, where: Condition | None, declaration: Declaration, groups: int
) -> KeyCountsOf:
    """The counts for the mode of this argument; `QueryRefused` unless it has at least two keys with
    which a row can meet the condition."""
    if argument is None:
        raise QueryRefused(NO_ARGUMENT)
    text = scalar_text(argument)
    keys = public_keys(argument, declaration, use=_USE)
    if keys is None:
        raise QueryRefused(without_keys(argument, declaration, use=_USE))
    keys = keys_where(where, argument, keys)
    if len(keys) < 2:
        raise QueryRefused(f"{_USE} {text} chooses among keys, and there is one only")
    if groups * len(keys) > MOST_KEYS:
        raise QueryRefused(
            f"{_USE} {text} has more than {MOST_KEYS:,} pairs of a group and a key; group by fewer "
            "columns, or take larger bins"
        )
    caps = declaration.caps
    rows = caps.of_rows(groups)
    moved = Sensitivity(l1=tables_of(declaration.unit) * rows, linf=min(caps.rows_per_group, rows))
    return KeyCountsOf(f"mode of {text}", argument, keys, moved)


def moves_of_counts(declaration: Declaration) -> Moves:
    """How a unit moves counts of rows: together, if none of them falls when a unit is added. Where
    units are found through another table, a key of two units is in no group, so counts may fall."""
    is_added = declaration.unit.change is Change.ADD_REMOVE and declaration.through is None
    return Moves.TOGETHER if is_added else Moves.ANYHOW


_USE = "MODE of"
