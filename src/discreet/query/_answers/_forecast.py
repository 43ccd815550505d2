"""Forecasts the cost of a question and the errors of its answer, without reading the data."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet import _checks, _html
from discreet._exact import Number, shown
from discreet.accounting import PrivacyLoss
from discreet.mechanisms import DiscreteLaplace, Gaussian
from discreet.mechanisms.quantiles import QuantileIntervals
from discreet.query._answers._ranges import answer_range, is_useless, most_distinct
from discreet.query._answers._totals import groups_in_each, sets_in_words
from discreet.query._estimates._estimates import NoisySum, NoisySums
from discreet.query._estimates._summed_noise import AdditiveNoise, summed
from discreet.query._expressions._aggregates import ESTIMATORS, NoisyMode, NoisyQuantile
from discreet.query._expressions._expression_text import condition_text
from discreet.query._expressions._expressions import Aggregate, Measure
from discreet.query._expressions._query import columns_used
from discreet.query._facts._columns import Column, value_text
from discreet.query._outputs._outputs import linear_form, linear_half_width, linear_stddev
from discreet.query._outputs._post_processing import after_in_words, measure
from discreet.query._plan._plan import Plan
from discreet.query._plan._price import ChoiceOfKeys, Noise, PricedPlan
from discreet.query._plan._private_keys import hidden_in_words
from discreet.query._plan._sums import SumOf

PartNoise = NoisySums | NoisyQuantile | NoisyMode

_SIZES = (100, 1_000, 10_000)
_TYPICAL = (
    "for a typical column: of values from 0 to 80, one with the mean 60 (or 20) and the standard "
    "deviation 10"
)
_EVENLY = "for rows that lie evenly around the quantile"
_USELESS = " (as wide as the range)"


@dataclass(frozen=True, slots=True)
class ForecastLine:
    """The expected error of one aggregate: half the interval's width and, for counts and sums, the
    noise's standard deviation. Other errors depend on the number of rows in the group. A quantile's
    half-width ``is_in_ranks``: a share of the rows, where they lie evenly around the quantile. That
    of a mode ``is_in_rows``: the number by which the most frequent key may have more rows.

    The half-width of a variance, covariance or correlation depends on the values. It
    ``is_typical``: for a mean half-way between the middle and an end of the declared range, and a
    standard deviation of an eighth of it. For other values it is at most ``worst``; that of a
    correlation can be anything up to 1.

    ``rows`` says which totals it is of; it is empty for the groups. ``is_useless`` says that the
    interval is as wide as the range that is known without asking, in a group of ``judged_size``
    rows.
    """

    name: str
    group_size: int | None
    half_width: float
    stddev: float | None
    is_in_ranks: bool = False
    is_in_rows: bool = False
    is_useless: bool = False
    judged_size: int = field(default=0, repr=False)
    is_typical: bool = False
    worst: float | None = None
    rows: str = ""

    @property
    def title(self) -> str:
        """The name, and the totals that it is of."""
        return f"{self.name}, {self.rows}" if self.rows else self.name

    @property
    def width(self) -> str:
        """Half of the interval's width as text."""
        if self.is_in_ranks:
            return f"± {100 * self.half_width:.3g} % of the rows"
        if self.is_in_rows:
            return f"at most {self.half_width:,.0f} rows fewer than the most frequent key"
        most = "" if self.worst is None else f" (at most ± {_figure(self.worst)})"
        return f"± {_figure(self.half_width)}{most}"

    @property
    def promised(self) -> float:
        """The half-width that no values exceed; of a correlation or quantile, the typical one."""
        return self.half_width if self.worst is None else self.worst


