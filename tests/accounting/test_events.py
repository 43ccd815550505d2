"""Trees of events: read by the names of classes and fields, written with the classes given."""

import json
import math
import subprocess
from dataclasses import is_dataclass, make_dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import gammaln

from discreet._budget import Limit
from discreet._exact import precision
from discreet._unit import Change, Unit
from discreet.accounting import (
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyLoss,
    Pure,
    RandomizedResponse,
    SampledWithoutReplacement,
    SampledWithReplacement,
    TruncatedPoisson,
    TunedNegativeBinomial,
    TunedPoisson,
    Zcdp,
    from_dp_event,
    to_dp_event,
)
from discreet.accounting._loss import MOST_NESTED
from discreet.accounting.terms import _best_run
from discreet.errors import InvalidArgument, NoBound, WrongUnit
from discreet.ledger import Ledger
from tests.accounting.examples import some_loss

PEER = Path(__file__).parents[2] / ".peers" / "dp-accounting" / "bin" / "python"

# The classes of dp_accounting, by their names and the names of their fields
FIELDS = {
    "NoOpDpEvent": [],
    "NonPrivateDpEvent": [],
    "UnsupportedDpEvent": [],
    "GaussianDpEvent": ["noise_multiplier"],
    "LaplaceDpEvent": ["noise_multiplier"],
    "DiscreteLaplaceDpEvent": ["noise_parameter", "sensitivity"],
    "DiscreteGaussianDpEvent": ["sigma", "sensitivity", "dimension"],
    "RandomizedResponseDpEvent": ["noise_parameter", "num_buckets"],
    "ExponentialMechanismDpEvent": ["epsilon"],
    "PermuteAndFlipDpEvent": ["epsilon"],
    "EpsilonDeltaDpEvent": ["epsilon", "delta"],
    "ZCDpEvent": ["rho", "xi"],
    "SelfComposedDpEvent": ["event", "count"],
    "ComposedDpEvent": ["events"],
    "PoissonSampledDpEvent": ["sampling_probability", "event"],
    "SampledWithReplacementDpEvent": ["source_dataset_size", "sample_size", "event"],
    "SampledWithoutReplacementDpEvent": ["source_dataset_size", "sample_size", "event"],
    "TruncatedSubsampledGaussianDpEvent": [
        "dataset_size",
        "sampling_probability",
        "truncated_batch_size",
        "noise_multiplier",
    ],
    "RepeatAndSelectDpEvent": ["event", "mean", "shape"],
}
events: Any = SimpleNamespace(
    **{name: make_dataclass(name, [(one, Any) for one in names]) for name, names in FIELDS.items()}
)
gaussian = events.GaussianDpEvent

EXAMPLES: dict[str, Any] = {  # one event of each kind that has a term
    "NoOpDpEvent": events.NoOpDpEvent(),
    "GaussianDpEvent": gaussian(2),
    "LaplaceDpEvent": events.LaplaceDpEvent(2),
    "DiscreteLaplaceDpEvent": events.DiscreteLaplaceDpEvent(0.5, 2),
    "DiscreteGaussianDpEvent": events.DiscreteGaussianDpEvent(3, 2, None),
    "RandomizedResponseDpEvent": events.RandomizedResponseDpEvent(0.5, 3),
    "ExponentialMechanismDpEvent": events.ExponentialMechanismDpEvent(0.5),
    "PermuteAndFlipDpEvent": events.PermuteAndFlipDpEvent(0.5),
    "EpsilonDeltaDpEvent": events.EpsilonDeltaDpEvent(0.5, 1e-6),
    "ZCDpEvent": events.ZCDpEvent(0.5, 0.1),
    "SelfComposedDpEvent": events.SelfComposedDpEvent(gaussian(2), 3),
    "ComposedDpEvent": events.ComposedDpEvent([gaussian(2), gaussian(3)]),
    "PoissonSampledDpEvent": events.PoissonSampledDpEvent(0.1, gaussian(2)),
    "SampledWithReplacementDpEvent": events.SampledWithReplacementDpEvent(90, 9, gaussian(2)),
    "SampledWithoutReplacementDpEvent": events.SampledWithoutReplacementDpEvent(90, 9, gaussian(2)),
    "TruncatedSubsampledGaussianDpEvent": events.TruncatedSubsampledGaussianDpEvent(90, 0.1, 20, 2),
    "RepeatAndSelectDpEvent": events.RepeatAndSelectDpEvent(gaussian(2), 3, 1),
}


