"""The public facts that an answer depends on, as JSON for its statement and for repeated requests.

Two declarations that differ in a fact have different texts: a column's type says how its bounds,
keys and NULL value are written.
"""

import datetime
import json
from collections.abc import Sequence
from fractions import Fraction

from discreet._exact import shown
from discreet.query._facts._columns import Column, KeyValue
from discreet.query._facts._declaration import Declaration


def facts_text(declaration: Declaration, columns: Sequence[str], source: str) -> str:
    """The caps, the declared facts of these columns, and the name of the source, as JSON."""
    caps = declaration.caps
    facts = {
        "table": declaration.name,
        "source": source,
        "caps": {
            "rows": caps.rows,
            "groups": caps.groups,
            "rows_per_group": caps.rows_per_group,
        },
        "columns": {name: _facts(declaration.columns[name]) for name in columns},
    }
    return json.dumps(facts)


def _facts(column: Column) -> dict[str, object]:
    facts = {
        "type": column.type.value,
        "lower": _plain(column.lower),
        "upper": _plain(column.upper),
        "keys": None if column.keys is None else [_plain(key) for key in column.keys],
        "null": _plain(column.null),
        "format": column.format,
        "zone": column.zone,
        "decimals": column.decimals,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _plain(value: KeyValue | Fraction | None) -> object:
    match value:
        case Fraction():
            return shown(value)
        case datetime.date():
            return value.isoformat()
    return value