@dataclass(frozen=True, slots=True)
class Forecast:
    """The cost of a release, and the widths of its intervals; prints as a table.

    Half-widths hold for a group's true size, those of means for the worst mean. ``notes`` say where
    more is assumed. The bias of
    caps and clamping is not included. ``warnings`` name the aggregates whose intervals will tell
    nothing, and the epsilon at which they would.
    """

    privacy_loss: PrivacyLoss = field(repr=False)
    confidence: Fraction
    lines: tuple[ForecastLine, ...]
    warnings: tuple[str, ...] = ()
    hidden: str = ""  # which private keys stay hidden, in words

    def __str__(self) -> str:
        head = (
            f"expected error at {float(self.confidence):.4g} confidence, for each group by itself"
        )
        warnings = (f"warning: {warning}" for warning in self.warnings)
        lines = (f"  {_line(line)}" for line in self.lines)
        return "\n".join([head, *lines, *self.notes, *warnings])

    @property
    def notes(self) -> tuple[str, ...]:
        """In words: what the figures assume of the values, and which groups stay hidden."""
        typical = [line for line in self.lines if line.is_typical]
        of_values = dict.fromkeys(line.name for line in typical if not line.is_in_ranks)
        of_ranks = dict.fromkeys(line.name for line in typical if line.is_in_ranks)
        pairs = (of_values, _TYPICAL), (of_ranks, _EVENLY)
        texts = [f"{', '.join(names)}: {text}" for names, text in pairs if names]
        return (*texts, *filter(None, [self.hidden]))

    def _repr_html_(self) -> str:
        """The expected errors as a table in notebooks."""
        heads = "aggregate", "rows in group", "error", "standard deviation"
        rows = [
            (
                line.title,
                "" if line.group_size is None else f"{line.group_size:,}",
                f"{line.width}{_USELESS * line.is_useless}",
                "" if line.stddev is None else f"{line.stddev:,.4g}",
            )
            for line in self.lines
        ]
        caption = f"expected errors at {float(self.confidence):.4g} confidence, each by itself"
        warnings = [*self.notes, *(f"warning: {warning}" for warning in self.warnings)]
        return _html.table(caption, heads, rows) + _html.notes(warnings)


@dataclass(frozen=True, slots=True)
class QuestionExplanation:
    """A question in words: the protected unit, the assumptions, the cost and the errors."""

    sections: tuple[tuple[str, tuple[str, ...]], ...]
    forecast: Forecast

    def __str__(self) -> str:
        texts = [
            "\n".join([title, *(f"  - {line}" for line in lines)]) for title, lines in self.sections
        ]
        return "\n".join([*texts, str(self.forecast)])

    def _repr_html_(self) -> str:
        """A table for each section in notebooks."""
        tables = (
            _html.table(title, (), [(line,) for line in lines]) for title, lines in self.sections
        )
        return "".join([*tables, self.forecast._repr_html_()])


def forecast(priced: PricedPlan, confidence: Number, group_size: int | None) -> Forecast:
    """The forecast of a priced plan; what depends on a group's size, at this one, or at 100, 1 000
    and 10 000."""
    level = _checks.probability(confidence=confidence)
    sizes = _SIZES if group_size is None else (_checks.positive_count(group_size=group_size),)
    plan = priced.plan
    lines: list[ForecastLine] = []
    for title, groups in zip(sets_in_words(plan.query), groups_in_each(plan), strict=True):
        for aggregate, sources in zip(plan.query.aggregates, plan.sources, strict=True):
            noise = law(priced, sources, groups)
            found = _of_aggregate(aggregate, noise, level, sizes)
            judged = (_judged(line, aggregate, plan, sizes[-1]) for line in found)
            lines += [replace(line, rows=title) for line in judged]
        lines += [replace(line, rows=title) for line in _of_outputs(priced, groups, level)]
    hidden = hidden_in_words(plan, priced.together)
    return Forecast(priced.privacy_loss, level, tuple(lines), hidden=hidden)


def _of_aggregate(
    aggregate: Aggregate, noise: PartNoise, level: Fraction, sizes: Sequence[int]
) -> list[ForecastLine]:
    name, estimator = aggregate.name, ESTIMATORS[aggregate.function]
    if isinstance(noise, NoisyMode):
        error = estimator.half_width(noise, 1, level).size
        return [ForecastLine(name, None, error, None, is_in_rows=True)]
    if estimator.has_stddev and not isinstance(noise, NoisyQuantile):
        (one,) = noise
        step = 1.0 if one.grid is None else float(one.grid.step)
        stddev = one.mechanism.stddev_of_noise() * step
        return [ForecastLine(name, None, estimator.half_width(noise, 1, level).size, stddev)]
    lines = []
    for size in sizes:
        found = estimator.half_width(noise, size, level)
        line = ForecastLine(name, size, found.size, None, is_in_ranks=estimator.is_in_ranks)
        lines.append(replace(line, is_typical=found.is_typical, worst=found.worst))
    return lines