class TestReading:
    @pytest.mark.parametrize(
        ("event", "loss"),
        [
            (events.NoOpDpEvent(), PrivacyLoss()),
            (gaussian(4.0), 1 * Gaussian(4)),
            (events.DiscreteLaplaceDpEvent(0.1, 2), 1 * DiscreteLaplace(10, 2)),
            (events.DiscreteLaplaceDpEvent(0.1, 0), PrivacyLoss()),
            (events.DiscreteGaussianDpEvent(4, 1.5, None), 1 * DiscreteGaussianVector(4, 2.25)),
            (events.DiscreteGaussianDpEvent(4, 1.5, 1), 1 * DiscreteGaussian(4, 1)),
            (events.DiscreteGaussianDpEvent(4, 0.5, 1), PrivacyLoss()),
            (events.DiscreteGaussianDpEvent(4, 0, None), PrivacyLoss()),
            (events.LaplaceDpEvent(4.0), 1 * Laplace(4)),
            (events.ExponentialMechanismDpEvent(0.5), 1 * BoundedRange(0.5)),
            (events.PermuteAndFlipDpEvent(0.5), 1 * Pure(0.5)),
            (events.EpsilonDeltaDpEvent(1, 1e-6), 1 * Approximate(1, 1e-6)),
            (events.EpsilonDeltaDpEvent(1, 0), 1 * Pure(1)),
            (events.ZCDpEvent(0.1, 0), 1 * Zcdp(0.1)),
            (events.ZCDpEvent(0.1, 0.3), 1 * Zcdp(0.4)),
            (events.SelfComposedDpEvent(gaussian(4), 10), 10 * Gaussian(4)),
            (events.SelfComposedDpEvent(gaussian(4), 0), PrivacyLoss()),
            (events.ComposedDpEvent([gaussian(4), gaussian(4)]), 2 * Gaussian(4)),
            (events.ComposedDpEvent([]), PrivacyLoss()),
            (
                events.PoissonSampledDpEvent(0.01, events.SelfComposedDpEvent(gaussian(4), 3)),
                1 * PoissonSampled(3 * Gaussian(4), 0.01),
            ),
            (
                events.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 20, 2.0),
                1 * TruncatedPoisson(Gaussian(2), 0.01, 20, 1001),
            ),
            (
                events.RepeatAndSelectDpEvent(events.SelfComposedDpEvent(gaussian(4), 2), 10, 1),
                1 * TunedNegativeBinomial(2 * Gaussian(4), eta=1, gamma=0.1),
            ),
            (
                events.RepeatAndSelectDpEvent(gaussian(4), 1, 0.5),
                1 * TunedNegativeBinomial(Gaussian(4), eta=0.5, gamma=1),
            ),
            (
                events.RepeatAndSelectDpEvent(gaussian(4), 2.5, math.inf),
                1 * TunedPoisson(Gaussian(4), 2.5),
            ),
        ],
        ids=str,
    )
    def test_each_kind(self, event: object, loss: PrivacyLoss) -> None:
        assert from_dp_event(event) == loss

    @pytest.mark.parametrize(
        ("event", "loss"),
        [
            (gaussian(4), 1 * Gaussian(2)),
            (events.DiscreteLaplaceDpEvent(0.1, 2), 1 * DiscreteLaplace(10, 4)),
            (events.DiscreteGaussianDpEvent(4, 2, None), 1 * DiscreteGaussianVector(4, 16)),
            (events.DiscreteGaussianDpEvent(4, 0.5, 1), 1 * DiscreteGaussian(4, 1)),
            (events.LaplaceDpEvent(4), 1 * Laplace(2)),
            (events.ExponentialMechanismDpEvent(0.5), 1 * BoundedRange(0.5)),
            (events.ZCDpEvent(0.1, 0), 1 * Zcdp(0.1)),
            (
                events.SampledWithoutReplacementDpEvent(1000, 10, gaussian(4)),
                1 * SampledWithoutReplacement(Gaussian(2), 10, 1000),
            ),
            (
                events.SampledWithReplacementDpEvent(1000, 10, gaussian(4)),
                1 * SampledWithReplacement(Gaussian(2), 10, 1000),
            ),
            (events.RandomizedResponseDpEvent(1.0, 3), 1 * RandomizedResponse(0, 3)),
            (events.RandomizedResponseDpEvent(0.0, 1), PrivacyLoss()),
        ],
        ids=str,
    )
    def test_a_replaced_record_moves_twice_as_much(self, event: object, loss: PrivacyLoss) -> None:
        assert from_dp_event(event, change=Change.REPLACE) == loss

    @pytest.mark.parametrize("noise", [0.001, 0.1, 0.5, 0.999])
    @pytest.mark.parametrize("values", [2, 3, 10])
    def test_randomized_response_by_its_odds(self, noise: float, values: int) -> None:
        loss = from_dp_event(events.RandomizedResponseDpEvent(noise, values), Change.REPLACE)
        ((term, count),) = loss.terms
        assert isinstance(term, RandomizedResponse)
        assert term.categories == values
        assert count == 1
        true, each = 1 - noise + noise / values, noise / values
        assert float(term.epsilon) == pytest.approx(math.log(true / each), rel=1e-9)

    @pytest.mark.parametrize("mean", [1.5, 10, 1e3])
    @pytest.mark.parametrize("shape", [0, 0.5, 2, 30])
    def test_a_tuned_event_has_its_mean(self, mean: float, shape: float) -> None:
        """Or a little more, by fifteen digits."""
        loss = from_dp_event(events.RepeatAndSelectDpEvent(gaussian(4), mean, shape))
        ((term, _),) = loss.terms
        assert isinstance(term, TunedNegativeBinomial)
        assert term.eta == shape
        gamma = float(term.gamma)
        runs = np.arange(1, 400_000)
        log = runs * math.log1p(-gamma) + gammaln(runs + shape) - gammaln(runs + 1)
        law = np.exp(log - log.max())
        assert float(law @ runs / law.sum()) == pytest.approx(mean, rel=1e-6)
        with precision(200):
            least = _best_run.NegativeBinomial(term.eta, term.gamma).mean()
            assert mean <= least < mean * (1 + 1e-13)

    def test_large_counts_are_exact(self) -> None:
        tree = events.SelfComposedDpEvent(events.SelfComposedDpEvent(gaussian(4), 10**9), 10**9 + 7)
        assert from_dp_event(tree) == 10**9 * (10**9 + 7) * Gaussian(4)


