"""`fit` does what the loop around a run does, shows it, keeps it, and can be interrupted."""

import os
import pty
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau, StepLR
from torch.utils.data import Dataset, TensorDataset

from discreet.errors import InvalidArgument, Refused
from discreet.ledger import Kind, Ledger
from discreet.mechanisms import Door
from discreet.train import Report, fit, run
from discreet.train import _progress as shown
from discreet.train._checks._checking import compare
from discreet.train._interrupts import uninterrupted
from discreet.train._plans._noise import AnyNoise, ExactGaussian, FloatGaussian, FloatLaplace
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.noise.fit import QuickBits
from tests.train.steps import book, data, linear, losses_of, sgd, short, weights


def losses(model: nn.Module, part: Any) -> Tensor:
    """The logistic loss of each example."""
    found: Tensor = losses_of(model)(part)
    return found


@pytest.fixture
def known_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with the same draws, each time."""
    made = classmethod(lambda _, payer: Door(payer, QuickBits(1), None))
    monkeypatch.setattr(Door, "secure", made)


def by_loop(model: nn.Module, steps: int = 6) -> Report:
    with run(
        model, sgd(model), data(), short(steps=steps), losses=losses_of(model), payer=FakePayer()
    ) as training:
        for ticket in training.batches():
            training.step(ticket)
        return training.report()


@pytest.mark.usefixtures("known_bits")
def test_fit_trains_like_the_loop() -> None:
    one, other, payer = linear(), linear(), FakePayer()
    report = fit(one, sgd(one), data(), short(), losses=losses, payer=payer, name="mine", by="ana")
    loop = by_loop(other)
    assert torch.equal(weights(one), weights(other))
    assert weights(one).any()
    assert (report.done, report.taken, report.epsilon) == (6, 6, loop.epsilon)
    assert (report.receipt.purpose, report.receipt.by) == ("mine", "ana")
    assert payer.charges == [short().privacy_loss]


def test_schedulers_step_with_the_optimizer() -> None:
    model, rates = linear(), list[float]()
    optimizer = sgd(model)
    scheduler = StepLR(optimizer, 2, 0.5)

    def looking(model: nn.Module, part: Any) -> Tensor:
        rates.append(optimizer.param_groups[0]["lr"])
        return losses(model, part)

    fit(
        model,
        optimizer,
        data(),
        short(batch=60),
        losses=looking,
        payer=FakePayer(),
        schedulers=[scheduler],
    )
    assert rates[-6:] == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert scheduler.last_epoch == 6
    optimizer.step()  # nothing is left on it
    assert scheduler.last_epoch == 6


@pytest.mark.parametrize("is_late", [False, True])
def test_losses_write_nothing_into_a_scheduler(tmp_path: Path, *, is_late: bool) -> None:
    """The run's file would have it, and the learning rate would follow it."""
    model, payer, path = linear(), FakePayer(), tmp_path / "kept"
    optimizer = sgd(model)
    scheduler = StepLR(optimizer, 2, 0.5)

    def writing(model: nn.Module, part: Any) -> Tensor:
        if payer.charges or not is_late:
            scheduler.gamma = 77
        return losses(model, part)

    with pytest.raises(Refused, match="'gamma' was written into the StepLR"):
        fit(
            model,
            optimizer,
            data(),
            short(),
            losses=writing,
            payer=payer,
            schedulers=[scheduler],
            keep=path,
        )
    assert scheduler.gamma == 0.5
    assert bool(payer.charges) == is_late
    if is_late:
        assert torch.load(path, weights_only=False)["schedulers"][0]["gamma"] == 0.5


def plateau(optimizer: torch.optim.Optimizer) -> LRScheduler:
    return ReduceLROnPlateau(optimizer)


@pytest.mark.parametrize(
    ("schedulers", "resume", "told"),
    [
        ([plateau], None, "ReduceLROnPlateau"),
        ([], {"schedulers": [{}]}, "0 of them, and the checkpoint has 1"),
        ([lambda optimizer: StepLR(optimizer, 1)], {}, "1 of them, and the checkpoint has 0"),
    ],
)
def test_schedulers_that_do_not_go_are_refused_before_it_is_paid(
    schedulers: BadValue, resume: BadValue, told: str
) -> None:
    model, payer = linear(), FakePayer()
    optimizer = sgd(model)
    with pytest.raises(InvalidArgument, match=told):
        fit(
            model,
            optimizer,
            data(),
            short(),
            losses=losses,
            payer=payer,
            schedulers=[make(optimizer) for make in schedulers],
            resume=resume,
        )
    assert not payer.events


