"""Code for the processor runs on CUDA unchanged. Without CUDA, a pretended device shows whether any
tensor is made on the wrong one."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet._budget import Limit
from discreet._unit import Unit
from discreet.errors import InvalidArgument
from discreet.ledger import Ledger
from discreet.noise import Bits, SecureBits
from discreet.train import (
    L1,
    Adaptive,
    Automatic,
    Clipping,
    Contribution,
    ExactGaussian,
    Flat,
    FloatGaussian,
    FloatLaplace,
    PerGroup,
    PerLayer,
    check,
    clipped_sum,
    metrics,
)
from discreet.train._plans._plan import TrainingPlan
from discreet.train._rules._convolution import WindowProducts
from discreet.train._run import run
from tests.bad_values import BadValue
from tests.noise.fit import ALPHA, Expected, QuickBits, false_alarm
from tests.tables import one_in
from tests.train.kinds_of_device import PLACES, Mixed, Place
from tests.train.kit import Case, median_norm, same
from tests.train.steps import data, known, linear, losses_of, of_persons, short, weights
from tests.train.test_noise import LAPLACE, NORMAL, fine
from tests.train.test_rules import CASES
from tests.train.test_unit_of_example import looped, together

NO_CUDA = "no CUDA device is here; where one is: python -m pytest tests/train/test_devices.py"


def opened(name: str) -> Iterator[Place]:
    if name == "CUDA" and not torch.cuda.is_available():
        pytest.skip(NO_CUDA)
    with PLACES[name].at_work() as place:
        yield place


@pytest.fixture(params=["pretended", "CUDA"])
def away(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A device that is not the processor."""
    yield from opened(request.param)


@pytest.fixture(params=["processor", "CUDA"])
def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A device with memory that ends, and products of its own; on the processor these are
    PyTorch's, since some virtual ones tell oneDNN of instructions that they don't have."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    yield from opened(request.param)


def there(place: Place, case: Case) -> Case:
    return Case(place.holding(case.model), place.of(case.data))


def back(found: Contribution) -> Contribution:
    return Contribution(tuple(each.cpu() for each in found.sums), found.squared_norms.cpu())


# The engine


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", one_in(3, CASES))
def test_a_layer_is_as_on_the_processor(away: Place, name: str) -> None:
    torch.manual_seed(0)
    case = CASES[name]()
    limit = Flat(median_norm(case))
    wanted = case.looped(limit)
    found = there(away, case).clipped(limit)
    assert {each.device.type for each in found.sums} == {away.device.type}
    same(back(found), wanted)


@pytest.mark.parametrize(
    "clipping",
    [PerLayer(0.5), PerGroup({"": 0.3, "inner": 0.4}), Automatic(), L1(0.7)],
    ids=lambda each: type(each).__name__,
)
def test_engine_loop_and_check_agree_there(away: Place, clipping: Clipping) -> None:
    torch.manual_seed(0)
    case = there(away, CASES["bare parameters"]())
    same(back(case.clipped(clipping)), back(case.looped(clipping)))
    check(case.model, case.losses, case.data, clipping)


@pytest.mark.parametrize(
    "name", ["linear in time", "convolution, in place", "embedding", "bare parameters"]
)
def test_units_of_several_examples_are_as_on_the_processor(away: Place, name: str) -> None:
    torch.manual_seed(0)
    case = CASES[name]()
    wanted = looped(case, [2, 3], Flat(0.1))
    same(back(together(there(away, case), [2, 3], Flat(0.1))), wanted)


def test_no_examples_and_one_that_is_not_finite(away: Place) -> None:
    case = there(away, CASES["linear in time"]())
    assert not any(each.any() for each in clipped_sum(case.model, Tensor, 0, Flat(1.0)).sums)
    bad = case.data.clone()
    bad[2] = float("nan")
    rest = Case(case.model, torch.cat([case.data[:2], case.data[3:]]))
    found, wanted = Case(case.model, bad).clipped(Flat(0.1)), rest.clipped(Flat(0.1))
    for one, other in zip(found.sums, wanted.sums, strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu())


def test_tensors_made_on_the_wrong_device_are_refused() -> None:
    """Otherwise the tests above could not fail."""
    with PLACES["pretended"].at_work() as place:
        one = place.of(torch.ones(3))
        wrongs: list[Callable[[], Tensor]] = [
            lambda: one + torch.ones(3),
            lambda: torch.zeros(()).add_(one.sum()),
            lambda: torch.cat([one, torch.ones(1)]),
        ]
        for wrong in wrongs:
            with pytest.raises(Mixed):
                wrong()
        with pytest.raises((RuntimeError, TypeError)):
            one.numpy()
        assert (one * torch.tensor(2.0)).cpu().tolist() == [2, 2, 2]
        assert float((one + torch.ones(3, device=one.device)).sum()) == 6


# Noise