class TestRefusing:
    @pytest.mark.parametrize(
        ("event", "said"),
        [
            (events.NonPrivateDpEvent(), "not private"),
            (events.UnsupportedDpEvent(), "UnsupportedDpEvent"),
            (events.ComposedDpEvent([gaussian(1), events.NonPrivateDpEvent()]), "not private"),
        ],
        ids=str,
    )
    def test_events_without_a_bound_are_refused(self, event: object, said: str) -> None:
        with pytest.raises(NoBound, match=said):
            from_dp_event(event)

    @pytest.mark.parametrize(
        ("event", "named"),
        [
            (gaussian(0), "noise_multiplier"),
            (events.RepeatAndSelectDpEvent(gaussian(1), 0.5, 1), "mean"),
            (events.RepeatAndSelectDpEvent(gaussian(1), 0, math.inf), "mean"),
            (events.RepeatAndSelectDpEvent(gaussian(1), math.inf, 1), "mean"),
            (events.RepeatAndSelectDpEvent(gaussian(1), 2, math.nan), "shape"),
            (events.RepeatAndSelectDpEvent(gaussian(1), 2, -1), "shape"),
            (gaussian(math.nan), "noise_multiplier"),
            (events.LaplaceDpEvent(-1), "noise_multiplier"),
            (events.DiscreteLaplaceDpEvent(0.0, 1), "noise_parameter"),
            (events.DiscreteLaplaceDpEvent(1.0, 1.5), "sensitivity"),
            (events.RandomizedResponseDpEvent(0.0, 2), "noise_parameter"),
            (events.RandomizedResponseDpEvent(1.1, 2), "noise_parameter"),
            (events.RandomizedResponseDpEvent(0.5, 0), "num_buckets"),
            (events.ExponentialMechanismDpEvent(-1), "epsilon"),
            (events.EpsilonDeltaDpEvent(1, 1), "delta"),
            (events.ZCDpEvent(-1, 0), "rho"),
            (events.ZCDpEvent(1, -1), "xi"),
            (events.SelfComposedDpEvent(gaussian(1), -1), "count"),
            (events.SelfComposedDpEvent(gaussian(1), 1.5), "count"),
            (events.SelfComposedDpEvent(gaussian(1), math.nan), "count"),
            (events.SelfComposedDpEvent(gaussian(1), True), "count"),
            (events.ComposedDpEvent(gaussian(1)), "events"),
            (events.PoissonSampledDpEvent(1.5, gaussian(1)), "sampling_probability"),
            (events.PoissonSampledDpEvent(math.nan, gaussian(1)), "sampling_probability"),
            (events.SampledWithoutReplacementDpEvent(10.5, 1, gaussian(1)), "source_dataset_size"),
            (events.SampledWithReplacementDpEvent(10, 0, gaussian(1)), "sample_size"),
            (events.TruncatedSubsampledGaussianDpEvent(9, 0.1, -1, 1), "truncated_batch_size"),
        ],
        ids=str,
    )
    def test_bad_values_by_name(self, event: object, named: str) -> None:
        with pytest.raises(InvalidArgument, match=rf"^{named} = "):
            from_dp_event(event, Change.REPLACE)

    @pytest.mark.parametrize("event", [None, 4, "GaussianDpEvent", Gaussian(1), gaussian], ids=str)
    def test_other_values_are_refused(self, event: object) -> None:
        with pytest.raises(InvalidArgument, match="give a DpEvent"):
            from_dp_event(event)

    def test_a_missing_field(self) -> None:
        bare = make_dataclass("GaussianDpEvent", [])()
        with pytest.raises(InvalidArgument, match="no field 'noise_multiplier'"):
            from_dp_event(bare)

    @pytest.mark.parametrize(
        "event",
        [
            events.RandomizedResponseDpEvent(0.5, 2),
            events.SampledWithoutReplacementDpEvent(100, 10, gaussian(1)),
            events.ComposedDpEvent([gaussian(1), events.RandomizedResponseDpEvent(0.5, 2)]),
        ],
        ids=str,
    )
    def test_events_of_replaced_records(self, event: object) -> None:
        with pytest.raises(WrongUnit, match=r"change=Change\.REPLACE"):
            from_dp_event(event)

    def test_poisson_samples_of_replaced_records(self) -> None:
        with pytest.raises(WrongUnit, match=r"change=Change\.ADD_REMOVE"):
            from_dp_event(events.PoissonSampledDpEvent(0.1, gaussian(1)), Change.REPLACE)

    @pytest.mark.parametrize("change", Change)
    @pytest.mark.parametrize("name", EXAMPLES)
    def test_a_unit_stands_for_its_relation(self, name: str, change: Change) -> None:
        """The loss is the same, and never meets a unit of the other relation."""
        unit = Unit("person", change)
        try:
            plain = from_dp_event(EXAMPLES[name], change)
        except WrongUnit:
            with pytest.raises(WrongUnit):
                from_dp_event(EXAMPLES[name], unit)
            return
        loss = from_dp_event(EXAMPLES[name], unit)
        assert loss == plain.for_unit(unit)
        (other,) = set(Change) - {change}
        with pytest.raises(WrongUnit):
            loss.for_unit(unit.with_change(other))

    def test_a_ledger_refuses_events_of_the_other_relation(self) -> None:
        unit = Unit("person", Change.REPLACE)
        ledger = Ledger.in_memory(unit=unit, limit=Limit(epsilon=2, delta=1e-6))
        read = from_dp_event(gaussian(8), unit.with_change(Change.ADD_REMOVE))
        with pytest.raises(WrongUnit):
            ledger.charge(read, purpose="events", by="ana")
        ledger.charge(from_dp_event(gaussian(8), unit), purpose="events", by="ana")
        assert ledger.spent().total == (1 * Gaussian(4)).for_unit(unit)

    def test_a_bad_change(self) -> None:
        with pytest.raises(InvalidArgument, match="change = 'replace'"):
            from_dp_event(gaussian(1), "replace")  # type: ignore[arg-type]