class NeedsALoss:
    """A scheduler of the user's own."""

    def step(self, loss: float) -> None: ...


class HasNoState:
    """A scheduler of the user's own."""

    def step(self) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"losses": 5}, "losses = 5: give a function"),
        ({"keep": "nowhere/run.pt"}, "no such folder"),
        ({"keep": "."}, "it is a folder"),
        ({"keep": "/proc/self/run.pt"}, r"it can't be written \(.+\); name another"),
        ({"resume": "run.pt"}, "resume is a str: .*torch.load"),
        ({"schedulers": [1]}, "schedulers: 1 has no step"),
        ({"keep": 3}, "keep = 3: give the path of a file"),
        ({"keep": b"run.pt"}, "give the path of a file"),
        ({"schedulers": None}, "schedulers = None: give a list of schedulers"),
        ({"schedulers": iter([])}, "give a list of schedulers"),
        ({"schedulers": [NeedsALoss()]}, "NeedsALoss.step needs 'loss'"),
        ({"schedulers": [HasNoState()], "keep": "run.pt"}, "HasNoState has no state_dict"),
    ],
)
def test_runs_that_would_fail_later_are_refused_before_payment(
    wrong: dict[str, BadValue], told: str
) -> None:
    model, payer = linear(), FakePayer()
    with pytest.raises(InvalidArgument, match=told):
        fit(model, sgd(model), data(), short(), **{"losses": losses, "payer": payer, **wrong})
    assert not payer.events


class Bare(Dataset[tuple[Tensor, ...]]):
    """Items, whose shapes nothing tells but they."""

    def __init__(self) -> None:
        self.fields = [*data().values()]

    def __len__(self) -> int:
        return 60

    def __getitem__(self, place: int) -> tuple[Tensor, ...]:
        return tuple(field[place] for field in self.fields)


def mean(model: nn.Module, part: Any) -> Tensor:
    return losses(model, part).mean()


def misspelt(model: nn.Module, part: Any) -> Tensor:
    return losses(model, part.images)


@pytest.mark.parametrize(
    "given",
    [
        data(),
        tuple(data().values()),
        TensorDataset(*data().values()),
        {name: field.numpy() for name, field in data().items()},
    ],
)
@pytest.mark.parametrize(
    ("wrong", "told"), [(mean, "reduction='none'"), (misspelt, "no attribute 'images'")]
)
def test_a_loss_that_does_not_go_is_told_before_it_is_paid(
    given: BadValue, wrong: Callable[..., Tensor], told: str
) -> None:
    payer, model = FakePayer(), linear()
    with pytest.raises((InvalidArgument, Refused), match=told):
        fit(model, sgd(model), given, short(), losses=wrong, payer=payer)
    assert not payer.events


def test_mixing_models_are_refused_before_payment_and_unchanged() -> None:
    payer, model = FakePayer(), nn.Sequential(nn.BatchNorm1d(3), linear())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(Refused, match=r"BatchNorm1d.*discreet\.train\.repair"):
        fit(model, sgd(model), data(), short(), losses=losses, payer=payer)
    assert not payer.events
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_items_are_not_read_before_they_are_paid() -> None:
    """The loss is checked on examples like them before anything is paid."""
    payer, model = FakePayer(), linear()
    facts: dict[str, BadValue] = {"losses": lambda _, __: torch.ones(()), "payer": payer}
    with pytest.raises(InvalidArgument, match="give like="):
        fit(model, sgd(model), Bare(), short(), **facts)
    with pytest.raises(InvalidArgument, match="reduction='none'"):
        fit(model, sgd(model), Bare(), short(), like=Bare(), **facts)
    assert not payer.events


