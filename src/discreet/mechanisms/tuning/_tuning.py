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
Outcome = Mapping[str, Any]  # Any: a score, and whatever a mechanism gives


@dataclass(frozen=True, slots=True, repr=False)
class Tuning(Generic[V]):
    """Makes K runs, each of a candidate that is drawn at random, and gives the one of the highest
    score; K is drawn from the law of ``runs`` and is shown nowhere.

    Each candidate is a mechanism for the same computation whose value is a mapping with a
    ``score``, which it says by ``is_scored``: such as `Scored`. All must cost the same. The value
    is the best run's mapping, with the ``candidate``'s name; or, where there was no run, which
    only `PoissonRuns` allow, ``None``.

    Guarantee: that of the term that the runs make of one run's privacy loss, for every unit and
    relation that one run covers (Liu and Talwar 2019; Papernot and Steinke 2022). The candidates
    and the law are public and fixed beforehand; each run, its score included, is paid.

    Not covered: the running time, which grows with K, unless the runs have a ceiling ``most``: then
    ``most`` runs are always made, of which the first K count. Candidates that take differently
    long show by time either way.

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
        """Keep a copy of the candidates, which nobody can alter between the price and the draw."""
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
        """The tuning that costs at most epsilon, in pure differential privacy: of the candidates
        that ``make`` gives for the epsilon that each run may then cost."""
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
        """The tuning of these candidates with the fewest `NegativeBinomialRuns` whose `error` at
        this confidence is at most this: a share of what one run gives."""
        return Tuning(candidates, NegativeBinomialRuns.for_error(error, confidence, eta=eta))

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """One term around that of a run; raises unless all candidates cost the same."""
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
        """The best run. The first of equals is as good as a random one: all runs are alike."""
        counted = draw(self.runs, bits)
        names, best = list(self.candidates), None
        for number in range(self.runs.most or counted):
            name = names[UniformLaw(len(names)).draw(bits)]
            found = {**self.candidates[name].sample(value, bits), "candidate": name}
            if number < counted and (best is None or _rank(found) > _rank(best)):
                best = found
        return best

    def error(self, confidence: Number) -> Fraction:
        """The smallest share s such that the value is among the best s of what one run gives, by
        score, at this confidence; rounded up. 1 says nothing."""
        return best_share(self.runs, _checks.probability(confidence=confidence))

    def __repr__(self) -> str:
        """The mechanism as it is written in code."""
        return f"Tuning({self.candidates!r}, {self.runs!r})"


def _are_runs(runs: RunsLaw) -> RunsLaw:
    if callable(getattr(runs, "term", None)) and not isinstance(runs, type):
        return runs
    raise InvalidArgument(f"runs = {runs!r}: give PoissonRuns or NegativeBinomialRuns")


def _rank(found: Outcome) -> tuple[bool, Any]:  # Any: a number
    """A total order of scores: what is no number comes last."""
    score = found["score"]
    is_number = bool(score == score)  # noqa: PLR0124  # NaN isn't
    return is_number, score if is_number else 0
