"""Numbers, entries and charts as the pages show them. Spent amounts round up, left ones down."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet._exact import decimal_down, decimal_up, fraction, shown
from discreet.accounting import PrivacyLoss
from discreet.plots import Axis, Chart, Series
from discreet.query._answers._forecast import ForecastLine

_DIGITS = 6
_DELTA = Fraction(1, 10**6)  # where no epsilon holds without one
_MOST_PLACES = 40  # on the axis of a chart
_MOST_CHARTS = 4
_LEAST_PARTED = 10_000
_LONGEST_PLACE = 18  # characters
_KINDS = {
    "open": "the ledger was made",
    "answer": "the answer was stored",
    "lock": "a computation failed: the table was locked",
    "unlock": "the owner unlocked the table",
    "steps": "steps of a paid plan were reserved",
    "backup": "a backup was written",
    "subtotal": "a subtotal was written",
    "grant": "a share was granted",
    "revoke": "a share was ended",
}
_AT = re.compile(r"\(line (\d+), column (\d+)\)")
_QUOTED = re.compile(r"`([^`]*)`")
_TURNS = r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # turn the direction of a text
_TURN = re.compile(_TURNS)
# a tag, or what a reader sends back as it is; or such a character in the words of a page
_PART = re.compile(
    rf"<(textarea|script)\b.*?</\1>|<[^>]*>|(?P<turn>{_TURNS})", re.DOTALL | re.IGNORECASE
)


def spent(number: float) -> str:
    """A spent amount, rounded up."""
    return shown(decimal_up(fraction(number), _DIGITS))


def left(number: float) -> str:
    """A remaining amount, rounded down."""
    return shown(decimal_down(fraction(number), _DIGITS)) if number > 0 else "0"


def number(value: object) -> str:
    """A number to six digits, from 10,000 on in groups of three; another value as it is. So years
    read as they are written."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if abs(value) < _LEAST_PARTED:
        return f"{value:.6g}"
    return f"{value:,.6g}" if abs(value) < 1e6 or value % 1 else f"{value:,.0f}"


def width(line: Mapping[str, Any]) -> str:  # Any: JSON
    """Half of a forecast interval's width as text."""
    return ForecastLine(**line).width


def tighter_groups(caps: Mapping[str, Any]) -> int | None:  # Any: JSON
    """The cap on groups, if it is tighter than that on rows; a declaration without one has the same
    number in both."""
    groups: int = caps["groups"]
    return groups if groups < caps["rows"] else None


def limit(text: str) -> str:
    """A limit as people read it. One that bounds a curve has a number for each of many orders; all
    of it is 1."""
    orders = text.count(" at order ")
    return text if not orders else f"1 (a Rényi curve of {orders} order{'s' * (orders > 1)})"


def at_minute(text: str) -> str:
    """A time to the minute."""
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"


@lru_cache(maxsize=4096)
def _cost(loss: str) -> str:
    found = PrivacyLoss.from_json(loss)
    for delta in (Fraction(0), _DELTA):
        epsilon = found.epsilon(delta)
        if epsilon < float("inf"):
            return f"ε = {spent(epsilon)}" + (f", δ = {shown(delta)}" if delta else "")
    return "δ only"


def cost(loss: Any) -> str:  # Any: JSON
    """A privacy loss, by its epsilon."""
    return _cost(json.dumps(loss, sort_keys=True))


@dataclass(frozen=True, slots=True)
class Bar:
    """A budget as a bar: parts of 100 that are spent and reserved, and the amounts in words."""

    name: str
    limit: str
    spent: float
    reserved: float
    words: str

    @staticmethod
    def of(name: str, facts: Mapping[str, Any]) -> "Bar":  # Any: JSON
        """The bar of a ledger or a share."""
        used, kept, rest = (max(0.0, float(facts[key])) for key in ("spent", "reserved", "left"))
        whole = used + kept + rest or 1.0
        reserve = f", reserved {spent(kept)}" if kept else ""
        whole_of = limit(facts["limit"])
        words = f"spent {spent(used)} of {whole_of}{reserve}; {left(rest)} left"
        return Bar(name, whole_of, 100 * used / whole, 100 * kept / whole, words)


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One entry of a ledger: when, by whom, about what, and its cost. ``request`` is set for the
    reader's own charges whose answers are stored."""

    number: int
    at: str
    by: str
    words: str
    cost: str
    request: str | None
    is_alarming: bool


def history(entries: Sequence[Mapping[str, Any]]) -> list[HistoryLine]:  # Any: JSON
    """The entries that tell something to a reader, the last one first."""
    return [
        HistoryLine(
            one["number"],
            at_minute(one["at"]),
            one["by"] or "",
            _words(one),
            "" if one["privacy_loss"] is None else cost(one["privacy_loss"]),
            one["request"] if one["has_answer"] else None,
            one["kind"] == "lock",
        )
        for one in reversed(entries)
        if one["kind"] not in ("answer", "subtotal")
    ]