def test_the_loss_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was before it was paid, the first step does not try it again."""
    tried, model = list[nn.Module](), linear()

    def counted(model: nn.Module, *rest: BadValue, **more: BadValue) -> None:
        tried.append(model)
        compare(model, *rest, **more)

    monkeypatch.setattr("discreet.train._checks._model_check.compare", counted)
    fit(model, sgd(model), data(), short(), losses=losses, payer=FakePayer())
    assert tried == [model]


def test_who_is_stopped_is_told_what_is_paid() -> None:
    model, payer = linear(), FakePayer()

    def failing(model: nn.Module, part: Any) -> Tensor:
        if payer.events:
            raise ZeroDivisionError
        return losses(model, part)

    with pytest.raises(ZeroDivisionError) as stopped:
        fit(model, sgd(model), data(), short(), losses=failing, payer=payer)
    (note,) = stopped.value.__notes__
    assert "charge 1 has paid for the whole plan" in note
    assert "resume=" in note


def test_an_interrupted_run_goes_on_from_its_file(path: Path, tmp_path: Path) -> None:
    """Charged once, with each step made once, and the schedule where it was."""
    keep, model, calls = tmp_path / "run.pt", linear(), list[int]()

    def interrupted(model: nn.Module, part: Any) -> Tensor:
        calls.extend([1] * keep.exists())  # once it is paid
        if len(calls) == 4:
            raise KeyboardInterrupt
        return losses(model, part)

    def go(model: nn.Module, of: BadValue, ledger: Ledger, **more: BadValue) -> Report:
        optimizer = sgd(model)
        schedulers = [StepLR(optimizer, 1, 0.5)]
        found = fit(
            model,
            optimizer,
            data(),
            short(batch=60),
            losses=of,
            payer=ledger,
            keep=keep,
            schedulers=schedulers,
            **more,
        )
        assert optimizer.param_groups[0]["lr"] == 0.5 ** schedulers[0].last_epoch
        return found

    with pytest.raises(KeyboardInterrupt):
        go(model, interrupted, Ledger.open(path))
    kept = torch.load(keep, weights_only=True)
    whole = kept["schedulers"][0]["last_epoch"]
    assert 0 < whole < 6
    assert torch.equal(weights(model)[:3], kept["model"]["weight"][0])
    assert all(parameter.grad is None for parameter in model.parameters())
    other, ledger = linear(), Ledger.open(path)
    report = go(other, losses, ledger, resume=kept)
    assert (report.done, report.taken) == (6 - whole - 1, 6)
    assert [entry.kind for entry in ledger.history()].count(Kind.CHARGE) == 1
    assert torch.load(keep, weights_only=True)["schedulers"][0]["last_epoch"] == 5
    assert not [*tmp_path.glob("*.new")]


def test_a_file_is_written_once_paid_and_when_it_is_due(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is killed in the first step, or any other, goes on without paying twice."""
    monkeypatch.setattr(sys.modules["discreet.train._fit"], "SAVED_EVERY", 0.0)
    keep, ledger, found = tmp_path / "run.pt", Ledger.open(path), list[BadValue]()

    def looking(model: nn.Module, part: Any) -> Tensor:
        is_paid = any(entry.kind is Kind.CHARGE for entry in ledger.history())
        assert keep.exists() == is_paid
        if is_paid:
            with ThreadPoolExecutor(1) as other:  # in this one it would be a call of the losses
                found.append(other.submit(torch.load, keep, weights_only=True).result())
        return losses(model, part)

    def go(of: BadValue, **more: BadValue) -> Report:
        model = linear()
        plan = short(batch=60)
        return fit(model, sgd(model), data(), plan, losses=of, payer=ledger, keep=keep, **more)

    go(looking)
    weights = [kept["model"]["weight"] for kept in found]
    assert len(weights) == 6
    assert len({str(each) for each in weights}) == 6
    assert not weights[0].any()
    report = go(losses, resume=found[0])
    assert (report.taken, report.done) == (6, 0)
    assert [entry.kind for entry in ledger.history()].count(Kind.CHARGE) == 1


def test_states_that_no_file_holds_are_refused_before_they_are_paid(tmp_path: Path) -> None:
    class Unwritable(nn.Linear):
        def get_extra_state(self) -> Any:
            return lambda: None

    model, payer = Unwritable(3, 1), FakePayer()
    with pytest.raises(InvalidArgument, match="model: its state can't be written"):
        fit(
            model,
            sgd(model),
            data(),
            short(),
            losses=losses,
            payer=payer,
            keep=tmp_path / "run.pt",
        )
    assert not payer.events
    assert not [*tmp_path.iterdir()]