def _of_outputs(priced: PricedPlan, groups: int, level: Fraction) -> Iterator[ForecastLine]:
    """The sums and differences of counts and sums, whose errors are known beforehand."""
    for output in priced.plan.query.after.outputs:
        form = linear_form(output.value, linear_sources(priced.plan))
        if form is None:
            continue
        noise = level_noise(priced, form.terms, groups)
        half_width = linear_half_width(form, noise, level)
        if half_width is not None:
            yield ForecastLine(output.name, None, half_width, linear_stddev(form, noise))


def _judged(line: ForecastLine, aggregate: Aggregate, plan: Plan, largest: int) -> ForecastLine:
    """The line with its use; a count is judged by the largest size that is forecast."""
    size = largest if line.group_size is None else line.group_size
    known = answer_range(aggregate, plan.facts, size)
    is_wide = is_useless(line.half_width, known)
    return replace(line, is_useless=is_wide, judged_size=size)


def linear_sources(plan: Plan) -> dict[Measure, tuple[str, Fraction]]:
    """The sum, and the size of its step, of each aggregate that is one sum and is not cut."""
    return {
        measure(one): (sources[0], plan.sum_named(sources[0]).step)
        for one, sources in zip(plan.query.aggregates, plan.sources, strict=True)
        if ESTIMATORS[one.function].has_stddev and most_distinct(one, plan.facts) is None
    }


def level_noise(
    priced: PricedPlan, sources: Iterable[str], groups: int
) -> dict[str, AdditiveNoise]:
    """The noise of these sums, each added up over this many groups."""
    found: dict[str, AdditiveNoise] = {}
    for source in sources:
        mechanism = priced.mechanisms[source]
        assert isinstance(mechanism, DiscreteLaplace | Gaussian)  # as every sum has
        found[source] = summed(mechanism, groups)
    return found


def law(priced: PricedPlan, sources: tuple[str, ...], groups: int = 1) -> PartNoise:
    """The noise of these sums, each added up over this many groups, and their grids; or the
    mechanism of the quantile or mode."""
    made = []
    for source in sources:
        mechanism = priced.mechanisms[source]
        if isinstance(mechanism, QuantileIntervals):
            rows = priced.plan.rows_named(source)
            return NoisyQuantile(mechanism, rows.is_whole, rows.rounded_within)
        if isinstance(mechanism, ChoiceOfKeys):
            return NoisyMode(mechanism)
        one = priced.plan.sum_named(source)
        made.append(NoisySum(summed(mechanism, groups), one.grid, one.shift))
    return tuple(made)


def _figure(number: float) -> str:
    """Four digits, in groups of three, without an exponent below a billion."""
    rounded = float(f"{number:.4g}")
    return f"{rounded:,.0f}" if 1e4 <= rounded < 1e9 else f"{rounded:,.4g}"


def _line(line: ForecastLine) -> str:
    size = "" if line.group_size is None else f" in a group of {line.group_size:,} rows"
    stddev = "" if line.stddev is None else f" (standard deviation {line.stddev:.4g})"
    return f"{line.title}{size}: {line.width}{stddev}{_USELESS * line.is_useless}"


def explain(
    priced: PricedPlan, epsilon: Fraction, delta: Fraction, predicted: Forecast
) -> QuestionExplanation:
    """The assumptions and guarantees of a priced plan, in words."""
    plan = priced.plan
    return QuestionExplanation(
        (
            ("Who is protected", _protected(plan)),
            ("What is asked", _asked(plan)),
            ("What is taken as public", _public(plan)),
            ("What it costs", _costs(priced, epsilon, delta)),
            ("What is not covered", _NOT_COVERED),
        ),
        predicted,
    )


_NOT_COVERED = (
    "intervals cover the noise alone: not clamping, scaling to the caps, or sampling of the rows",
    "each interval holds by itself; several together hold less often",
    "the time that the answer takes, and access to the table or its host",
)