class TestDepth:
    def test_deep_trees_are_refused(self) -> None:
        tree = gaussian(1)
        for _ in range(5000):
            tree = events.SelfComposedDpEvent(tree, 1)
        with pytest.raises(InvalidArgument, match="at most 50 levels"):
            from_dp_event(tree)

    def test_rings_are_refused(self) -> None:
        ring = events.ComposedDpEvent([])
        ring.events.append(ring)
        with pytest.raises(InvalidArgument, match="at most 50 levels"):
            from_dp_event(ring)

    def test_shared_branches_are_read_once(self) -> None:
        tree = gaussian(1)
        for _ in range(49):
            tree = events.ComposedDpEvent([tree, tree])
        assert from_dp_event(tree) == 2**49 * Gaussian(1)

    def test_samples_of_samples(self) -> None:
        tree, loss = gaussian(1), 1 * Gaussian(1)
        for _ in range(MOST_NESTED):
            tree, loss = events.PoissonSampledDpEvent(0.5, tree), 1 * PoissonSampled(loss, 0.5)
        assert from_dp_event(tree) == loss
        assert to_dp_event(loss, events) == tree

        with pytest.raises(InvalidArgument, match="may hold one another"):
            from_dp_event(events.PoissonSampledDpEvent(0.5, tree))