def _words(one: Mapping[str, Any]) -> str:  # Any: JSON
    words = _KINDS.get(one["kind"], "")
    if one["kind"] == "charge":
        return str(one["purpose"])
    if one["kind"] in ("grant", "revoke"):
        return f"{words}: {one['share']}"
    if one["kind"] == "unlock":
        return f"{words}: {one['purpose']}"
    if one["about"] is not None:
        return f"{words} (charge {one['about']})"
    return words


def spending(entries: Sequence[Mapping[str, Any]]) -> Chart | None:  # Any: JSON
    """The number of charges over time, by analyst; None where all are within some minutes."""
    charges = [one for one in entries if one["kind"] == "charge"]
    times = [datetime.fromisoformat(one["at"]).timestamp() for one in charges]
    if not times or times[-1] - times[0] < _SOON:
        return None
    unit, size = next((name, size) for name, size in _TIMES if times[-1] - times[0] > 2 * size)
    end = (times[-1] - times[0]) / size
    names = sorted({one["by"] for one in charges})[:_MOST_NAMES]
    series = []
    for style, name in enumerate(names):
        own = [
            (at - times[0]) / size
            for at, one in zip(times, charges, strict=True)
            if one["by"] == name
        ]
        steps = [point for n, at in enumerate(own) for point in ((at, n), (at, n + 1))]
        series.append(Series(name, "line", ((0.0, 0), *steps, (end, len(own))), style))
    most = max(one.points[-1][1] for one in series)
    return Chart(
        "Charges over time",
        "how many charges each analyst has made",
        Axis(f"{unit} since {at_minute(charges[0]['at'])} UTC", 0.0, end),
        Axis("charges", 0.0, float(most) * 1.05),
        tuple(series),
    )


_TIMES = (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
_SOON = 120  # seconds
_MOST_NAMES = 5


def charts(
    keys: Sequence[str], numbers: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> list[Chart]:
    """A chart of each number of an answer with its intervals; none where groups are many."""
    if not 1 < len(rows) <= _MOST_PLACES or not keys:
        return []
    places = _places(keys, rows)
    found = []
    for name in numbers[:_MOST_CHARTS]:
        points = [
            (place, row[name], low, high)
            for place, row in zip(places, rows, strict=True)
            if (low := row[f"{name}_low"]) is not None and (high := row[f"{name}_high"]) is not None
        ]
        if points:
            found.append(_chart(", ".join(keys), name, places, points))
    return found


def _places(keys: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    found: list[str] = []
    for row in rows:
        text = ", ".join(cell(row[key]) for key in keys)
        short = text if len(text) <= _LONGEST_PLACE else f"{text[: _LONGEST_PLACE - 1]}…"
        while short in found:
            short += "\N{ZERO WIDTH SPACE}"  # each place has a name of its own
        found.append(short)
    return tuple(found)


def _chart(
    label: str, name: str, places: tuple[str, ...], points: Sequence[tuple[Any, ...]]
) -> Chart:
    low = min(0.0, *(float(point[2]) for point in points))
    high = max(0.0, *(float(point[3]) for point in points))
    room = 0.05 * (high - low) or 1.0
    return Chart(
        name,
        "each dot is a noisy number, its line the interval",
        Axis(label, categories=places),
        Axis(name, low - room * (low < 0), high + room),
        (Series("", "errors", tuple(points)),),
    )


def chart_json(chart: Chart) -> str:
    """The chart for the script that draws it."""
    text = json.dumps(asdict(chart), ensure_ascii=False, allow_nan=False)
    return _TURN.sub(lambda found: f"\\{_visible(found[0])}", text)


def in_order(html: str) -> str:
    r"""The page with the characters that turn the direction of a text made visible, as \u202e. So
    its words are read in the order in which they stand. Fields keep their texts."""
    if not _TURN.search(html):
        return html
    return _PART.sub(lambda found: _visible(found["turn"]) if found["turn"] else found[0], html)


def _visible(turn: str) -> str:
    return f"\\u{ord(turn):04x}"


def cell(value: object) -> str:
    """The value of a key as text."""
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class RefusedPlace:
    """The place in a question that a refusal is about: the text before, at and after it."""

    before: str
    at: str
    after: str


def refused_place(sql: str, message: str) -> RefusedPlace | None:
    """The place that a refusal names by line and column; None if it names none."""
    named = _AT.search(message)
    if named is None:
        return None
    line, column = int(named[1]), int(named[2])
    lines = sql.split("\n")
    if line > len(lines):
        return None
    start = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
    quoted = _QUOTED.search(message)
    text = quoted[1] if quoted and sql.startswith(quoted[1], start) else sql[start : start + 1]
    return RefusedPlace(sql[:start], text, sql[start + len(text) :])
