"""How much the caps and bounds of a table cut: for a small charge, in words.

The rows that caps leave out can't be counted directly, since nothing bounds their number. But each
unit lies in one bin of a histogram by the number of rows that it loses. Values beyond a column's
bounds are counted like rows, within the caps.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from discreet import _checks, _html
from discreet._exact import Number, shown
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument, QueryRefused
from discreet.mechanisms import (
    Bounded,
    DiscreteLaplace,
    Door,
    Part,
    Release,
    Sensitivity,
    Together,
    rehearse,
    release_through,
)
from discreet.mechanisms._bounded import tables_of
from discreet.query._answers._paid_result import PaidResult
from discreet.query._bounding._bounding import CUT_BINS, KEPT, PLACE, TIMES
from discreet.query._bounding._compiled_plan import (
    CompiledPlan,
    CompiledStatements,
    prepare,
    prepare_cuts,
)
from discreet.query._engines import _engine
from discreet.query._estimates._intervals import ShareLaw, reach_in_bins
from discreet.query._expressions._query import FromText, Query, columns_used
from discreet.query._facts._public_facts import facts_text
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import check_scale
from discreet.query._plan._sums import ColumnOutcome, SumOf, ValueOutcome, sensitivity
from discreet.query._rows._source import (
    ComputedSource,
    TableSource,
    check_schema,
    served_by,
    snapshot,
)

LEAST_RISK = Fraction(1, 10**30)


@dataclass(frozen=True, slots=True)
class CutShare:
    """A share that a cap or a bound cuts, with an interval for the noise alone.

    ``share`` is ``None`` where the noisy counts add up to less than 1.
    """

    name: str
    share: float | None
    low: float
    high: float

    def __str__(self) -> str:
        about, between = self.in_words
        return f"{about} of {self.name} ({between})"

    @property
    def in_words(self) -> tuple[str, str]:
        """The share and its interval."""
        about = "an unknown share" if self.share is None else f"about {100 * self.share:.3g} %"
        return about, f"between {100 * self.low:.3g} % and {100 * self.high:.3g} %"


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(PaidResult):
    """The share of units of which caps leave rows out, an estimate of the share of rows, and the
    share of values beyond each bound of each column.

    Intervals hold at ``confidence``, each by itself. ``rows_left_out`` has none: all units in a bin
    of the histogram are taken to lose the mean of its ends, and bins that may hold noise alone are
    left out. It is ``None`` for a table that protects rows. Everything here may be shown to anyone.
    """

    cuts: tuple[CutShare, ...]
    rows_left_out: float | None
    confidence: Fraction
    release: Release[Any]  # Any: a mapping of noisy counts

    def __repr__(self) -> str:
        covered, *notes = self.notes
        return "\n".join([*notes, *map(str, self.cuts), covered])

    def _repr_html_(self) -> str:
        rows = [[cut.name, *cut.in_words] for cut in self.cuts]
        return _html.table("shares that caps and bounds cut", [], rows) + _html.notes(self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: what the intervals cover, and the share of rows that caps leave out."""
        covered = f"intervals at {float(self.confidence):.4g} confidence, for the noise alone"
        if self.rows_left_out is None:
            return (covered,)
        return covered, f"the caps leave out about {100 * self.rows_left_out:.3g} % of rows"


@dataclass(frozen=True, slots=True)
class DiagnosisOf:
    """The question how much is cut of the rows that a query asks for."""

    source: TableSource
    plan: Plan

    @staticmethod
    def of(source: TableSource, asked: Plan) -> "DiagnosisOf":
        """The diagnosis of a question: its caps by its groups, the bounds of its columns."""
        if asked.declaration.through is not None:
            raise QueryRefused(
                "the rows have keys in place of ids, so no caps of units can be seen here: "
                f"diagnose {asked.declaration.through.table}"
            )
        if isinstance(source, ComputedSource) and source.is_cut:
            raise QueryRefused(
                "a join takes each table's rows within its caps, so what they cut can't be seen "
                f"here: diagnose each table by itself ({', '.join(source.private_tables)})"
            )
        if asked.declaration.unit.column is None and not _bounded_columns(asked):
            why = "the question uses no bounded column"
            if isinstance(source, ComputedSource):
                tables = ", ".join(source.private_tables)
                why = f"columns were clamped in the tables: diagnose {tables}"
            raise QueryRefused(f"nothing is cut here: each row is a unit, and {why}")
        return DiagnosisOf(source, asked)


