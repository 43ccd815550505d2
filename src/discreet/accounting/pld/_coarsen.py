"""Many outcomes as few atoms: groups of neighbouring losses, from above and from below.

From above, a group's probability goes to its two ends so that the probabilities of both laws stay
what they are; from below, the group is one outcome. See docs/proofs/terms.md.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet._exact import ball
from discreet.accounting.pld._dominating_pairs import Atoms, Side

_Atom = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Group:
    """Outcomes whose losses lie from ``low`` to ``high``, with balls around their probabilities
    under P and under Q."""

    low: Fraction
    high: Fraction
    p: arb
    q: arb


def coarsen(groups: Iterable[Group], side: Side) -> Atoms:
    """The groups as atoms, inside a `precision` block: what is uncertain counts for that side."""
    of_group = _ends if side is Side.UPPER else _merged
    return Atoms.of(*(atom for group in groups for atom in of_group(group)))


def _ends(group: Group) -> Iterator[_Atom]:
    """(p - q e^low) / (1 - e^(low - high)) at the high end, the rest of p at the low one."""
    if group.low == group.high:
        yield float(group.high), _up(group.p), _up(group.p * (-ball(group.high)).exp())
        return
    low, high = ball(group.low), ball(group.high)
    moved = (group.p - group.q * low.exp()) / -(low - high).expm1()
    up = moved.max(arb(0)).min(group.p).upper()
    rest = (group.p - up).max(arb(0)).upper()
    yield float(group.high), _up(up), _up(up * (-high).exp())
    yield float(group.low), _up(rest), _up(rest * (-low).exp())


def _merged(group: Group) -> Iterator[_Atom]:
    """One outcome, whose loss is ln(p/q)."""
    if not (group.p > 0 and group.q > 0):
        return
    loss = ball(group.high) if group.low == group.high else (group.p / group.q).log().lower()
    p = group.p.lower()
    yield float(loss.mid()), float(p), float((p * (-loss).exp()).mid())


def _up(number: arb) -> float:
    return float(number.upper())
