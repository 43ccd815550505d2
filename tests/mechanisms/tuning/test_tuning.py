"""Tuning by every script of words, by many draws, and beside a neighbour."""

import logging
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from flint import arb

from discreet import Ledger, Limit
from discreet._exact import precision
from discreet._unit import Unit
from discreet.accounting import PrivacyLoss, Pure, TunedNegativeBinomial
from discreet.audit import SeededBits, replay
from discreet.errors import ComputationFailed, InvalidArgument
from discreet.mechanisms import Bounded, DiscreteLaplace, Door, release, release_through
from discreet.mechanisms.tuning import NegativeBinomialRuns, PoissonRuns, RunsLaw, Scored, Tuning
from discreet.noise import BernoulliLaw, Bits
from tests.bad_values import BadValue
from tests.noise.walk import BITS, Real, refutation, walk
from tests.tables import one_in

PERSON = Unit("person")
DRAWS = 6_000


@dataclass(frozen=True)
class Told:
    """Reports whether a value is 1, truly with odds 3 to 1. The report is the score."""

    is_scored: ClassVar[bool] = True

    odds: int = 3

    def privacy_loss(self, bounded: Bounded[int]) -> PrivacyLoss:
        return PrivacyLoss.of(Pure(Fraction(math.log(self.odds))), unit=bounded.unit)

    def sample(self, value: int, bits: Bits) -> Mapping[str, Any]:
        is_true = BernoulliLaw(Fraction(self.odds, self.odds + 1)).draw(bits)
        return {"score": int(value == is_true)}

    def one_run(self, value: int) -> list[Fraction]:
        """The chances of both scores, the lower one first."""
        true = Fraction(self.odds, self.odds + 1)
        return [1 - true, true] if value else [true, 1 - true]


def person(value: int = 1) -> Bounded[int]:
    return Bounded(lambda: value, sensitivity=1, unit=PERSON, name="a bit")


def best_score(runs: RunsLaw, one_run: list[Fraction]) -> dict[int | None, Real]:
    """The exact chance of each score to be the best, from the chances of each number of runs."""
    with precision(BITS):
        numbers = [chance for chance, _ in zip(runs.law.chances(), range(600), strict=False)]
        if runs.most:
            numbers = numbers[: runs.most + 1]
        total = sum(numbers, arb(0))
        low = one_run[0]
        worse = sum(
            (
                n * arb(low.numerator) ** k / arb(low.denominator) ** k
                for k, n in enumerate(numbers)
            ),
            arb(0),
        )
        worse -= numbers[0]
        some = total - numbers[0]
        return {None: numbers[0] / total, 0: worse / total, 1: (some - worse) / total}


RUNS: list[RunsLaw] = [
    NegativeBinomialRuns(eta=1, gamma=Fraction(1, 4), most=2),
    NegativeBinomialRuns(eta=0, gamma=Fraction(1, 4), most=2),
    NegativeBinomialRuns(eta=Fraction(-3, 4), gamma=Fraction(1, 4), most=2),
    PoissonRuns(1, most=2),
]


@pytest.mark.parametrize("runs", RUNS, ids=repr)
@pytest.mark.parametrize("value", one_in(2, [0, 1]))
def test_every_script(runs: RunsLaw, value: int) -> None:
    """Each score is given with exactly its probability."""
    tuning = Tuning({"only": Told()}, runs)

    def score(bits: Bits) -> int | None:
        found = tuning.sample(value, bits)
        return None if found is None else found["score"]

    found = walk(score, 2, 7)
    exact = best_score(runs, Told().one_run(value))
    assert refutation(found, exact.__getitem__) is None
    assert found.undecided[-1] < 0.05
    wrong = best_score(runs, Told(2).one_run(value))
    assert refutation(found, wrong.__getitem__) is not None


UNLIMITED: list[RunsLaw] = [
    NegativeBinomialRuns(eta=1, gamma=Fraction(1, 5)),
    NegativeBinomialRuns(eta=0, gamma=Fraction(1, 20)),
    NegativeBinomialRuns(eta=Fraction(-1, 2), gamma=Fraction(1, 20)),
    NegativeBinomialRuns(eta=Fraction(5, 2), gamma=Fraction(1, 2)),
    PoissonRuns(3),
    PoissonRuns(3, most=6),
]


@pytest.mark.parametrize("runs", one_in(2, UNLIMITED), ids=repr)
def test_many_draws(runs: RunsLaw) -> None:
    """Frequencies lie within 6.1 standard errors of the exact chances: a false alarm is rarer
    than 1e-8 for all three. A fixed number of runs, 8, would raise one."""
    tuning, bits = Tuning({"a": Told(), "b": Told()}, runs), SeededBits(3)
    counts = Counter((tuning.sample(0, bits) or {"score": None})["score"] for _ in range(DRAWS))
    exact = best_score(runs, Told().one_run(0))
    for score, chance in exact.items():
        p = float(chance)
        assert abs(counts[score] - DRAWS * p) <= 6.1 * math.sqrt(DRAWS * p * (1 - p)) + 1e-9
    fixed = 0.75**8
    p = float(exact[0])
    assert abs(fixed - p) > 12.2 * math.sqrt(p * (1 - p) / DRAWS)


