"""Nobody waits while a ledger computes: costs, the words of a refusal, balances, checks."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from discreet._budget import Limit
from discreet.accounting import Filter, PrivacyLoss, Pure, Zcdp
from discreet.accounting.filter._sums import FilterCost
from discreet.errors import BudgetExceeded, DiscreetError, NoBound
from discreet.ledger import Ledger, _sqlite
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