def release_diagnosis(
    door: Door,
    asked: DiagnosisOf,
    *,
    epsilon: Number,
    confidence: Number = 0.95,
    by: str = "owner",
    request: str | None = None,
) -> Diagnosis:
    """`Question.diagnose` through a given door."""
    # 1. what can be refused is refused before the charge
    asked = replace(asked, source=snapshot(asked.source))
    together = diagnosing(asked, epsilon=epsilon, confidence=confidence)
    noise = cast(Mapping[str, DiscreteLaplace], together.mechanisms)
    level, values = _checks.probability(confidence=confidence), _values_plan(asked.plan)
    # 2. charge, compute, add noise
    with _engine.opened(served_by(asked.source)) as opened:
        ready = prepare(values, asked.source, opened) if values.sums else None
        cuts = prepare_cuts(asked.plan, asked.source, opened) if _has_caps(asked.plan) else None
        computed = _Computation(asked.plan, ready, cuts, door)
        released = release_through(
            door, _bounded(asked, computed), together, by=by, request=request
        )
    shares, left_out = _diagnosis(asked.plan, noise, level, released.value)
    return Diagnosis(shares, left_out, level, released)


def diagnosis_loss(asked: DiagnosisOf, *, epsilon: Number, confidence: Number) -> PrivacyLoss:
    """The privacy loss of a diagnosis; raises for all that would be refused before its charge."""
    return diagnosing(asked, epsilon=epsilon, confidence=confidence).privacy_loss(
        _bounded(asked, None)
    )


def diagnosing(asked: DiagnosisOf, *, epsilon: Number, confidence: Number) -> Together:
    """The mechanisms of a diagnosis, which were tried on nothing; reads the schema only."""
    level, facts = _checks.probability(confidence=confidence), asked.plan.declaration
    if 1 - level < LEAST_RISK:
        raise InvalidArgument("confidence: give a number of at most 1 - 1e-30")
    check_schema(asked.source, facts.columns, facts.unit)
    parts, stated = _parts(asked.plan), _bounded(asked, None)
    share = _checks.positive(epsilon=epsilon) / len(parts)
    noise = {
        part.name: DiscreteLaplace.for_epsilon(share, stated.only(part.name)) for part in parts
    }
    together = Together(noise)
    check_scale(noise.values())
    nothing = {part.name: np.zeros(part.shape, dtype=object) for part in parts}
    _diagnosis(asked.plan, noise, level, rehearse(together, nothing))
    return together


_CUT, _BINS, _KEPT = "units of which rows are left out", "units by rows left out", "rows"


def _has_caps(asked: Plan) -> bool:
    return asked.declaration.unit.column is not None


def _bounded_columns(asked: Plan) -> list[str]:
    """The bounded columns of the question's values and condition; a key's bounds cut nothing that
    a group shows. Columns of a relation were clamped in its tables, which can be asked."""
    if isinstance(asked.declaration.name, FromText):
        return []
    columns, query = asked.declaration.columns, _without_keys(asked.query)
    return [name for name in columns_used(query) if columns[name].lower is not None]


def _without_keys(query: Query) -> Query:
    return Query(query.table, query.aggregates, (), query.where)


def _parts(asked: Plan) -> tuple[Part, ...]:
    """The parts that are released. A unit lies in one bin. Of its values, at most as many count as
    its rows, each on one side of a bound: see `discreet.query._questions._null_share`."""
    facts = asked.declaration
    tables = tables_of(facts.unit)
    once = Sensitivity(l1=tables, linf=1)
    rows, kept = facts.caps.of_rows(1), facts.caps.of_rows(asked.most_groups)
    each = Sensitivity(l1=tables * rows, l2_squared=tables * rows**2, linf=rows)
    parts = []
    if _has_caps(asked):
        parts += [Part(_CUT, (2,), once), Part(_BINS, (CUT_BINS - 1,), once)]
        parts += [Part(_KEPT, (), Sensitivity(l1=kept, linf=kept), is_wide=True)]
    for name in _bounded_columns(asked):
        parts += [Part(title, (2,), each, is_wide=True) for title in _titles(name)]
    return tuple(parts)