@pytest.mark.parametrize("runs", [*RUNS, *UNLIMITED], ids=repr)
def test_the_price_holds_for_both_neighbours(runs: RunsLaw) -> None:
    """No score's chances are further apart than the claimed epsilon says."""
    epsilon = Tuning({"only": Told()}, runs).privacy_loss(person()).epsilon()
    one, other = (best_score(runs, Told().one_run(value)) for value in (0, 1))
    ratios = [
        abs(math.log(float(one[score]) / float(other[score]))) for score in one if one[score] > 0
    ]
    assert max(ratios) <= epsilon + 1e-12
    assert runs.most or max(ratios) > 0.5 * epsilon  # the price is of the right size
    half = Tuning({"only": Told(2)}, runs).privacy_loss(person()).epsilon()
    if isinstance(runs, NegativeBinomialRuns) and not runs.most:
        assert max(ratios) > half  # runs priced as cheaper ones would be caught


def test_candidates_are_drawn_alike() -> None:
    """Of 3000 single runs, each of 4 candidates has a quarter, within 6.1 standard errors."""
    tuning = Tuning({name: Told() for name in "abcd"}, NegativeBinomialRuns(eta=1, gamma=1))
    bits = SeededBits(9)
    counts = Counter((tuning.sample(1, bits) or {})["candidate"] for _ in range(3000))
    assert set(counts) == set("abcd")
    assert all(abs(n - 750) < 6.1 * math.sqrt(3000 * 3 / 16) < 150 for n in counts.values())


class TestRelease:
    def test_tuning_goes_through_the_door(self, caplog: pytest.LogCaptureFixture) -> None:
        """And shows the best run, its candidate and its score: nothing else."""
        caplog.set_level(logging.DEBUG)
        ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=5))
        run = Scored(DiscreteLaplace(2), closeness, DiscreteLaplace(5), sensitivity=1)
        tuning = Tuning({"only": run}, NegativeBinomialRuns(eta=1, gamma=0.2))
        answer = release(person(41), tuning, ledger, request="once")
        assert answer.value is not None
        assert set(answer.value) == {"candidate", "score", "value"}
        assert answer.privacy_loss == tuning.privacy_loss(person())
        assert {record.name for record in caplog.records} == {"discreet.ledger"}
        again = release(person(41), tuning, ledger, request="once")
        assert again.value == answer.value

    def test_no_run_is_an_outcome(self) -> None:
        ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=5))
        tuning = Tuning({"only": Told()}, PoissonRuns(Fraction(1, 10**9)))
        answer = release(person(), tuning, ledger, request="once")
        assert answer.value is None
        assert release(person(), tuning, ledger, request="once").value is None

    @pytest.mark.parametrize("runs", [*RUNS, *UNLIMITED], ids=repr)
    def test_neighbours_differ_in_nothing_else(self, runs: RunsLaw) -> None:
        def act(door: Door, value: int) -> object:
            run = Scored(DiscreteLaplace(2), closeness, DiscreteLaplace(5), sensitivity=1)
            found = release_through(door, person(value), Tuning({"a": run, "b": run}, runs))
            return sorted(found.value or {})

        for seed in range(5):
            replay(act, 41, 42, seed=seed)

    def test_a_ceiling_makes_the_same_number_of_runs(self) -> None:
        counted = Counting()
        tuning = Tuning({"only": counted}, NegativeBinomialRuns(eta=1, gamma=0.5, most=7))
        for seed in range(20):
            tuning.sample(1, SeededBits(seed))
            assert counted.runs.pop() == 7
            counted.runs.append(0)

    def test_a_measure_that_is_no_number_locks(self) -> None:
        ledger = Ledger.in_memory(unit=PERSON, limit=Limit(epsilon=5))
        half: BadValue = lambda *_: 0.5  # noqa: E731
        run = Scored(DiscreteLaplace(2), half, DiscreteLaplace(5), sensitivity=1)
        tuning = Tuning({"only": run}, NegativeBinomialRuns(eta=1, gamma=1))
        with pytest.raises(ComputationFailed):
            release(person(), tuning, ledger)