class TestWriting:
    @pytest.mark.parametrize(
        "loss",
        [
            PrivacyLoss(),
            1 * Gaussian(0.7),
            3 * Pure(0.1) + Gaussian(4),
            100 * PoissonSampled(2 * Gaussian(1.1) + DiscreteLaplace(10, 2), 0.01),
            5 * Zcdp(0.1) + 7 * Approximate(0.1, 1e-9) + DiscreteLaplace(0.25),
            2 * Laplace(3.5) + 9 * BoundedRange(0.3) + DiscreteGaussianVector(4, 2.25),
            2 * TunedNegativeBinomial(3 * Gaussian(4), eta=1, gamma=0.125)
            + TunedPoisson(Pure(1), 9.5),
        ],
        ids=repr,
    )
    def test_events_come_back_as_the_same_loss(self, loss: PrivacyLoss) -> None:
        assert from_dp_event(to_dp_event(loss, events)) == loss

    @pytest.mark.parametrize("eta", [0, 0.5, 3])
    def test_a_tuned_term_comes_back_with_no_fewer_runs(self, eta: float) -> None:
        term = TunedNegativeBinomial(Gaussian(4), eta=eta, gamma=0.01)
        ((back, _),) = from_dp_event(to_dp_event(term, events)).terms
        assert isinstance(back, TunedNegativeBinomial)
        assert term.gamma * (1 - Fraction(1, 10**12)) < back.gamma <= term.gamma

    def test_one_number_is_written_as_a_vector(self) -> None:
        tree = to_dp_event(DiscreteGaussian(4, 3), events)
        assert tree == events.DiscreteGaussianDpEvent(4.0, 3.0, None)
        assert from_dp_event(tree) == 1 * DiscreteGaussianVector(4, 9)

    def test_roots_are_rounded_up(self) -> None:
        tree = to_dp_event(DiscreteGaussianVector(4, 2), events)
        assert Fraction(tree.sensitivity) ** 2 > 2 > Fraction(tree.sensitivity - 1e-15) ** 2

    def test_a_term_alone(self) -> None:
        assert to_dp_event(Gaussian(4), events) == gaussian(4.0)

    def test_the_tree(self) -> None:
        tree = to_dp_event(2 * Gaussian(4) + Zcdp(0.5), events)
        assert tree == events.ComposedDpEvent(
            [events.ZCDpEvent(0.5, 0.0), events.SelfComposedDpEvent(gaussian(4.0), 2)]
        )

    @given(some_loss())
    @settings(max_examples=60)
    def test_never_less_on_the_way_back(self, loss: PrivacyLoss) -> None:
        """Rounding is against us; the whole noise counts half for replaced records."""
        change = next((t.change for t, _ in loss.terms if t.change), Change.ADD_REMOVE)
        try:
            back = from_dp_event(to_dp_event(loss, events), change)
            cost = loss.renyi(2)
        except NoBound:
            return
        assert back.renyi(2) >= cost

    @pytest.mark.parametrize("epsilon", [0, 1e-6, 0.1, 3, 30])
    @pytest.mark.parametrize("values", [2, 7])
    def test_randomized_response_comes_back_no_smaller(self, epsilon: float, values: int) -> None:
        loss = 1 * RandomizedResponse(epsilon, values)
        ((term, _),) = from_dp_event(to_dp_event(loss, events), Change.REPLACE).terms
        assert isinstance(term, RandomizedResponse)
        assert Fraction(repr(epsilon)) <= term.epsilon
        assert float(term.epsilon) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)

    def test_samples_of_fixed_size(self) -> None:
        tree = to_dp_event(SampledWithoutReplacement(Zcdp(0.5), 10, 100), events)
        inner = events.ZCDpEvent(0.5, 0.0)
        assert tree == events.SampledWithoutReplacementDpEvent(100, 10, inner)
        tree = to_dp_event(SampledWithReplacement(Zcdp(0.5), 10, 100), events)
        assert tree == events.SampledWithReplacementDpEvent(100, 10, inner)

    def test_classes_in_an_inner_module(self) -> None:
        outer = SimpleNamespace(dp_event=events)
        assert to_dp_event(Gaussian(4), outer) == gaussian(4.0)

    def test_a_version_without_the_class(self) -> None:
        with pytest.raises(NoBound, match="no EpsilonDeltaDpEvent"):
            to_dp_event(Pure(1), SimpleNamespace(GaussianDpEvent=gaussian))

    def test_a_term_without_an_event(self) -> None:
        with pytest.raises(NoBound, match="no event for"):
            to_dp_event(TruncatedPoisson(Pure(1), 0.1, 5, 10), events)

    def test_no_loss(self) -> None:
        with pytest.raises(InvalidArgument, match="loss = 4"):
            to_dp_event(4, events)  # type: ignore[arg-type]