def _titles(name: str) -> tuple[str, str]:
    return f"{name} below its lower bound", f"{name} above its upper bound"


def _bounded(asked: DiagnosisOf, computed: "_Computation | None") -> Bounded[Mapping[str, Any]]:
    facts = asked.plan.declaration
    return Bounded.together(
        computed or dict,
        parts=_parts(asked.plan),
        unit=facts.unit,
        name=f"DIAGNOSE {asked.plan.query}",
        basis="bounded by discreet.query, from the declared caps and bounds",
        facts=facts_text(facts, columns_used(asked.plan.query), asked.source.label),
    )


def _values_plan(asked: Plan) -> Plan:
    """The sums of all outcomes, over all rows that meet the condition."""
    facts = asked.declaration
    single = sensitivity((0, 1), facts, 1)
    sums = [
        SumOf(f"{name} {outcome.name}", ColumnOutcome(name, outcome), None, single)
        for name in _bounded_columns(asked)
        for outcome in (ValueOutcome.THERE, ValueOutcome.BELOW, ValueOutcome.ABOVE)
    ]
    return Plan(facts, _without_keys(asked.query), ((),), tuple(sums), (), facts)


@dataclass(frozen=True, slots=True)
class _Computation:
    """The computation of all parts."""

    asked: Plan
    values: CompiledPlan | None
    cuts: CompiledStatements | None
    door: Door

    def __call__(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        sums = {} if self.values is None else self.values.compute(self.door.trace)
        totals = {name: int(value[0]) for name, value in sums.items()}
        if self.cuts is not None:
            (answer,) = self.cuts.answers(self.door.trace)
            bins = np.zeros(CUT_BINS, dtype=np.int64)
            bins[answer[PLACE].to_numpy()] = answer[TIMES].to_numpy()
            found[_CUT] = np.array([bins[1:].sum(), bins[0]])
            found[_BINS], found[_KEPT] = bins[1:], sum(map(int, answer[KEPT].to_pylist()))
        for name in _bounded_columns(self.asked):
            there = totals[f"{name} {ValueOutcome.THERE.name}"]
            for title, outcome in zip(
                _titles(name), (ValueOutcome.BELOW, ValueOutcome.ABOVE), strict=True
            ):
                beyond = totals[f"{name} {outcome.name}"]
                found[title] = np.array([beyond, there - beyond], dtype=object)
        return found


def _diagnosis(
    asked: Plan,
    noise: Mapping[str, DiscreteLaplace],
    level: Fraction,
    noisy: Mapping[str, Any],  # Any: integers
) -> tuple[tuple[CutShare, ...], float | None]:
    facts, cuts, left_out = asked.declaration, [], None
    if _has_caps(asked):
        title = "units have more rows or groups than the caps"
        cuts.append(_share(title, noise[_CUT], level, noisy[_CUT]))
        left_out = _left_out(noise[_BINS], noisy[_BINS], int(noisy[_KEPT]))
    for name in _bounded_columns(asked):
        column = facts.columns[name]
        ends = f"below {_end(column.lower)}", f"above {_end(column.upper)}"
        for title, end in zip(_titles(name), ends, strict=True):
            cuts.append(_share(f"{name} lie {end}", noise[title], level, noisy[title]))
    return tuple(cuts), left_out


def _end(bound: Fraction | datetime.date | None) -> str:
    assert bound is not None  # of bounded columns
    return bound.isoformat() if isinstance(bound, datetime.date) else shown(bound)


def _share(title: str, noise: DiscreteLaplace, level: Fraction, noisy: Sequence[Any]) -> CutShare:
    part, rest = (int(number) for number in noisy)
    share = None if part + rest < 1 else min(max(part / (part + rest), 0.0), 1.0)
    return CutShare(title, share, *ShareLaw(noise, level).interval(part, rest))


def _left_out(noise: DiscreteLaplace, noisy: Sequence[Any], kept: int) -> float:
    """The estimated share of rows that are left out, by the bins beyond the reach of noise."""
    reach = reach_in_bins(noise, CUT_BINS)
    means = (0.75 * 2**n - 0.5 for n in range(1, CUT_BINS))  # of 2^(n-1) and 2^n - 1
    pairs = zip(noisy, means, strict=True)
    lost = sum(int(units) * mean for units, mean in pairs if units > reach)
    return float(lost / max(lost + kept, 1))