class TestPrice:
    def test_score_and_run_are_paid(self) -> None:
        run = Scored(DiscreteLaplace(2), closeness, DiscreteLaplace(5), sensitivity=3)
        one = run.privacy_loss(person())
        assert one.epsilon() == pytest.approx(1 / 2 + 3 / 5)
        loss = Tuning({"only": run}, NegativeBinomialRuns(eta=1, gamma=0.1)).privacy_loss(person())
        assert loss.unit == PERSON
        [(term, count)] = loss.terms
        assert isinstance(term, TunedNegativeBinomial)
        assert (term.privacy_loss.terms, count) == (one.terms, 1)

    def test_for_epsilon(self) -> None:
        def make(each: Fraction) -> Mapping[Any, Scored[int, int]]:
            noise = DiscreteLaplace(2 / each)
            return {"only": Scored(noise, closeness, noise, sensitivity=1)}

        tuning = Tuning.for_epsilon(1, NegativeBinomialRuns(eta=1, gamma=0.05), make)
        assert 0.999 < tuning.privacy_loss(person()).epsilon() <= 1

    def test_candidates_that_cost_differently_are_refused(self) -> None:
        tuning = Tuning({"a": Told(3), "b": Told(4)}, PoissonRuns(3))
        with pytest.raises(InvalidArgument, match="must cost the same"):
            tuning.privacy_loss(person())

    def test_candidates_for_another_kind_are_refused(self) -> None:
        rows = Bounded(lambda: 1, sensitivity=1, unit=PERSON, name="x", shape=(2,))
        run = Scored(Told(), lambda *_: 1, DiscreteLaplace(1), sensitivity=1)
        assert Tuning({"a": run}, PoissonRuns(3)).privacy_loss(rows).epsilon() > 0
        keys = Bounded.keys(dict, per_unit=1, unit=PERSON, name="keys")
        inner: BadValue = Scored(DiscreteLaplace(1), closeness, DiscreteLaplace(1), sensitivity=1)
        with pytest.raises(InvalidArgument, match="keys"):
            Tuning({"a": inner}, PoissonRuns(3)).privacy_loss(keys)


class TestErrors:
    @pytest.mark.parametrize("runs", UNLIMITED, ids=repr)
    def test_the_share_is_reached(self, runs: RunsLaw) -> None:
        """Scores that are uniform on 0, ..., 999: the best is among the best share as often as was
        said, within 6.1 standard errors; and not much more often, without a ceiling."""
        share = Tuning({"only": Uniform()}, runs).error(0.5)
        assert share < 1
        found, bits = 0, SeededBits(11)
        for _ in range(2000):
            best = Tuning({"only": Uniform()}, runs).sample(1, bits)
            found += best is not None and best["score"] >= 1000 * (1 - share)
        assert found / 2000 >= 0.5 - 6.1 * math.sqrt(1 / 8000)
        assert runs.most or found / 2000 <= 0.5 + 6.1 * math.sqrt(1 / 8000) + 0.01

    def test_scores_that_are_no_numbers_come_last(self) -> None:
        bits = SeededBits(1)
        runs = NegativeBinomialRuns(eta=1, gamma=Fraction(1, 100), most=30)
        tuning = Tuning({"good": Uniform(), "none": Nothing()}, runs)
        found = [tuning.sample(1, bits) for _ in range(50)]
        chosen = Counter(best["candidate"] for best in found if best is not None)
        assert chosen["good"] > 40

    def test_bad_input(self) -> None:
        bad: list[BadValue] = [{}, None, [Told()]]
        for candidates in bad:
            with pytest.raises(InvalidArgument, match="candidates"):
                Tuning(candidates, PoissonRuns(1))
        lawless: list[BadValue] = [None, 3, "PoissonRuns"]
        for runs in lawless:
            with pytest.raises(InvalidArgument, match=r"runs = .*: give PoissonRuns"):
                Tuning({"one": Told()}, runs)
        for sensitivity in (0, -1, 1.5, True):
            wrong: BadValue = sensitivity
            with pytest.raises(InvalidArgument, match="sensitivity"):
                Scored(DiscreteLaplace(1), closeness, DiscreteLaplace(1), wrong)
        none: BadValue = None
        with pytest.raises(InvalidArgument, match="measure"):
            Scored(Told(), none, DiscreteLaplace(1), 1)
        with pytest.raises(InvalidArgument, match="confidence"):
            Tuning({"only": Told()}, PoissonRuns(1)).error(1)

    def test_tuning_prints_as_code(self) -> None:
        run = Scored(DiscreteLaplace(2), closeness, DiscreteLaplace(5), sensitivity=1)
        assert repr(Tuning({"a": run}, PoissonRuns(3, most=9))) == (
            "Tuning({'a': Scored(DiscreteLaplace(scale=2), DiscreteLaplace(scale=5), "
            "sensitivity=1)}, PoissonRuns(3, most=9))"
        )
        assert repr(NegativeBinomialRuns(eta=0.5, gamma=0.1, most=4)) == (
            "NegativeBinomialRuns(eta=0.5, gamma=0.1, most=4)"
        )


def closeness(value: int, noisy: int) -> int:
    return -min(abs(value - noisy), 100)


@dataclass(frozen=True)
class Uniform(Told):
    """A score among a thousand."""

    def sample(self, value: int, bits: Bits) -> Mapping[str, Any]:
        return {"score": bits.word() % 1000}


@dataclass(frozen=True)
class Nothing(Told):
    """A score that is no number."""

    def sample(self, value: int, bits: Bits) -> Mapping[str, Any]:
        return {"score": math.nan}


class Counting(Told):
    """Counts its runs."""

    runs: list[int] = [0]  # noqa: RUF012  # one for all, in this test only

    def sample(self, value: int, bits: Bits) -> Mapping[str, Any]:
        self.runs[-1] += 1
        return super().sample(value, bits)
