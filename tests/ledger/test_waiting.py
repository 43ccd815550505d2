"""Nobody waits while a ledger computes: costs, the words of a refusal, balances, checks."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from discreet._budget import Limit, RhoLimit
from discreet.accounting import Filter, Gaussian, PoissonSampled, PrivacyLoss, Pure, Zcdp
from discreet.accounting.filter._sums import FilterCost
from discreet.errors import BudgetExceeded, DiscreetError, NoBound
from discreet.ledger import Ledger, _sqlite
from discreet.ledger._decisions import PricedCharge, Track
from discreet.ledger._facts import Opening
from tests.ledger.kit import PERSON, charges, pay

Act = Callable[[Ledger, Path], object]

# What the filter computes, and a call of the ledger that needs it
COMPUTED: list[tuple[str, Act]] = [
    ("cost", lambda ledger, _: pay(ledger, Zcdp(1e-4))),
    ("alone", lambda ledger, _: refused(ledger)),
    ("part", lambda ledger, _: refused(ledger)),
    ("would_reach", lambda ledger, _: refused(ledger)),
    ("pure_left", lambda ledger, _: refused(ledger)),
    ("multiplier_left", lambda ledger, _: refused(ledger)),
    ("count_left", lambda ledger, _: ledger.count_left(Zcdp(1e-4))),
    ("pure_left", lambda ledger, _: ledger.spent()),
    ("reached", lambda ledger, _: ledger.spent()),
    ("reached", lambda ledger, _: repr(ledger)),
    ("recounted", lambda ledger, _: ledger.verify()),
    ("recounted", lambda ledger, place: ledger.backup(place)),
]


def refused(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        pay(ledger, Zcdp(1))


@contextmanager
def slowly(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> Iterator[None]:
    """While the block runs, the act is in the middle of what the filter computes by this name."""
    fast, begins, goes_on = getattr(Filter, name), threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def slow(*arguments: object, **more: object) -> object:
        if threading.current_thread() is thread and not begins.is_set():
            begins.set()
            assert goes_on.wait(60)
        return fast(*arguments, **more)

    def run() -> None:
        try:
            act()
        except BaseException as failure:  # noqa: BLE001  # the test raises it in its own thread
            failures.append(failure)

    thread = threading.Thread(target=run)
    with monkeypatch.context() as patch:
        patch.setattr(Filter, name, slow)
        thread.start()
        try:
            assert begins.wait(60), failures
            yield
        finally:
            goes_on.set()
            thread.join(60)
    assert not failures, failures


@pytest.mark.parametrize(("name", "act"), COMPUTED)
def test_other_charges_pass_while_a_ledger_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, act: Act
) -> None:
    """Through another connection, and through the very same object."""
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, unit=PERSON, limit=Limit(1, 1e-6))
    pay(ledger, Pure(0.01))
    other = Ledger.open(path)
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 1)
    with slowly(monkeypatch, name, lambda: act(ledger, tmp_path / "copy")):
        pay(other, Pure(0.01))
        pay(ledger, Pure(0.01))
        assert charges(other) >= 3
    ledger.verify()


def test_a_charge_without_a_bound_is_priced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many others charge meanwhile: sums don't change that it has no cost."""
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, unit=PERSON, limit=Limit(1, 1e-6))
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 1)
    other, fast, dear = Ledger.open(path), Filter.cost, 1 * Zcdp(0.25)
    tries: list[PrivacyLoss] = []

    def slow(self: Filter, loss: PrivacyLoss) -> FilterCost:
        if loss.terms != dear.terms:
            return fast(self, loss)
        tries.append(loss)
        pay(other, Pure(0.001))
        raise NoBound("it has no bound")

    monkeypatch.setattr(Filter, "cost", slow)
    with pytest.raises(DiscreetError, match="it has no bound"):
        pay(ledger, dear)
    assert len(tries) == 1
    assert charges(ledger) == 1


FILTERS: dict[str, Callable[[], Filter]] = {
    "usual": lambda: Filter.for_limit(Limit(1, 1e-6)),
    "training": lambda: Filter.for_training(Limit(1, 1e-6)),
    "pure": lambda: Filter.for_limit(Limit(1)),
    "rho": lambda: Filter.for_limit(RhoLimit(0.5)),
}


def losses() -> dict[str, PrivacyLoss]:
    return {
        "one term": 1 * Pure(0.001),
        "many terms": PrivacyLoss(tuple((Pure(0.0001 * number), 1) for number in range(1, 200))),
        "many samples": 10_000 * PoissonSampled(1 * Gaussian(4.0), 0.001),
        "far too much": 10**9 * Pure(5),
    }


def calls_of(act: Callable[[], object]) -> int:
    """The number of calls of Python functions, which no load of the machine changes."""
    count = 0

    def profile(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", FILTERS)
def test_a_priced_charge_is_counted_by_few_steps(kind: str) -> None:
    """Inside the transaction nothing depends on the number of terms, or on charges before. Each
    filter and loss is made twice: what is known of the first is found by comparing both."""
    counts = dict[tuple[int, str, int], int]()
    for time in (0, 1):
        opening = Opening(PERSON, FILTERS[kind]())
        for name, loss in losses().items():
            price = PricedCharge.of(opening, loss)
            if isinstance(price.cost, DiscreetError):
                continue
            spent = opening.filter.start
            for before in (0, 1, 50):
                for _ in range(before):
                    spent = opening.filter.add(spent, 1 * Pure(0.001))
                track = Track(opening, spent)
                counts[time, name, before] = calls_of(partial(_admitted, price, track))
    assert len(counts) >= 12
    assert max(counts.values()) <= 600, counts
    for time in (0, 1):
        each = [count for (when, _, _), count in counts.items() if when == time]
        assert max(each) <= 4 * min(each), counts


def _admitted(price: PricedCharge, track: Track) -> object:
    counted = price.at(track)
    assert counted is not None
    return counted.sums
