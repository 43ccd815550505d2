"""Laws of all mechanisms: cost, estimates without bias, and refusals."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet._budget import Limit
from discreet._exact import ball, fraction, precision
from discreet._unit import Change, Unit
from discreet.accounting import Gaussian, PrivacyLoss, Pure
from discreet.errors import InvalidArgument, WrongUnit
from discreet.ledger import Ledger
from discreet.local import (
    ONE_REPORT,
    CountMeanSketch,
    DuchiMean,
    HadamardResponse,
    LocalHashing,
    PiecewiseMean,
    RandomizedResponse,
    Rappor,
    SketchReports,
    UnaryEncoding,
    client,
)
from tests.local.kit import (
    ALL,
    FREQUENCIES,
    MEANS,
    Law,
    drawn,
    law_of,
    lost,
    outcome,
    values_of,
    worst,
)

GUESSES = [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]  # of epsilon

everything = pytest.mark.parametrize("name", ALL)
frequencies = pytest.mark.parametrize("name", FREQUENCIES)
epsilons = pytest.mark.parametrize("epsilon", [0.2, 1, 3.5])


def spent(mechanism: Any) -> PrivacyLoss:  # Any: each mechanism
    """Of one report."""
    if isinstance(mechanism, Rappor):
        return mechanism.privacy_loss(rounds=1)
    found: PrivacyLoss = mechanism.privacy_loss()
    return found


def laws(mechanism: Any) -> list[Law]:
    return [law_of(mechanism.client, value) for value in values_of(mechanism)]


@everything
@epsilons
def test_no_pair_of_values_loses_more_than_epsilon(name: str, epsilon: float) -> None:
    mechanism = ALL[name](epsilon)
    with precision(256):
        assert ball(worst(laws(mechanism))) <= ball(fraction(epsilon)).exp()
    assert spent(mechanism).epsilon() == pytest.approx(epsilon, rel=1e-9)


@everything
@epsilons
def test_no_pair_of_values_loses_more_than_the_terms(name: str, epsilon: float) -> None:
    mechanism = ALL[name](epsilon)
    every = laws(mechanism)
    loss = spent(mechanism)
    for guess in GUESSES:
        charged = fraction(loss.delta(guess * fraction(epsilon)))
        pairs = ((p, q) for p in every for q in every if p is not q)
        found = max((lost(p, q, guess * fraction(epsilon)) for p, q in pairs), key=float)
        with precision(256):
            assert found <= ball(charged) + arb("1e-12")
        if name != "sketch":  # whose buckets may be shared; else the terms are all but tight
            assert float(found) >= float(charged) * 0.8


@pytest.mark.parametrize("name", ["optimised unary", "hadamard", "hashing", "piecewise"])
def test_terms_cost_less_than_what_is_merely_pure(name: str) -> None:
    many = 100 * ALL[name](3).privacy_loss()
    assert many.epsilon(1e-6) < 0.98 * (100 * Pure(3)).epsilon(1e-6)


@everything
def test_more_generous_odds_would_be_seen(name: str) -> None:
    """The reports of epsilon 1.05, charged as of 1."""
    generous, charged = ALL[name](1.05), spent(ALL[name](1))
    every = laws(generous)
    with precision(256):
        assert ball(worst(every)) > ball(Fraction(1)).exp()
    found = max(float(lost(p, q, Fraction(1))) for p in every for q in every)
    assert found > charged.delta(1) + 1e-3


@everything
def test_units_are_replaced_and_never_come_or_go(name: str) -> None:
    mechanism = ALL[name](1)
    assert mechanism.privacy_loss().unit == ONE_REPORT
    person = Unit("person", Change.REPLACE)
    assert mechanism.privacy_loss(unit=person).unit == person
    assert mechanism.shuffled(1000, unit=person).unit == person
    for ask in (mechanism.privacy_loss, lambda unit: mechanism.shuffled(1000, unit)):
        with pytest.raises(WrongUnit, match=r"Change\.REPLACE"):
            ask(unit=Unit("person"))
    with pytest.raises(WrongUnit):
        mechanism.privacy_loss() + PrivacyLoss.of(Gaussian(1), unit=Unit.ROW)
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=Limit(epsilon=100))
    with pytest.raises(WrongUnit):
        ledger.charge(mechanism.privacy_loss(), purpose="survey", by="ana")


@everything
def test_shuffled_reports_cost_less(name: str) -> None:
    mechanism = ALL[name](1)
    among_many = mechanism.shuffled(10_000).epsilon(1e-6)
    assert 0.05 < among_many < 0.1
    assert mechanism.shuffled(1).epsilon(1e-6) == pytest.approx(1, rel=1e-4)
    for wrong in (0, -5, 2.5, True, "many"):
        with pytest.raises(InvalidArgument, match="reports = "):
            mechanism.shuffled(wrong)


# Estimates


@frequencies
@pytest.mark.parametrize("epsilon", [0.2, 1, 2])
def test_estimates_have_no_bias(name: str, epsilon: float) -> None:
    """From the law of each value: the mean number of supports is exactly that of the rates."""
    mechanism = FREQUENCIES[name](epsilon, 3)
    rates = mechanism.rates
    for value in range(3):
        mean = [Fraction(0)] * 3
        for report, chance in law_of(mechanism.client, value).items():
            supports = mechanism.supports(np.array([report]))
            mean = [m + chance * int(s) for m, s in zip(mean, supports, strict=True)]
        assert mean == [rates.own if v == value else rates.other for v in range(3)]


@frequencies
def test_an_estimate_is_linear_in_its_reports(name: str) -> None:
    mechanism = FREQUENCIES[name](1, 5)
    reports = drawn(mechanism, np.arange(100) % 5, seed=1)
    whole = mechanism.estimate(reports).values
    halves = [mechanism.estimate(part).values for part in (reports[:50], reports[50:])]
    assert np.allclose(whole, np.mean(halves, axis=0))
    assert np.allclose(
        whole, np.mean([mechanism.estimate(reports[[i]]).values for i in range(100)], 0)
    )


@everything
def test_one_value_or_several(name: str) -> None:
    mechanism = ALL[name](1)
    ask = mechanism.randomize
    if isinstance(mechanism, Rappor):
        ask = lambda values: mechanism.randomize(mechanism.memoise(values))  # noqa: E731
    one, some = ask(1), ask([1, 0, 1])
    if isinstance(mechanism, CountMeanSketch):
        one, some = one.bits, some.bits
    assert some.shape == (3, *one.shape)
    assert some.dtype == one.dtype
    assert ask([1]) is not None


@everything
def test_values_outside_are_refused_without_showing_them(name: str) -> None:
    mechanism = ALL[name](1)
    ask = mechanism.memoise if isinstance(mechanism, Rappor) else mechanism.randomize
    for wrong in (987654, -987654, float("nan"), True, "987654", None, [], [0, 987654]):
        with pytest.raises(InvalidArgument, match="values: ") as refused:
            ask(wrong)
        assert "987654" not in str(refused.value)


WRONG_REPORTS: list[object] = [
    np.zeros(0, np.int64),
    np.zeros((0, 4), np.bool_),
    np.array([0.5]),
    np.array(["1"]),
    np.zeros((2, 3, 4), np.bool_),
    np.array([99_999]),
    np.array([-1]),
    np.array([2**63], np.uint64),
    np.array(3),
    [],
    None,
    np.zeros((2, 5), np.bool_),
    np.zeros((2, 4), np.int64),
    SketchReports(np.array([5]), np.zeros((1, 3), np.bool_)),
    SketchReports(np.array([1]), np.zeros((2, 3), np.bool_)),
    SketchReports(np.array([1]), np.zeros((1, 4), np.bool_)),
    SketchReports(np.array(1), np.zeros(3, np.bool_)),
]


@everything
@pytest.mark.parametrize("wrong", WRONG_REPORTS, ids=lambda wrong: repr(wrong)[:40])
def test_reports_of_another_kind_are_refused(name: str, wrong: object) -> None:
    mechanism = ALL[name](1)
    more = ([0],) if isinstance(mechanism, CountMeanSketch) else ()
    with pytest.raises(InvalidArgument, match="reports"):
        mechanism.estimate(wrong, *more)


@everything
def test_estimates_are_total(name: str) -> None:
    """A single report, and the most extreme ones."""
    for epsilon in (1e-6, 1, 32):
        mechanism = ALL[name](epsilon)
        for report in list(law_of(mechanism.client, 0))[:6]:
            answer = estimated(mechanism, report)
            found = answer.interval(0.95)
            assert np.isfinite(answer.values).all()
            assert np.isfinite(answer.stddev).all()
            assert (found.lower <= found.upper).all()


def estimated(mechanism: Any, report: Any) -> Any:
    if isinstance(mechanism, CountMeanSketch):
        reports = SketchReports(np.array([report[0]]), np.array([report[1:]]))
        return mechanism.estimate(reports, [0, 1])
    return mechanism.estimate(np.array([report]))


@pytest.mark.parametrize("wrong", [0, 1, -1, 2.5, "3", True, None, float("nan"), (1 << 24) + 1])
@frequencies
def test_categories_are_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="categories"):
        FREQUENCIES[name](1, wrong)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, float("nan"), True, "0.95", None])
@everything
def test_confidences_are_refused_by_name(name: str, confidence: Any) -> None:
    mechanism = ALL[name](1)
    report = next(iter(law_of(mechanism.client, 0)))
    with pytest.raises(InvalidArgument, match="confidence"):
        estimated(mechanism, report).interval(confidence)
    with pytest.raises(InvalidArgument, match="confidence"):
        mechanism.error(confidence, 100)


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (1, 1),
        (2, 1),
        (0, float("nan")),
        (0, float("inf")),
        (True, 2),
        ("0", 1),
        (0, 10**400),
        (-1.7e308, 1.7e308),
        (1e9, 1e9 + 1),
    ],
)
def test_ranges_are_refused_by_name(name: str, lower: Any, upper: Any) -> None:
    make = DuchiMean if name == "duchi" else PiecewiseMean
    with pytest.raises(InvalidArgument, match=r"lower|upper"):
        make(1, lower=lower, upper=upper)


def test_clients_that_lose_more_than_epsilon_are_refused() -> None:
    generous = client.UnaryEncoding(Fraction(1, 2), Fraction(1, 4), 3)
    assert UnaryEncoding(fraction(1.0986122886681098), generous).client == generous  # above ln 3
    with pytest.raises(InvalidArgument, match="factor of 3"):
        UnaryEncoding(fraction(1.0986122886681096), generous)


def test_mechanisms_print_as_code() -> None:
    assert repr(RandomizedResponse(0.5, 3)) == "RandomizedResponse(epsilon=0.5, categories=3)"
    assert repr(HadamardResponse(0.5, 3)) == "HadamardResponse(epsilon=0.5, categories=3)"
    assert eval(repr(LocalHashing(0.5, 30))) == LocalHashing(0.5, 30)
    assert eval(repr(Rappor(2, once=0.5, categories=30))) == Rappor(2, once=0.5, categories=30)
    assert eval(repr(DuchiMean(2, lower=0, upper=1))) == DuchiMean(2, lower=0, upper=1)
    assert eval(repr(PiecewiseMean(2, lower=0, upper=1))) == PiecewiseMean(2, lower=0, upper=1)
    assert eval(repr(CountMeanSketch(2, 10**6))) == CountMeanSketch(2, 10**6)


def test_outcomes_are_told_apart() -> None:
    assert outcome(np.array([True, False])) == (True, False)
