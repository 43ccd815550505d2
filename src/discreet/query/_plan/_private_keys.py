"""Private keys: groups that come from the rows, behind a threshold on a noisy count.

A group's place is then its values, as bytes: the place among the declared keys, and each private
value with its length before it. So groups are compared by bytes, whatever the source's collation.

Let m be the most that one unit adds to the deciding count of one group. The engine returns only
groups with a count c above m, and the mechanism gets c - m:

    max(0, c - m) moves by at most as much as c, so it has the sensitivity of c.

So no group of a single unit leaves the engine, the number of groups that do is at most the number
of all rows divided by m + 1, and the price is that of a threshold on the counts themselves. The
release adds m again, which is public. Other sums are computed for the same groups only. A group
that has a count on one of two neighbours only is released with probability delta at most
(docs/proofs/terms.md, Threshold), and all other groups have their sums on both.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from discreet._arrays import FloatArray, IndexArray
from discreet.errors import QueryRefused
from discreet.mechanisms import Key
from discreet.mechanisms.thresholds._keys_first import KeysFirst
from discreet.query._engines._engine import as_bytes, short_text, valid_text
from discreet.query._expressions._inference import infer
from discreet.query._expressions._keys import without_keys
from discreet.query._facts._columns import ColumnType, KeyValue
from discreet.query._plan._plan import Plan
from discreet.query._plan._sums import Counted

_PLACE = "place"


def most_of_one_unit(plan: Plan) -> int:
    """The most that one unit adds to the deciding count of one group."""
    return plan.deciding.sensitivity.linf


def with_private_keys(rows: ir.Table, columns: Sequence[str]) -> ir.Table:
    """The rows whose values in these columns are all known, with the bytes of the place of their
    group among declared keys and of these values as the new place."""
    texts = {name: _text(rows[name]) for name in columns}
    rows = rows.mutate(**texts)
    rows = rows.filter(*[rows[name].notnull() for name in columns])
    place = rows[_PLACE].cast("string")
    for name in columns:
        place = place + ":" + rows[name].length().cast("string") + ":" + rows[name]
    return rows.mutate(**{_PLACE: as_bytes(place)}).drop(*columns)


def _text(value: Any) -> Any:  # Any: Ibis expressions
    """The value as text; NULL for a text too long to be a key, so that the rows bound the size of
    an answer."""
    return short_text(valid_text(value)) if value.type().is_string() else value.cast("string")


def keys_of_places(plan: Plan, places: Sequence[bytes]) -> dict[bytes, Key]:
    """The keys that these places stand for: the number of the declared group, and the values."""
    kinds = [infer(plan.query.named_keys[n].value, plan.declaration).type for n in plan.private]
    return {place: _key(place.decode(), kinds) for place in places}


def _key(place: str, kinds: Sequence[ColumnType]) -> Key:
    number, _, rest = place.partition(":")
    pieces: list[str | int] = [int(number)]
    for kind in kinds:
        length, _, rest = rest.partition(":")
        text, rest = rest[: int(length)], rest[int(length) + 1 :]
        pieces.append(int(text) if kind is ColumnType.INTEGER else text)
    return tuple(pieces)


def numbers_by_key(answer: pa.Table, name: str, keys: Mapping[bytes, Key]) -> dict[Key, int]:
    """A column of the engine's answer by the key of each group, 0 for groups without an answer."""
    pairs = zip(answer[_PLACE].to_pylist(), answer[name].to_pylist(), strict=True)
    there = {place: int(number) for place, number in pairs}
    return {key: there.get(place, 0) for place, key in keys.items()}


def values_by_key(
    places: pa.ChunkedArray, values: FloatArray, times: IndexArray, keys: Mapping[bytes, Key]
) -> dict[Key, FloatArray]:
    """The values of each of these keys, as many times as they occur."""
    coded = places.combine_chunks().dictionary_encode()
    numbers = np.repeat(coded.indices.to_numpy(), times)
    order = np.argsort(numbers, kind="stable")
    there = coded.dictionary.to_pylist()
    ends = np.searchsorted(numbers[order], np.arange(1, len(there)))
    listed = dict(zip(there, np.split(np.repeat(values, times)[order], ends), strict=False))
    return {key: listed.get(place, np.empty(0)) for place, key in keys.items()}


