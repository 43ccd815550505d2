"""Plans of training runs, with their privacy loss, fixed before the first step.

A `TrainingPlan` couples sampling, clip norm, noise and accounting. A run reads each of them from
its plan only, so that no step can differ from the priced one. Nothing private is in a plan.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ceil

from discreet import _checks, _html
from discreet._exact import Number, fraction, shown
from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss, Term, calibrate
from discreet.errors import InvalidArgument
from discreet.train._plans._adaptive import COUNT_GAP, Adaptive, NoisyShare
from discreet.train._plans._clip import Clip
from discreet.train._plans._noise import AnyNoise, ExactGaussian, FloatGaussian
from discreet.train._plans._sampling import PoissonSampling, Sampling, SamplingSize

_DRAWS = (
    "within a step, random numbers come from the global generators of PyTorch, NumPy and Python, "
    "which secure bits seed, anew for each item; model and loss seed none of them"
)

_ITEMS = (
    "each item of the data is made from its own record and from public numbers alone; its place is "
    "not one of these, since it changes if a record before it leaves"
)
_SHOWN = 20
_HARDLY_ANY_COST = Fraction(10**9)  # a multiplier


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a schedule: a number of steps, and how they differ from the rest of the plan.

    Fields that are None are as in the plan. ``noise`` is relative: 2 is twice the plan's
    multiplier.
    """

    steps: int
    batch: int | None = None
    clip: Number | Clip | None = None
    noise: Number = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", _checks.positive_count(steps=self.steps))
        object.__setattr__(self, "noise", _checks.positive(noise=self.noise))


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a plan in which all steps are alike.

    ``multiplier`` is the scale of the noise in units of the sum's sensitivity. A number as ``clip``
    is one norm for all parameters together: L2, or L1 for Laplace noise.
    """

    steps: int
    size: SamplingSize
    clip: Fraction | Clip
    multiplier: Fraction

    @property
    def norm(self) -> Fraction:
        """The largest norm of a contribution; for an adaptive clip, that of its first step."""
        return self.clip if isinstance(self.clip, Fraction) else fraction(self.clip.sensitivity)

    def at(self, norm: float) -> "Phase":
        """The phase with this norm."""
        return replace(self, clip=fraction(norm))


@dataclass(frozen=True)
class TrainingPlan:
    """All public facts of a training run: `plan` makes these.

    Guarantee: a run of this plan costs its unit `privacy_loss`, however the model, the loss
    function and the optimizer use the results of earlier steps, given that each example's
    contribution depends on that example and on earlier releases only. `explain` lists what is
    assumed and what is not covered.
    """

    unit: Unit
    records: int
    phases: tuple[Phase, ...]
    sampling: Sampling
    noise: AnyNoise
    delta: Fraction
    target: Fraction | None = field(default=None, compare=False)

    _repr_html_ = _html.shown

    @property
    def steps(self) -> int:
        """The number of steps of all phases."""
        return sum(phase.steps for phase in self.phases)

    @cached_property
    def privacy_loss(self) -> PrivacyLoss:
        """The privacy loss of the whole run."""
        return self.loss_after(self.steps)

    @cached_property
    def epsilon(self) -> float:
        """The whole run's epsilon at the plan's delta, rounded up; never above the target."""
        return self.privacy_loss.epsilon(self.delta)

    def loss_after(self, step: int) -> PrivacyLoss:
        """The privacy loss of the first ``step`` steps; a round that has begun counts whole."""
        left, total = _checks.count(step=step), PrivacyLoss(unit=self.unit)
        if left > self.steps:
            raise InvalidArgument(f"step = {step}: the plan has {self.steps}")
        for phase in self.phases:
            if taken := min(left, phase.steps):
                cost = self.sampling.privacy_loss(self._step(phase), phase.size, taken)
                total, left = total + cost.for_unit(self.unit), left - taken
        return total

    def epsilon_after(self, step: int) -> float:
        """The epsilon of the first ``step`` steps at the plan's delta, rounded up."""
        return self.loss_after(step).epsilon(self.delta)

    def curve(self, points: int = _SHOWN) -> tuple[tuple[int, float], ...]:
        """Pairs (step, epsilon after it), for about ``points`` steps up to the last one."""
        wanted = min(_checks.positive_count(points=points), self.steps)
        steps = sorted({ceil(self.steps * Fraction(n, wanted)) for n in range(1, wanted + 1)})
        return tuple((step, self.epsilon_after(step)) for step in steps)

    def phase_at(self, step: int) -> tuple[Phase, int]:
        """The phase of a step, counted from 0, and the first step of that phase."""
        first = 0
        for phase in self.phases:
            if step < first + phase.steps:
                return phase, first
            first += phase.steps
        raise InvalidArgument(f"step = {step}: the plan has {self.steps}")

    def next_round(self, step: int) -> int:
        """The first step from this one on whose batch shares no draws with earlier batches."""
        if step >= self.steps:
            return self.steps
        phase, first = self.phase_at(step)
        each = self.sampling.round_steps(phase.size)
        return min(first + -(-(step - first) // each) * each, first + phase.steps)

    @property
    def moves(self) -> int:
        """The number of contributions that change with one unit: two if it is replaced."""
        return 2 if self.unit.change is Change.REPLACE else 1

    def scale(self, phase: Phase) -> Fraction:
        """The scale of the noise in the units of the sum: multiplier times sensitivity."""
        return phase.multiplier * phase.norm * self.moves

    def phase_now(self, step: int, counts: Sequence[NoisyShare]) -> Phase:
        """The phase of a step, counted from 0. The norm of an adaptive clip follows from the noisy
        count of the last step that had the same clip."""
        phase, _ = self.phase_at(step)
        if not isinstance(phase.clip, Adaptive):
            return phase
        for last in reversed(counts):
            if self.phase_at(last.step - 1)[0].clip == phase.clip:
                return phase.at(phase.clip.after(last))
        return phase.at(phase.clip.start)

    def _step(self, phase: Phase) -> Term | PrivacyLoss:
        """The privacy loss of a step for a unit in its batch: of its sum, and of its count."""
        term = self.noise.term(phase.multiplier)
        if not isinstance(phase.clip, Adaptive):
            return term
        return term + phase.clip.term(batch=phase.size.batch, moves=self.moves)

    @cached_property
    def digest(self) -> str:
        """A hash that stands for this plan in a ledger."""
        facts = (self.unit, self.records, self.phases, self.sampling, self.noise)
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the privacy loss that a run can't check."""
        who = "record" if self.unit.column is None else f"value of {self.unit.column!r}"
        return (
            f"{self.records} is public: {self.sampling.declared.value}, a {who} being one",
            "the model, loss and optimizer were not made from these data in another way",
            _DRAWS,
            _ITEMS,
            "whoever sees losses, batches or errors while it runs may see the data anyway",
            *(
                [f"asserted by {self.unit}: no one has examples under several values"]
                if self.unit.column is not None
                else []
            ),
        )

    @property
    def gaps(self) -> tuple[str, ...]:
        """Known gaps, which the privacy loss does not cover."""
        is_counted = any(isinstance(phase.clip, Adaptive) for phase in self.phases)
        gaps = (self.noise.gap, COUNT_GAP if is_counted else None)
        return tuple(gap for gap in gaps if gap is not None)

    def explain(self) -> str:
        """The plan in words: steps, privacy loss, assumptions and gaps."""
        lines = [f"{self.steps} steps, for {self.unit}"]
        for phase, first in zip(self.phases, self._starts(), strict=True):
            lines += [
                f"steps {first + 1} to {first + phase.steps}:",
                f"  examples: {self.sampling.explain(phase.size)}",
                f"  clipped to {_clip_in_words(phase, self.noise.order)}",
                f"  noise: {self.noise!r} of scale {_scale_in_words(self, phase)},",
                f"    {shown(phase.multiplier)} times the sensitivity of the sum",
                f"  divided by {phase.size.batch}, whatever the batch's size",
            ]
        lines += [
            f"cost: {self.privacy_loss}",
            f"  epsilon = {self.epsilon:.6g} at delta = {shown(self.delta)}",
            *(f"assumed: {each}" for each in self.assumptions),
            *(f"not covered: {each}" for each in self.gaps),
        ]
        return "\n".join(lines)

    def _starts(self) -> list[int]:
        return [0, *accumulate(phase.steps for phase in self.phases[:-1])]


def plan(  # noqa: PLR0913  # a plan states everything, in one place
    *,
    records: int,
    epsilon: Number | None = None,
    delta: Number = 0,
    multiplier: Number | None = None,
    batch: int | None = None,
    epochs: Number | None = None,
    steps: int | None = None,
    stages: Sequence[Stage] = (),
    unit: Unit = Unit.ROW,
    clip: Number | Clip = 1,
    sampling: Sampling | None = None,
    noise: AnyNoise | None = None,
) -> TrainingPlan:
    """A plan with the least noise that stays within (epsilon, delta), or with this multiplier.

    ``records`` is a public number, declared by the owner of the data: about how many units the
    data have. It gives the sampling rate (exactly batch / records) and, with ``epochs``, the number
    of steps. Sums are divided by ``batch``. ``stages`` are for plans whose steps differ.

    >>> made = plan(epsilon=3, delta=1e-6, records=60_000, batch=4096, epochs=20)
    >>> made.steps, made.phases[0].size.rate, made.epsilon <= 3
    (293, Fraction(128, 1875), True)
    >>> exact = plan(multiplier=2, delta=1e-5, records=930, batch=10, steps=5)
    >>> print(exact.privacy_loss)
    5 * accounting.PoissonSampled(privacy_loss=accounting.Gaussian(multiplier=2), rate=1/93)
    """
    # 1. checks of what is the same in all steps
    way: Sampling = PoissonSampling() if sampling is None else sampling
    kind: AnyNoise = FloatGaussian() if noise is None else noise
    _check_kinds(way, kind)
    _check_unit(unit, way)
    records = _checks.positive_count(records=records)
    # 2. phases, for any level of noise
    asked = _stages(stages, way, records=records, batch=batch, epochs=epochs, steps=steps)
    limit = _checks.delta(delta=delta)
    kinds = [_checked(stage, records, batch, clip=clip, noise=kind) for stage in asked]
    target = None if epsilon is None else _checks.positive(epsilon=epsilon)

    def with_noise(level: Fraction) -> TrainingPlan:
        phases = tuple(
            Phase(stage.steps, size, norm, level * fraction(stage.noise))
            for stage, (size, norm) in zip(asked, kinds, strict=True)
        )
        return TrainingPlan(unit, records, phases, way, kind, limit, target)

    # 3. the level of noise: as given, or the least that stays within epsilon
    if (target is None) == (multiplier is None):
        raise InvalidArgument("give either epsilon, with delta, or multiplier: one decides")
    if target is None:
        return with_noise(_checks.positive(multiplier=multiplier))
    if kind.order == 2 and not limit:
        raise InvalidArgument("delta = 0: normal noise needs a delta above 0, such as 1e-6")
    _check_counts(with_noise(_HARDLY_ANY_COST), target)
    found = calibrate(
        lambda level: with_noise(level).privacy_loss,
        epsilon=target,
        delta=limit,
        name="multiplier",
    )
    return with_noise(found.value)


def _check_counts(made: TrainingPlan, target: Fraction) -> None:
    """Refuse counts of an adaptive clip that alone cost more than the target."""
    if any(isinstance(phase.clip, Adaptive) for phase in made.phases) and made.epsilon > target:
        raise InvalidArgument(
            f"clip: the counts alone cost epsilon = {made.epsilon:.6g}, and the limit is "
            f"{shown(target)}; give Adaptive a larger stddev, or plan larger batches"
        )


def _check_kinds(sampling: Sampling, noise: AnyNoise) -> None:
    if not hasattr(sampling, "privacy_loss"):
        raise InvalidArgument(f"sampling = {sampling!r}: give one, like PoissonSampling()")
    if not isinstance(noise, AnyNoise):
        raise InvalidArgument(
            f"noise = {noise!r}: give a kind of noise, like FloatGaussian(); its scale follows "
            "from epsilon or multiplier"
        )


def _check_unit(unit: Unit, sampling: Sampling) -> None:
    if not isinstance(unit, Unit):
        raise InvalidArgument(f"unit = {unit!r}: give Unit.ROW or a Unit, like Unit('person_id')")
    if unit.change is not sampling.change:
        raise InvalidArgument(
            f"unit = {unit!r}: {sampling!r} is priced for {sampling.change} only; give "
            f"{unit.with_change(sampling.change)!r}, or another sampling"
        )


def _stages(
    stages: Sequence[Stage],
    sampling: Sampling,
    *,
    records: int,
    batch: int | None,
    epochs: Number | None,
    steps: int | None,
) -> tuple[Stage, ...]:
    """The given stages, or one stage of the given steps or epochs."""
    if sum((bool(stages), epochs is not None, steps is not None)) != 1:
        raise InvalidArgument("give one of epochs, steps and stages, for the length of the run")
    if stages:
        return tuple(stages)
    if steps is not None:
        return (Stage(_checks.positive_count(steps=steps)),)
    size = SamplingSize(records, _batch(batch))
    return (Stage(sampling.epoch_steps(_checks.positive(epochs=epochs), size)),)


def _batch(batch: int | None) -> int:
    if batch is None:
        raise InvalidArgument("batch: give about how many records a batch is to have")
    return _checks.positive_count(batch=batch)


def _checked(
    stage: Stage, records: int, batch: int | None, *, clip: Number | Clip, noise: AnyNoise
) -> tuple[SamplingSize, Fraction | Clip]:
    """The stage's sizes and clip, checked against the noise."""
    size = SamplingSize(records, _batch(batch if stage.batch is None else stage.batch))
    given = clip if stage.clip is None else stage.clip
    if not isinstance(given, Number):
        if not hasattr(given, "sensitivity") or not hasattr(given, "order"):
            raise InvalidArgument(f"clip = {given!r}: give a norm, like 1.0, or a way to clip")
        if given.order != noise.order:
            raise InvalidArgument(
                f"clip = {given!r} bounds L{given.order} norms, and {noise!r} needs L{noise.order}"
            )
        norm = _checks.positive(clip=given.sensitivity)
    else:
        given = norm = _checks.positive(clip=given)
    if isinstance(noise, ExactGaussian):
        if not isinstance(given, Fraction):
            raise InvalidArgument(f"clip = {given!r}: exact noise takes one norm for all, a number")
        noise.check(norm)
    return size, given


def _clip_in_words(phase: Phase, order: int) -> str:
    if isinstance(phase.clip, Fraction):
        return f"L{order} norm {shown(phase.clip)}"
    if isinstance(phase.clip, Adaptive):
        return phase.clip.explain(phase.size.batch)
    return f"{phase.clip!r}, L{order} norm {shown(phase.norm)} over all"


def _scale_in_words(made: TrainingPlan, phase: Phase) -> str:
    at_first = " at first" if isinstance(phase.clip, Adaptive) else ""
    return f"{shown(made.scale(phase))}{at_first}"