# What runs in dp_accounting's own environment: it builds a tree from JSON, and back
THERE = """
import json, sys, dp_accounting
from dp_accounting import dp_event

def built(plain):
    if isinstance(plain, list):
        if plain and plain[0] == "event":
            return getattr(dp_event, plain[1])(*map(built, plain[2:]))
        return [built(one) for one in plain]
    return plain

tree = built(json.load(sys.stdin))
accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
print(accountant.compose(tree).get_epsilon(1e-6))
"""


def plain(event: object) -> object:
    """The tree as JSON can hold it."""
    if isinstance(event, list):
        return [plain(one) for one in event]
    if is_dataclass(event) and not isinstance(event, type):
        values = [getattr(event, name) for name in FIELDS[type(event).__name__]]
        return ["event", type(event).__name__, *map(plain, values)]
    return event


@pytest.mark.skipif(not PEER.exists(), reason="dp_accounting isn't here: run `make peers`")
@pytest.mark.parametrize(
    "loss",
    [
        20 * Gaussian(4),
        200 * PoissonSampled(Gaussian(1), 0.02) + Gaussian(5),
        5 * DiscreteLaplace(10, 2),
        9 * Laplace(4) + 10 * PoissonSampled(Laplace(2), 0.1),
    ],
    ids=repr,
)
def test_dp_accounting_itself_reads_the_tree_alike(loss: PrivacyLoss) -> None:
    tree = json.dumps(plain(to_dp_event(loss, events)))
    ran = subprocess.run(
        [str(PEER), "-c", THERE], input=tree, capture_output=True, text=True, check=True
    )
    assert float(ran.stdout) == pytest.approx(loss.epsilon(1e-6), rel=0.003)