def limits_in_words(plan: Plan) -> list[str]:
    """The line of the caps and bounds that may leave something out of an answer, if any."""
    facts = plan.declaration
    limits = []
    if facts.unit.column is not None:
        limits.append(f"one {facts.unit.column} counts for {facts.caps.in_words(plan.most_groups)}")
    for name in columns_used(plan.query):
        column = facts.columns[name]
        if column.range_in_words is not None:
            limits.append(f"{name} is clamped to {column.range_in_words}")
    return ["; ".join(limits)] if limits else []


def _protected(plan: Plan) -> tuple[str, ...]:
    caps, unit = plan.declaration.caps, plan.declaration.unit
    changed = str(unit) if unit.column is not None else str(unit).replace("each", "one", 1)
    who = f"neighbouring tables differ by {changed}"
    if unit.column is None:
        return (who,)
    return (
        who,
        f"one {unit.column} counts for {caps.in_words(plan.most_groups)}",
        "a public hash chooses the groups of a unit that has more; its totals are scaled down",
        f"rows without a {unit.column} are left out",
    )


def _asked(plan: Plan) -> tuple[str, ...]:
    keys = (
        "over all rows"
        if not plan.query.keys
        else f"grouped by {', '.join(plan.query.key_names)}: the groups come from the rows"
        if plan.private
        else f"grouped by {', '.join(plan.query.key_names)}: all {len(plan.groups)} declared "
        f"groups {'are computed' if plan.query.after.chooses_rows else 'appear'}"
    )
    where = (
        ()
        if plan.query.where is None
        else (f"of the rows for which {condition_text(plan.query.where)} is known to hold",)
    )
    return (str(plan.query), *where, keys, *after_in_words(plan.query))


def _public(plan: Plan) -> tuple[str, ...]:
    columns = plan.declaration.columns
    return tuple(f"{name}: {_facts(columns[name])}" for name in columns_used(plan.query))


def _facts(column: Column) -> str:
    facts = [column.type.value]
    if column.range_in_words is not None:
        facts.append(f"clamped to {column.range_in_words}")
    if column.keys is not None:
        facts.append(f"{len(column.keys)} keys; rows with any other value are in no group")
    if column.null is None:
        facts.append("NULL stays NULL and is skipped")
    else:
        facts.append(f"NULL becomes {value_text(column.null)}")
    return ", ".join(facts)


def _costs(priced: PricedPlan, epsilon: Fraction, delta: Fraction) -> tuple[str, ...]:
    price = f"epsilon {shown(epsilon)}" + (
        f" at delta {shown(delta)}" if priced.noise is Noise.GAUSSIAN else ""
    )
    drawn = (
        f"{one.name}: {_noise(priced, one)}, {float(priced.shares[one.name]):.3g} of the price"
        for one in priced.plan.sums
    )
    chosen = (
        f"{one.name}: a value and two ends by the exponential mechanism, "
        f"{float(priced.shares[one.name]):.3g} of the price"
        for one in priced.plan.rows
    )
    modes = (
        f"{one.name}: one of {len(one.keys):,} keys in each group by the exponential mechanism, "
        f"{float(priced.shares[one.name]):.3g} of the price"
        for one in priced.plan.key_counts
    )
    return (
        f"{price}, charged before any row is read: {priced.privacy_loss}",
        *drawn,
        *chosen,
        *modes,
    )


def _noise(priced: PricedPlan, one: SumOf) -> str:
    step = float(one.step)
    mechanism, bounds = priced.mechanisms[one.name], one.sensitivity
    assert isinstance(mechanism, DiscreteLaplace | Gaussian)  # as every sum has
    if isinstance(mechanism, DiscreteLaplace):
        noise = f"discrete Laplace noise of scale {float(mechanism.scale) * step:.6g}"
        return f"L1 sensitivity {bounds.l1 * step:.6g}, {noise}"
    noise = f"rounded Gaussian noise of standard deviation {float(mechanism.stddev) * step:.6g}"
    return f"L2 sensitivity {bounds.l2_squared**0.5 * step:.6g}, {noise}"