class Several(nn.Sequential):
    """Layers whose weights have several dimensions."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = nn.Linear(3, 16), nn.Unflatten(1, (2, 2, 2, 2)), nn.Conv3d(2, 3, 2), nn.Flatten()
        super().__init__(*layers, nn.Linear(3, 1))

    def in_memory(self, order: Callable[[Tensor], Tensor]) -> "Several":
        """The same weights, in another order in memory."""
        for parameter in self.parameters():
            parameter.data = order(parameter.data)
        return self


def backwards(weight: Tensor) -> Tensor:
    order = range(weight.dim())[::-1]
    return weight.permute(*order).contiguous().permute(*order)


def channels_last(weight: Tensor) -> Tensor:
    return weight.to(memory_format=torch.channels_last_3d) if weight.dim() == 5 else weight


@pytest.mark.usefixtures("known_bits")
@pytest.mark.parametrize("order", [backwards, channels_last])
@pytest.mark.parametrize("noise", [FloatGaussian(), FloatLaplace(), ExactGaussian(20)])
def test_weights_in_another_order_in_memory_train_alike(
    tmp_path: Path, order: Callable[[Tensor], Tensor], noise: AnyNoise
) -> None:
    """Also those of a run that goes on from its file."""
    keep = tmp_path / "run.pt"

    def trained(model: Several) -> Several:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
        made, ledger = short(noise=noise, steps=3, batch=60), book()

        def interrupted(model: nn.Module, part: Any) -> Tensor:
            if optimizer.state and keep.exists():  # after the first step
                raise KeyboardInterrupt
            return losses(model, part)

        with pytest.raises(KeyboardInterrupt):
            fit(model, optimizer, data(), made, losses=interrupted, payer=ledger, keep=keep)
        again = torch.load(keep, weights_only=True)
        keep.unlink()
        fit(model, optimizer, data(), made, losses=losses, payer=ledger, resume=again)
        return model

    one, other = trained(Several()), trained(Several().in_memory(order))
    torch.testing.assert_close(weights(one), weights(other), rtol=1e-4, atol=1e-6)
    assert not torch.equal(weights(one), weights(Several()))


# Ctrl-C


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Python's own handler: a shell without job control lets its background processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupted(torch.optim.SGD):
    """Ctrl-C arrives when one parameter has been changed, and the others have not."""

    def step(self, closure: BadValue = None) -> None:  # type: ignore[override]
        first, *others = self.param_groups[0]["params"]
        first.data.sub_(first.grad)
        signal.raise_signal(signal.SIGINT)
        for other in others:
            other.data.sub_(other.grad)


@pytest.mark.usefixtures("known_bits", "heeds_interrupts")
def test_an_interrupt_waits_for_the_optimizer() -> None:
    model, whole, payer = linear(), linear(), FakePayer()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        fit(
            model,
            Interrupted(model.parameters(), lr=1),
            data(),
            short(),
            losses=losses,
            payer=payer,
        )
    by_loop(whole, steps=1)
    assert torch.allclose(weights(model), weights(whole))
    assert weights(model).all()
    assert payer.events == ["charge"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_waits_for_a_block_in_the_main_thread_only() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012  # what it is about
        signal.raise_signal(signal.SIGINT)
        done.append(1)
    assert done == [1]

    def beside() -> None:
        with uninterrupted():
            done.append(2)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert done == [1, 2]


# On a terminal


class Screen:
    """A terminal of our own for stderr, and what was written to it."""

    def __init__(self) -> None:
        self.end, inner = pty.openpty()
        self.stderr = os.fdopen(inner, "w")

    def text(self) -> str:
        self.stderr.close()
        found = b""
        with os.fdopen(self.end, "rb", buffering=0) as end:
            while True:
                try:
                    more = end.read(4096)
                except OSError:  # nobody writes any more
                    break
                if not more:
                    break
                found += more
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", found.decode())


@contextmanager
def screen(monkeypatch: pytest.MonkeyPatch, patience: float) -> Iterator[Screen]:
    monkeypatch.setattr(shown, "PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    made = Screen()
    monkeypatch.setattr(sys, "stderr", made.stderr)
    yield made


def slow(model: nn.Module, part: Any) -> Tensor:
    threading.Event().wait(0.02)
    return losses(model, part)


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made = short(multiplier=2, batch=60, steps=8)
    model = linear()
    with screen(monkeypatch, patience=0.0) as seen:
        report = fit(model, sgd(model), data(), made, losses=slow, payer=book())
    text = seen.text()
    assert re.search(r"8/8 .*loss 0\.\d+ \(not private\)  ε \d+\.\d{3} of \d+\.\d{3}", text)
    told = float(re.findall(r"ε (\d+\.\d+) of", text)[-1])
    assert report.epsilon <= told <= report.epsilon + 0.001
    assert "left" in text


@pytest.mark.parametrize("fails", [True, False])
def test_short_runs_show_nothing(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    model, before = linear(), {*threading.enumerate()}  # others' may end meanwhile

    def failing(model: nn.Module, part: Any) -> Tensor:
        raise ValueError

    with screen(monkeypatch, patience=60.0) as seen:
        if fails:
            with pytest.raises(Refused, match="ValueError"):
                fit(model, sgd(model), data(), short(), losses=failing, payer=book())
        else:
            fit(model, sgd(model), data(), short(), losses=losses, payer=book())
    assert seen.text() == ""
    assert {*threading.enumerate()} <= before


def test_elsewhere_than_on_a_terminal_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shown, "PATIENCE", 0.0)
    model = linear()
    fit(model, sgd(model), data(), short(), losses=slow, payer=book())
    assert capfd.readouterr() == ("", "")
