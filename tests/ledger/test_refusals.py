"""What a refusal says: how far it would go, what the charge costs by itself, what still fits."""

import re
from collections.abc import Callable

import pytest

from discreet.accounting import Approximate, Filter, Gaussian, PoissonSampled, PrivacyLoss, Pure
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger
from discreet.payment import Limit
from discreet.unit import Unit

LIMIT = Limit(1, 1e-6)
RUN = 200 * PoissonSampled(Gaussian(1.2), 0.01)


def refused(ledger: Ledger, loss: PrivacyLoss) -> str:
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge(loss, purpose="a run", by="ana")
    return str(caught.value)


@pytest.mark.parametrize("kind", [Filter.for_limit, Filter.for_training])
def test_a_run_that_no_longer_fits(kind: Callable[[Limit], Filter]) -> None:
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=LIMIT, filter=kind(LIMIT))
    ledger.charge(RUN, purpose="a run", by="ana")
    said = refused(ledger, RUN)
    reached = re.search(r"would reach ε = ([0-9.]+), the limit is 1", said)
    assert reached is not None
    assert 1 < float(reached[1]) < 1.6  # and not hundreds, as by Renyi divergences
    itself = re.search(r"by itself this charge costs ε = ([0-9.]+), which is ([0-9.]+) %", said)
    assert itself is not None
    assert float(itself[1]) == pytest.approx(RUN.epsilon(1e-6), rel=1e-5)
    assert 50 < float(itself[2]) < 70
    left = re.search(r"at most ε = ([0-9.]+) is left for one more pure charge", said)
    noise = re.search(r"or for Gaussian noise at a multiplier of ([0-9.]+) or more", said)
    assert left is not None
    assert noise is not None
    assert ledger.count_left(Pure(float(left[1]))) == 1
    assert ledger.count_left(Gaussian(float(noise[1]))) == 1
    assert ledger.count_left(Gaussian(float(noise[1]) * 0.999)) == 0
    ledger.charge(Gaussian(float(noise[1])), purpose="what is left", by="ana")
    assert "Gaussian noise" not in refused(ledger, 1 * Pure(0.5))


def test_a_pure_charge_is_refused_in_few_words() -> None:
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=LIMIT)
    ledger.charge(Pure(0.9), purpose="a count", by="ana")
    assert "by itself" not in refused(ledger, 1 * Pure(0.5))


def test_a_run_whose_leak_no_longer_fits() -> None:
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=LIMIT)
    ledger.charge(Approximate(0, 9e-8), purpose="keys", by="ana")
    said = refused(ledger, RUN)
    assert "too little is left of the limit's delta that is set aside for leaks" in said
    assert "by itself this charge costs" in said
