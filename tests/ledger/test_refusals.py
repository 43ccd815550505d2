"""Texts of refusals: how far it would go, what the charge costs by itself, what still fits."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.accounting import Approximate, Filter, Gaussian, PoissonSampled, PrivacyLoss, Pure
from discreet.errors import BudgetExceeded, InvalidArgument, LedgerError
from discreet.ledger import Ledger
from tests.ledger.kit import begun, charges, ended, files, made, pay

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
    itself = re.search(r"by itself this charge costs ε = ([0-9.]+) and takes ([0-9.]+) % of", said)
    assert itself is not None
    assert float(itself[1]) == pytest.approx(RUN.epsilon(1e-6), rel=1e-5)
    assert 50 < float(itself[2]) < 70
    left = re.search(r"at most ε = ([0-9.]+) is left for one more charge without a delta", said)
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


def test_a_run_whose_failure_no_longer_fits() -> None:
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=LIMIT)
    ledger.charge(Approximate(0, 9e-8), purpose="keys", by="ana")
    said = refused(ledger, RUN)
    assert "too little is left of the limit's delta that is set aside for failures" in said
    assert "by itself this charge costs" in said


LONG = "x" * 300
WAYS: dict[str, Callable[[Ledger, Path], object]] = {
    "create": lambda _, path: made(path),
    "open or create": lambda _, path: Ledger.open_or_create(path, unit=Unit.ROW, limit=LIMIT),
    "open": lambda _, path: Ledger.open(path),
    "backup": lambda ledger, path: ledger.backup(path),
    "anchor": lambda ledger, path: Ledger.open(str(ledger.path), anchor=path),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name",
    ["/", ".", "..", LONG, f"{LONG}/x", "file/x", "nowhere/x", "loop", "loop/x", "/dev/null"],
)
def test_impossible_places_are_refused_by_name(tmp_path: Path, way: str, name: str) -> None:
    ledger = made(tmp_path / "x.ledger")
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    if (way, name) == ("anchor", "loop"):
        pytest.skip("an anchor takes the place of a broken link")
    place = Path(name) if name.startswith("/") and len(name) < 20 else tmp_path / name
    with pytest.raises((InvalidArgument, LedgerError)):
        WAYS[way](ledger, place)


@pytest.mark.parametrize("make", ["create", "open or create", "backup"])
@pytest.mark.parametrize("length", range(244, 257))
def test_a_new_ledger_can_be_charged(tmp_path: Path, make: str, length: int) -> None:
    """There is room for the journal's name beside it, or nothing is made."""
    ledger, path = made(tmp_path / "x.ledger"), tmp_path / ("y" * length)
    if length > 255 - len("-journal"):
        with pytest.raises(InvalidArgument, match=r"journal.*give a shorter path"):
            WAYS[make](ledger, path)
        assert not path.exists() if length < 256 else True
        return
    WAYS[make](ledger, path)
    copy = Ledger.open(path)
    if copy.is_locked:
        copy.unlock("a test", "ana")
    assert pay(copy, Pure(0.01)).number > 0


@pytest.mark.parametrize("length", range(500, 520, 3))
def test_a_path_that_is_too_long_makes_nothing(tmp_path: Path, length: int) -> None:
    folder = tmp_path
    while (missing := length - len(str(folder)) - 1) > 200:
        folder /= "d" * min(150, missing - 40)
        folder.mkdir()
    path = folder / ("y" * missing)
    assert len(str(path)) == length
    try:
        ledger = made(path)
    except InvalidArgument:
        assert length > 504
        assert files(folder) == []
    else:
        assert pay(ledger, Pure(0.01)).number == 1


BACKUP = """
import resource
l = Ledger.open(path)
for _ in range(30):
    l.charge(Pure(0.001), purpose="x" * 500, by="ana")
size = os.stat(path).st_size
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for most in range(0, size, 4000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        l.backup(path + "-copy")
    except DiscreetError as mistake:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert "copy" in str(mistake) or "room" in str(mistake), mistake
l.charge(Pure(0.001), purpose="x", by="ana")
"""


def test_a_backup_onto_a_full_disk_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    made(path)
    ended(begun(BACKUP, path))
    assert not path.with_name("x.ledger-copy").exists()
    assert charges(Ledger.open(path)) == 31


@pytest.mark.parametrize("loss", [5, None, "Pure(1)", Pure, (), 0.5])
def test_other_values_are_no_privacy_losses(loss: PrivacyLoss) -> None:
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=LIMIT)
    receipt = pay(ledger, Pure(0.1))
    for act in (
        lambda: pay(ledger, loss),
        lambda: ledger.count_left(loss),
        lambda: ledger.reserve(receipt, loss, count=1, of=1, plan="plan"),
    ):
        with pytest.raises(InvalidArgument, match="give a PrivacyLoss"):
            act()


def test_a_single_term_is_a_loss() -> None:
    ledger = Ledger.in_memory(unit=Unit.ROW, limit=LIMIT)
    receipt = pay(ledger, Pure(0.1))
    assert ledger.reserve(receipt, Pure(0.1), count=2, of=3, plan="plan") == range(2)
    assert ledger.reserve(receipt, 1 * Pure(0.1), count=2, of=3, plan="plan") == range(2, 3)
    assert ledger.count_left(Pure(0.1)) == ledger.count_left(1 * Pure(0.1)) == 9