def released_groups(plan: Plan, released: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
    """The plan with the released groups in order, and the noisy numbers of each part for them, from
    the value of a `KeysFirst`."""
    first, lowered = plan.deciding.name, most_of_one_unit(plan)
    counts: Mapping[Key, int] = released[first]
    groups = _groups(plan, list(counts))
    order = sorted(range(len(groups)), key=groups.__getitem__)
    noisy = {
        name: np.asarray(numbers)[order] for name, numbers in released.items() if name != first
    }
    listed = list(counts.values())
    noisy[first] = np.array([listed[n] + lowered for n in order], dtype=object)
    return replace(plan, groups=tuple(groups[n] for n in order)), noisy


def _groups(plan: Plan, keys: Sequence[Key]) -> list[tuple[KeyValue, ...]]:
    """The values of each group, in the order of the question's keys."""
    named = plan.query.named_keys
    kinds = {n: infer(named[n].value, plan.declaration).type for n in plan.private}
    groups = []
    for key in keys:
        assert isinstance(key, tuple)  # as `keys_of_places` makes them
        place, own = int(key[0]), dict(zip(plan.private, key[1:], strict=True))
        values: list[KeyValue] = []
        for n in reversed(range(len(named))):
            keys_here = plan.keys[n]
            if n in own:
                values.append(_value(own[n], kinds[n]))
            else:
                assert keys_here is not None  # as it is not private
                place, here = divmod(place, len(keys_here))
                values.append(keys_here[here])
        groups.append(tuple(reversed(values)))
    return groups


def _value(piece: str | int, kind: ColumnType) -> KeyValue:
    return datetime.date.fromisoformat(str(piece)) if kind is ColumnType.DATE else piece


def counted_group(plan: Plan, count: int) -> dict[str, Any]:  # Any: the value of each part
    """A made-up value of the plan's parts: one group with this count, all other parts 0."""
    key = _made_up_key(plan)
    sums: dict[str, Any] = {one.name: {key: 0} for one in plan.sums}
    rows = {one.name: {key: np.empty(0)} for one in plan.rows}
    return sums | rows | {plan.deciding.name: {key: count}}


def one_group(plan: Plan) -> dict[str, Any]:  # Any: as released
    """A made-up release of one group, whose schema is that of any."""
    sums = {one.name: np.zeros(1, dtype=object) for one in plan.sums}
    rows = {one.name: np.zeros((1, 3)) for one in plan.rows}
    return sums | rows | {plan.deciding.name: {_made_up_key(plan): 0}}


def _made_up_key(plan: Plan) -> Key:
    pieces: dict[ColumnType, str | int] = {
        ColumnType.INTEGER: 0,
        ColumnType.DATE: "2000-01-01",
        ColumnType.TEXT: "",
    }
    named = plan.query.named_keys
    return (0, *(pieces[infer(named[n].value, plan.declaration).type] for n in plan.private))


def hidden_in_words(plan: Plan, mechanism: object) -> str:
    """In words: which private keys stay hidden; empty if there are none."""
    if not plan.private or not isinstance(mechanism, KeysFirst):
        return ""
    least = mechanism.threshold.threshold + most_of_one_unit(plan)
    is_of_rows = plan.deciding.counted is Counted.ROWS and plan.declaration.unit.column is not None
    counted = "rows" if is_of_rows else "units"
    names = [plan.query.key_names[n] for n in plan.private]
    return (
        f"groups by {', '.join(names)} come from the rows: those with fewer than about {least:,} "
        f"{counted} stay hidden, and noisy counts below {least:,} are never shown"
    )


def refuse_without_delta(plan: Plan) -> NoReturn:
    """Raise with the two ways to ask for groups whose keys are not declared."""
    raise QueryRefused(
        f"{_why(plan)}; or give a delta, such as delta=1e-6: then the keys come from the rows, and "
        "those that only few have stay hidden"
    )


def refuse_private_keys(plan: Plan, asked: str, instead: str = "") -> None:
    """Raise if keys of the plan are private, for a use that needs declared ones; ``instead`` is a
    further way to ask."""
    if plan.private:
        raise QueryRefused(f"{asked} needs declared keys. {_why(plan)}{instead}")


def _why(plan: Plan) -> str:
    return without_keys(plan.query.named_keys[plan.private[0]].value, plan.declaration)
