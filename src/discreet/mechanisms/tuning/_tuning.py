"""The best of a secret number of runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from discreet import _checks
from discreet._exact import Number
from discreet._frozen import FrozenMapping
from discreet.accounting import PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._mechanism import Mechanism, checked_mechanism
from discreet.mechanisms.tuning._runs import (
    NegativeBinomialRuns,
    RunsLaw,
    best_share,
    draw,
    epsilon_of_each,
)
from discreet.noise import Bits, UniformLaw

V = TypeVar("V")
Outcome = Mapping[str, Any]  # Any: a score, and any result of a mechanism


@dataclass(frozen=True, slots=True, repr=False)
class Tuning(Generic[V]):
    """Makes K runs, each of a randomly drawn candidate, and gives the one with the highest score.
    K is drawn from the law of ``runs`` and is never shown.

    Each candidate is a mechanism for the same computation, whose value is a mapping with a
    ``score`` and which states this by ``is_scored``, as `Scored` does. All must cost the same. The
    value is the mapping of the best run, with the name of its ``candidate``; or ``None`` if there
    was no run, which happens with `PoissonRuns` only.

    Guarantee: the term that the law of runs makes of one run's privacy loss, for every unit and
    relation that one run covers (Liu and Talwar 2019; Papernot and Steinke 2022). Candidates and
    law are public and fixed beforehand; the privacy loss of a run includes its score.

    Not covered: the running time, which grows with K. With a ceiling ``most``, exactly ``most``
    runs are made, and the first K count. Candidates of different speed show in the time anyway.

    >>> from discreet.mechanisms import DiscreteLaplace
    >>> from discreet.mechanisms.tuning import NegativeBinomialRuns, Scored
    >>> from discreet import Unit
    >>> people = Bounded(lambda: 41, sensitivity=1, unit=Unit("person_id"), name="people")
    >>> run = Scored(DiscreteLaplace(20), lambda n, noisy: -abs(n - noisy), DiscreteLaplace(20), 1)
    >>> tuning = Tuning({"scale 20": run}, NegativeBinomialRuns(eta=1, gamma=0.1))
    >>> tuning.privacy_loss(people).epsilon()
    0.263591284571
    >>> float(tuning.error(0.95))
    0.65517...
    """

    candidates: Mapping[Any, Mechanism[V, Outcome]]  # Any: names, as texts or numbers
    runs: RunsLaw

    def __post_init__(self) -> None:
        """Store an immutable copy of the candidates, which can't change after the privacy loss."""
        held = dict(self.candidates.items()) if isinstance(self.candidates, Mapping) else {}
        if not held:
            raise InvalidArgument(
                "candidates: give a mapping from at least one name to a mechanism"
            )
        for name, candidate in held.items():
            checked_mechanism(candidate, f"candidates[{name!r}]")
            if not getattr(candidate, "is_scored", False):
                raise InvalidArgument(
                    f"candidates[{name!r}] = {candidate!r}: give Scored(...) around it, or a "
                    "mechanism whose values are mappings with a 'score' and that says `is_scored`"
                )
        _are_runs(self.runs)
        object.__setattr__(self, "candidates", FrozenMapping(held))

    @staticmethod
    def for_epsilon(
        epsilon: Number,
        runs: RunsLaw,
        make: Callable[[Fraction], Mapping[Any, Mechanism[V, Outcome]]],  # Any: the same
    ) -> "Tuning[V]":
        """The tuning that costs at most this pure epsilon; ``make`` gives the candidates for the
        epsilon of one run."""
        if not callable(make):
            raise InvalidArgument("make: give a function of the epsilon of each run")
        each = epsilon_of_each(_are_runs(runs), _checks.positive(epsilon=epsilon))
        return Tuning(make(each), runs)

    @staticmethod
    def for_error(
        error: Number,
        confidence: Number,
        candidates: Mapping[Any, Mechanism[V, Outcome]],  # Any: the same
        *,
        eta: Number = 1,
    ) -> "Tuning[V]":
        """The tuning of these candidates with the fewest `NegativeBinomialRuns` whose `error`, a
        share of one run's outcomes, is at most ``error`` at ``confidence``."""
        return Tuning(candidates, NegativeBinomialRuns.for_error(error, confidence, eta=eta))

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """One term around the loss of one run; raises unless all candidates cost the same."""
        stated(bounded)
        losses = [each.privacy_loss(bounded) for each in self.candidates.values()]
        for name, loss in zip(self.candidates, losses, strict=True):
            if loss != losses[0]:
                raise InvalidArgument(
                    f"candidate {name!r} costs {loss!r}, another one {losses[0]!r}: each run must "
                    "cost the same, whatever is drawn"
                )
        one_run = PrivacyLoss(losses[0].terms)
        return PrivacyLoss.of(self.runs.term(one_run), unit=bounded.unit)

    def sample(self, value: V, bits: Bits) -> Outcome | None:
        """The best run; of equal ones the first, since runs are exchangeable."""
        counted = draw(self.runs, bits)
        names, best = list(self.candidates), None
        for number in range(self.runs.most or counted):
            name = names[UniformLaw(len(names)).draw(bits)]
            found = {**self.candidates[name].sample(value, bits), "candidate": name}
            if number < counted and (best is None or _rank(found) > _rank(best)):
                best = found
        return best

    def error(self, confidence: Number) -> Fraction:
        """The smallest share s, rounded up, such that at this confidence the value is among the
        best s of one run's outcomes, by score. A share of 1 is no statement."""
        return best_share(self.runs, _checks.probability(confidence=confidence))

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        return f"Tuning({self.candidates!r}, {self.runs!r})"


def _are_runs(runs: RunsLaw) -> RunsLaw:
    if callable(getattr(runs, "term", None)) and not isinstance(runs, type):
        return runs
    raise InvalidArgument(f"runs = {runs!r}: give PoissonRuns or NegativeBinomialRuns")


def _rank(found: Outcome) -> tuple[bool, Any]:  # Any: a number
    """A total order of scores; NaN comes last."""
    score = found["score"]
    is_number = bool(score == score)  # noqa: PLR0124  # NaN isn't
    return is_number, score if is_number else 0