def noise(place: Place, bits: Bits, kind: FloatGaussian | FloatLaplace) -> Tensor:
    """Some of it, made there: in pieces, large and small."""
    sums = [torch.zeros(size, device=place.device) for size in (300_000, 7, 0, 50_001)]
    kind.add(sums, Fraction(1), bits)
    return torch.cat([each.cpu() for each in sums])


@pytest.mark.parametrize(("kind", "law"), [(FloatGaussian(), NORMAL), (FloatLaplace(), LAPLACE)])
def test_noise_fits_there_and_nothing_seeds_it(
    away: Place, kind: BadValue, law: Expected, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(1)  # of all devices
        found.append(noise(away, SecureBits(), kind))
        assert false_alarm(fine(found[-1]), law) >= ALPHA
    assert (found[0] == found[1]).double().mean() < 1e-2  # by chance, 0.0045 of steps as small
    monkeypatch.setattr("discreet.train._plans._noise._most", lambda _: 1 << 16)
    of_bits = [noise(place, QuickBits(5), kind) for place in (away, PLACES["processor"])]
    torch.testing.assert_close(*of_bits, rtol=0, atol=1 / 64)  # the same bits give the same noise
    assert (of_bits[0] == of_bits[1]).double().mean() > 0.99


# Runs

PERSON = Unit("person")
PLANS: dict[str, TrainingPlan] = {
    "floats": short(multiplier=1),
    "in small parts": short(multiplier=1, batch=50),
    "Laplace": short(noise=FloatLaplace(), delta=0, clip=0.1, batch=60, records=60, multiplier=1),
    "exact": short(noise=ExactGaussian(20), multiplier=1),
    "persons": short(multiplier=1, unit=PERSON, records=12, batch=6),
    "persons, exact": short(noise=ExactGaussian(20), unit=PERSON, records=12, batch=6),
    "adaptive": short(multiplier=1, clip=Adaptive(stddev=0.25)),
}


def moving(model: nn.Module, place: Place) -> Any:
    """The usual losses, of parts that a loader left on the processor."""
    inner = losses_of(model)
    return lambda part: inner(part._replace(x=place.of(part.x), y=place.of(part.y)))


def trained(place: Place, made: TrainingPlan, *, is_there: bool, at_once: int = 1024) -> Tensor:
    """The weights after a run with known bits; its data are there, or come part by part."""
    model = place.holding(linear())
    given: BadValue = of_persons() if made.unit == PERSON else data()
    if is_there and isinstance(given, dict):
        given = {name: place.of(each) for name, each in given.items()}
    with known(model, given, made, losses=moving(model, place)) as training:
        training.at_once = at_once
        for ticket in training.batches():
            training.step(ticket)
            assert training.not_private is not None
    return weights(model).cpu()


@cache
def on_the_processor(name: str) -> Tensor:
    return trained(PLACES["processor"], PLANS[name], is_there=True)


# with an odd number of plans, `make test` tries each one, in one of the ways
@pytest.mark.parametrize(("is_there", "name"), one_in(2, product([False, True], PLANS)))
def test_a_run_there_ends_as_on_the_processor(away: Place, is_there: bool, name: str) -> None:
    at_once = 3 if "parts" in name else 1024
    wanted = on_the_processor(name)
    found = trained(away, PLANS[name], is_there=is_there, at_once=at_once)
    assert float(wanted.norm()) > 0.1
    assert float((found - wanted).norm()) <= 1e-4 * float(wanted.norm())


def test_a_run_there_is_gone_on_with(away: Place, tmp_path: Any) -> None:
    made, kept, taken = short(multiplier=1), None, list[int]()
    ledger = Ledger.create(tmp_path / "x.ledger", unit=Unit.ROW, limit=Limit(10**20, 0.5))
    for _ in range(2):
        model = away.holding(linear())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        with run(
            model, optimizer, data(), made, losses=moving(model, away), payer=ledger, resume=kept
        ) as training:
            if kept is not None:
                weight = model.get_parameter("weight").cpu()
                assert torch.equal(weight, kept["model"]["weight"].cpu())
            for ticket in training.batches():
                taken.append(ticket.step)
                training.step(ticket)
                if ticket.step == 3:
                    break
            kept = training.checkpoint()
    assert taken == [1, 2, 3, 4, 5, 6]
    assert {each.device.type for each in model.parameters()} == {away.device.type}


def test_figures_are_released_of_numbers_there(away: Place) -> None:
    right = metrics.count(lambda: away.of(torch.tensor([True, False, True])), name="right")
    assert right.compute() == 2
    found = metrics.total(lambda: away.of(torch.tensor([0.25, 7.0])), most=2, name="loss")
    assert found.checked(found.compute()).floats == 2.25


def test_parts_of_a_model_on_several_devices_are_refused_by_name(away: Place) -> None:
    model = nn.Sequential(linear(), away.holding(nn.Linear(1, 1)))
    with (
        pytest.raises(InvalidArgument, match=r"are on cpu and .*; move"),
        known(model, data(), short()),
    ):
        raise AssertionError


# What only real devices have


def test_bfloat16_agrees_with_a_loop_in_it(real: Place) -> None:
    class Mixed(Case):
        def losses(self, data: Tensor) -> Tensor:
            with torch.autocast(real.device.type, torch.bfloat16):
                return super().losses(data)

    for name in ("LSTM", "GRU", "RNN", "GRU cell", "LSTM cell", "attention", "low rank"):
        torch.manual_seed(0)
        plain = there(real, CASES[name]())
        size = plain.data.float() if plain.data.is_floating_point() else plain.data
        mixed = Mixed(plain.model.float(), size)
        limit = Flat(median_norm(mixed))
        found, wanted = mixed.clipped(limit), mixed.looped(limit)
        length = torch.stack([each.norm() for each in wanted.sums]).norm()
        for one, other in zip(found.sums, wanted.sums, strict=True):
            assert one.dtype == torch.float32
            assert float((one - other).norm()) <= 0.03 * float(length)


def test_a_whole_step_in_bfloat16_is_the_same_size(real: Place) -> None:
    """With autocast around everything, as Lightning and Trainer have it."""
    torch.manual_seed(0)
    case = there(real, CASES["LSTM, deep, both ways"]())
    model = case.model.float()
    with torch.autocast(real.device.type, torch.bfloat16):
        found = Case(model, case.data).clipped(Flat(0.5))
    plain = Case(model, case.data).clipped(Flat(0.5))
    size = float(torch.cat([each.flatten() for each in plain.sums]).norm())
    for one, other in zip(found.sums, plain.sums, strict=True):
        assert float((one - other).norm()) <= 0.03 * size


def test_memory_that_runs_out_there_changes_nothing(real: Place) -> None:
    made, sizes = short(multiplier=1), list[int]()
    model = real.holding(linear())
    inner = moving(model, real)

    def hungry(part: Any) -> Tensor:
        sizes.append(len(part.x))
        room = torch.empty(1 << 50 if len(part.x) > 3 else 1, device=real.device)
        return inner(part) + 0 * room[:0].sum()  # type: ignore[no-any-return]

    with known(model, data(), made, losses=hungry) as training:
        for ticket in training.batches():
            training.step(ticket)
    wanted = on_the_processor("floats")
    assert torch.allclose(weights(model).cpu(), wanted, atol=1e-5)
    assert max(sizes) > 3 >= sizes[-1]


@pytest.fixture(params=["new", "old"])
def shortened(request: pytest.FixtureRequest) -> Iterator[None]:
    """Products and convolutions may be of shortened numbers: said in PyTorch's new way, or old."""
    if request.param == "old":
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("medium")
        yield
        torch.set_float32_matmul_precision(before)
        return
    kept = [(each, each.fp32_precision) for each in (*made("cpu"), *made("cuda"))]
    for each in made("cpu"):
        each.fp32_precision = "bf16"
    for each in made("cuda"):
        each.fp32_precision = "tf32"
    yield
    for each, before in kept:
        each.fp32_precision = before


def made(kind: str) -> tuple[Any, Any]:  # Any: PyTorch's modules, of which mypy doesn't see all
    """Where it is said how products and convolutions are made."""
    backends: Any = torch.backends
    if kind == "cpu":
        return backends.mkldnn.matmul, backends.mkldnn.conv
    return backends.cuda.matmul, backends.cudnn.conv


def summed(model: nn.Module, given: Tensor) -> Tensor:
    found: Tensor = model(given).flatten(1).sum(1)
    return found


@pytest.mark.usefixtures("shortened")
def test_norms_and_sums_are_of_whole_numbers(real: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the sum could be of other numbers than its norm: these are all 0.4 % larger in bfloat16,
    and 0.04 % in TF32."""
    plain, seen, ways = WindowProducts.weighted_sum, set[str](), made(real.device.type)

    def noted(self: WindowProducts, factors: Tensor) -> Tensor:
        seen.update(way.fp32_precision for way in ways)
        return plain(self, factors)

    monkeypatch.setattr(WindowProducts, "weighted_sum", noted)
    said = [way.fp32_precision for way in ways]
    for each in (1.00394, 1.00049):
        model = nn.Conv2d(64, 192, 3, bias=False, device=real.device)
        given = torch.full((1, 64, 6, 6), each, device=real.device)
        losses = partial(summed, model, given)
        found = clipped_sum(model, losses, 1, Flat(1.0))
        assert 0.9999 < float(found.sums[0].double().norm()) <= 1.00001
    assert seen <= {"ieee", "none"}
    assert said == [way.fp32_precision for way in ways]
    assert {"bf16", "tf32"} & {*said}
