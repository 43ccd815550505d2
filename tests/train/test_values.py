"""Python reads no values of data, and no memory with values of other data is read.

The sum then depends on other examples even if each of PyTorch's functions is followed. The refusals
come from what is called, not from values.
"""

import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers.utils.import_utils import torch_compilable_check

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum, one_by_one
from tests.train import assertions
from tests.train.kit import same
from tests.train.layers import WIDTH, Layers, Use, of, summed

READ: dict[str, Callable[[Tensor], Any]] = {  # Any: values as Python has them
    "if": lambda v: 1 if v.sum() > 1e6 else 0,
    "bool": lambda v: bool(v.any()),
    "not": lambda v: not v.any(),
    "item": lambda v: v.sum().item(),
    "tolist": lambda v: v.tolist()[0][0],
    "float": lambda v: float(v.sum()),
    "int": lambda v: int(v.sum()),
    "complex": lambda v: complex(v.sum()).real,
    "index": lambda v: [0, 1][v.any().long()],
    "range": lambda v: len(range(v.sum().long())),
    "numpy": lambda v: float(v.numpy().sum()),
    "array": lambda v: float(np.asarray(v).sum()),
    "dlpack": lambda v: float(np.from_dlpack(v).sum()),
    "in": lambda v: 1e6 in v,
    "a fast path": lambda v: torch._nested_tensor_from_mask_left_aligned(v[..., None], v > 0),
    "max of Python": lambda v: max(v.flatten()),
    "sorted": lambda v: sorted(v.flatten()),
    "format": lambda v: float(f"{v.sum()}"),
    "repr": lambda v: len(repr(v)),
    "str": lambda v: len(str(v)),
    "equal": lambda v: torch.equal(v, torch.zeros_like(v)),
    "equal of two": lambda v: v.equal(v * 0),
    "allclose": lambda v: torch.allclose(v, v * 0),
    "is_nonzero": lambda v: torch.is_nonzero(v.sum()),
    "is_nonzero of itself": lambda v: v.sum().is_nonzero(),
    "an overload": lambda v: torch.ops.aten.item(v.sum()),
    "pickle": lambda v: len(pickle.dumps(v)),
    "save": lambda v: torch.save(v, io.BytesIO()),
    "a storage": lambda v: v.untyped_storage()[0],
}
VALUES: dict[str, Callable[[Tensor], Tensor]] = {  # zeros for ordinary examples
    "of examples": lambda x: torch.relu(x.detach() - 1e6),
    "of one example": lambda x: torch.relu(x.detach() - 1e6)[1][None],
    "of all examples": lambda x: torch.relu(x.detach() - 1e6).sum(0)[None],
    "of picked examples": lambda x: x.detach()[x[:, 0] < 9] * 0,
}


@pytest.mark.parametrize("of_data", VALUES)
@pytest.mark.parametrize("name", READ)
def test_no_value_of_data_is_read(name: str, of_data: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        READ[name](VALUES[of_data](x))
        return summed(m.layer(x))

    model, data = Layers(use).double(), of(5, WIDTH)
    model(data)
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


@pytest.mark.parametrize("name", sorted(READ.keys() - {"pickle", "save", "a storage", "dlpack"}))
def test_values_of_constants_and_weights_are_read(name: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        READ[name](torch.ones(2, WIDTH))
        READ[name](m.scale.detach().abs()[None])
        return summed(m.layer(x))

    model, data = Layers(use).double(), of(5, WIDTH)
    clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


NUMBERS: dict[str, Callable[[Any, Tensor], Any]] = {  # Any: 0 or 1, and what Python learns of it
    "size": lambda flag, _: torch.zeros(1, 7).size(flag),
    "size by name": lambda flag, _: torch.zeros(1, 7).size(dim=flag),
    "size of data": lambda flag, x: x.size(flag),
    "stride": lambda flag, _: torch.zeros(1, 7).stride(flag),
    "zeros": lambda flag, _: torch.zeros(1 + 6 * flag).numel(),
    "a device": lambda flag, _: torch.device("cuda", flag).index,
    "pad": lambda flag, _: torch.nn.functional.pad(torch.zeros(2), (0, flag)).shape,
    "split": lambda flag, _: len(torch.split(torch.zeros(4), 1 + flag)),
    "tensor_split": lambda flag, _: len(torch.zeros(4).tensor_split(1 + flag)),
    "one_hot": lambda flag, x: torch.nn.functional.one_hot((x[:, 0] * 0).long(), 1 + flag).shape,
    "expand": lambda flag, _: torch.zeros(1).expand(1 + flag).shape,
    "repeat": lambda flag, _: torch.zeros(1).repeat(1 + flag).shape,
    "view": lambda flag, _: torch.zeros(4).view(1 + flag, -1).shape,
    "unsqueeze": lambda flag, _: torch.zeros(7).unsqueeze(flag).shape,
    "transpose": lambda flag, _: torch.zeros(1, 7).transpose(0, flag).shape,
    "narrow": lambda flag, _: torch.zeros(7).narrow(0, 0, 1 + flag).shape,
    "arange": lambda flag, _: torch.arange(1 + flag).numel(),
    "linspace": lambda flag, _: torch.linspace(0, 1, 1 + flag).numel(),
    "a slice": lambda flag, _: torch.zeros(7)[: 1 + flag].shape,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_no_value_of_data_is_turned_into_a_number(name: str) -> None:
    """PyTorch takes a tensor for a size or a dimension, and Python reads the result's shape."""

    def use(m: Layers, x: Tensor) -> Tensor:
        NUMBERS[name]((x.detach() > 1e6).any().long(), x)
        return summed(m.layer(x))

    model = Layers(use).double()
    model(of(5, WIDTH))
    with pytest.raises(Refused):
        check(model, model, of(5, WIDTH))


def test_a_constant_is_turned_into_a_number() -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        for name, told in NUMBERS.items():
            if name not in {"one_hot", "size of data"}:
                told(torch.tensor(1), x)
        return summed(m.layer(x))

    model = Layers(use).double()
    check(model, model, of(5, WIDTH))


def test_the_refusal_says_what_to_do() -> None:
    model = Layers(lambda m, x: summed(m.layer(x)) * (2 if (x > 9).any() else 1))
    with pytest.raises(Refused, match=r"by bool\(\) or a condition.*torch\.where"):
        check(model, model, torch.zeros(5, WIDTH))


def test_distributions_check_their_values_alike() -> None:
    """PyTorch's distributions ask whether all values are valid; their losses train."""

    def use(m: Layers, x: Tensor) -> Tensor:
        normal: Any = torch.distributions.Normal  # Any: it has no types
        found: Tensor = -normal(m.layer(x), x.abs() + 1).log_prob(x).sum(1)
        return found

    model = Layers(use).double()
    check(model, model, of(5, WIDTH))


# Assertions: what only raises is skipped, whatever the values


ASSERTIONS: dict[str, Callable[[Tensor], object]] = {  # of a tensor of truth values
    "assert": assertions.asserted,
    "assert with others": assertions.asserted_with_others,
    "assert in a try": assertions.caught,
    "raise": lambda good: assertions.raised(~good),
    "raise in a loop": lambda good: assertions.raised_beside(~good),
    "PyTorch's assert": lambda good: torch._assert(good.all(), "not good"),  # type: ignore[no-untyped-call]  # it has no types
    "PyTorch's check": torch._check_tensor_all,
    "Transformers' check": lambda good: torch_compilable_check(good, "not good"),
    # torch.compile turns the default off for the whole process
    "a distribution's": lambda good: torch.distributions.Bernoulli(
        good * 2.0 - 1, validate_args=True
    ),
}


def decided_later(good: Tensor) -> int:
    if good.all():
        return 1
    if good.dim() > 9:
        raise ValueError
    return 2


def decided_which(good: Tensor) -> None:
    if good.all():
        raise ValueError
    raise TypeError


def decided_by_loop(good: Tensor) -> None:
    while not good.all():
        good = ~good


def caught_number(good: Tensor) -> int:
    try:
        return [1, 0][bool(good.all())]
    except IndexError:
        return 0


DECISIONS: dict[str, Callable[[Tensor], object]] = {
    "one that returns": lambda good: 1 if good.all() else 0,
    "one that returns or raises later": decided_later,
    "two errors": decided_which,
    "a loop": decided_by_loop,
    "a value": lambda good: good.all() or 3,
    "a caught error": caught_number,
}


def asking(ask: Callable[[Tensor], object]) -> Layers:
    def use(m: Layers, x: Tensor) -> Tensor:
        good = x.abs() < 1
        ask(good)
        ask(good[-1])
        return summed(m.layer(x))

    return Layers(use).double()


@pytest.mark.parametrize("value", [1.0, 1e9])
@pytest.mark.parametrize("name", ASSERTIONS)
def test_assertions_pass_whatever_the_values(name: str, value: float) -> None:
    """Each fails on a rare value outside of training."""
    model, data = asking(ASSERTIONS[name]), of(5, WIDTH)
    check(model, model, data)
    data[1] = value
    clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)
    if value > 1e6:
        with pytest.raises((ValueError, AssertionError, RuntimeError)):
            model(data)  # its rare values round to 1


@pytest.mark.parametrize("name", DECISIONS)
def test_conditions_that_do_not_only_raise_are_refused(name: str) -> None:
    model, data = asking(DECISIONS[name]), of(5, WIDTH)
    with pytest.raises(Refused, match="or a condition"):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


INSTEAD = {
    "if": "torch.where",
    "item": "metrics",
    "float": "metrics",
    "int": "arange",
    "range": "arange",
    "numpy": "PyTorch's functions",
    "array": "PyTorch's functions",
    "tolist": "a field of the data",
    "in": "torch.isin",
    "equal": "torch.eq",
    "str": "shape",
    "format": "shape",
}


@pytest.mark.parametrize("name", INSTEAD)
def test_the_refusal_names_what_to_write_instead(name: str) -> None:
    model = asking(READ[name])
    with pytest.raises(Refused, match=INSTEAD[name]):
        check(model, model, of(5, WIDTH))


# Memory with arbitrary values

MEMORY: dict[str, Callable[[int], Tensor]] = {
    "empty": torch.empty,
    "empty of a size": lambda n: torch.empty((n,), dtype=torch.float64),
    "empty with a gradient": lambda n: torch.empty(n, requires_grad=True),
    "empty_like": lambda n: torch.empty_like(torch.ones(n)),
    "empty_strided": lambda n: torch.empty_strided((n,), (1,)),
    "empty_permuted": lambda n: torch.empty_permuted((n, 1), (1, 0)),
    "new_empty": lambda n: torch.ones(1).new_empty(n),
    "new_empty_strided": lambda n: torch.ones(1).new_empty_strided((n,), (1,)),
    "new": lambda n: torch.ones(1).new(n),
    "new of a size": lambda n: torch.ones(1).new(torch.Size([n])),
}
BY_SIZE: dict[str, Callable[[int], Tensor]] = {
    "a constructor": torch.Tensor,
    "a constructor of a type": torch.DoubleTensor,
    "resize_": lambda n: torch.ones(1).resize_(n),
    "resize_as_": lambda n: torch.ones(1).resize_as_(torch.ones(n)),
}


def used_before(number: int) -> None:
    """Leave values in the memory that is allocated next."""
    for kind in (torch.float32, torch.float64):
        waste = [torch.full((number,), 1e30, dtype=kind) for _ in range(8)]
        del waste


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_filled(name: str) -> None:
    sums = []

    def use(m: Layers, x: Tensor) -> Tensor:
        used_before(len(x))
        found = MEMORY[name](len(x)).detach().flatten()
        sums.append(float(found.double().abs().sum()))
        return summed(m.layer(x)) * (1 + found)

    model, data = Layers(use).double(), of(1000, WIDTH)
    model(data)
    assert sums.pop() != 0, "the memory was used before"
    clipped_sum(model, lambda: model(data), 1000, Flat(1.0), batch=data)
    assert sums == [0.0]


def test_empty_memory_of_a_weight_is_filled() -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        used_before(WIDTH)
        return summed(m.layer(x) * (1 + torch.empty_like(m.scale).detach()))

    model, data = Layers(use).double(), of(5, WIDTH)
    found = clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)
    assert found.squared_norms.max() < 1e9


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BY_SIZE)
def test_memory_that_can_not_be_filled_is_refused(name: str) -> None:
    model = Layers(lambda m, x: summed(m.layer(x)) * (1 + BY_SIZE[name](len(x)).sum())).double()
    with pytest.raises(Refused, match="other data"):
        check(model, model, of(5, WIDTH))


# What no call of Python's shows


def excess(x: Tensor) -> Tensor:
    """Zeros for ordinary values."""
    return torch.relu(x.detach() - 1e6)


def without_functions(make: Callable[[Tensor], Tensor]) -> Use:
    def use(m: Layers, x: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            hidden = make(x)
        return summed(m.layer(x)) * (1 + hidden.sum())

    return use


HIDDEN: dict[str, Callable[[Tensor], Tensor]] = {
    "a function": excess,
    "an overload": lambda x: torch.ops.aten.relu(x.detach() - 1e6),
    "into a buffer": lambda x: torch.zeros_like(x).copy_(excess(x)),
    "by a list": lambda x: torch.tensor(excess(x).tolist()),
    "by a number": lambda x: torch.tensor(float(x.sum() > 1e9)),
    "by a shape": lambda x: torch.ones(len(x[x > 1e6])),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_functions_are_refused_before_payment(name: str) -> None:
    model = Layers(without_functions(HIDDEN[name])).double()
    with pytest.raises(Refused, match="where calls can't be followed"):
        check(model, model, of(5, WIDTH))


def test_constants_that_are_not_intercepted_train() -> None:
    model = Layers(without_functions(lambda _: torch.ones(3))).double()
    check(model, model, of(5, WIDTH))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_a_scripted_function_is_refused_before_it_is_paid() -> None:
    script: Any = torch.jit.script  # Any: it has no types
    scripted = script(nn.Tanh())
    model = Layers(lambda m, x: summed(m.layer(x)) * (1 + scripted(excess(x)).sum())).double()
    with pytest.raises(Refused):
        check(model, model, of(5, WIDTH))


def test_threads_are_the_limit() -> None:
    """Modes of PyTorch belong to one thread: what docs/limits.md says of others is still true."""

    def use(m: Layers, x: Tensor) -> Tensor:
        found: list[Tensor] = []
        thread = threading.Thread(target=lambda: found.append(excess(x).sum()))
        thread.start()
        thread.join()
        return summed(m.layer(x)) * (1 + found[0])

    model = Layers(use).double()
    check(model, model, of(5, WIDTH))


# Packed sequences


def padded(**given: Any) -> Use:  # Any: as PyTorch takes it
    """A mean over time of sequences with lengths that depend on data."""

    def use(m: Layers, x: Tensor) -> Tensor:
        lengths = (x[:, :, 0] < 1e6).sum(1).clamp(min=1)
        rows = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        found, _ = pad_packed_sequence(rows, batch_first=True, **given)
        return summed(m.layer(found).mean(1))

    return use


@pytest.mark.parametrize("given", [{}, {"total_length": None}, {"padding_value": 1.0}])
def test_sequences_are_not_padded_to_the_longest(given: dict[str, Any]) -> None:
    model, data = Layers(padded(**given)).double(), of(5, 3, WIDTH)
    with pytest.raises(Refused, match="give it total_length"):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


def test_sequences_are_not_padded_by_a_function_without_a_name() -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        rows = pack_padded_sequence(x, (x[:, :, 0] < 1e6).sum(1), True, enforce_sorted=False)
        found = torch._VF._pad_packed_sequence(rows.data, rows.batch_sizes, True, 0.0, 3)[0]
        return summed(m.layer(found).mean(1))

    model, data = Layers(use).double(), of(5, 3, WIDTH)
    with pytest.raises(Refused, match="give it total_length"):
        clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data)


@pytest.mark.parametrize("length", [3, 4])
def test_sequences_are_padded_to_a_length(length: int) -> None:
    """The longest sequence may have that length."""
    model = Layers(padded(total_length=length)).double()
    check(model, model, of(5, 3, WIDTH))


def test_sequences_of_known_lengths_need_none() -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        rows = pack_padded_sequence(x, torch.full((len(x),), 2), batch_first=True)
        return summed(m.layer(pad_packed_sequence(rows, batch_first=True)[0]).mean(1))

    model = Layers(use).double()
    check(model, model, of(5, 3, WIDTH))


class PaddedEncoder(nn.Module):
    """A frozen encoder in its evaluation mode, before a trained layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2).requires_grad_(requires_grad=False)
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, data: Tensor) -> Tensor:
        padding = torch.arange(3) >= 1 + (data[:, :, 0] > 0).sum(1, keepdim=True)
        with torch.no_grad():
            steps = self.encoder.eval()(data, src_key_padding_mask=padding)
        return summed(self.last(steps.masked_fill(padding[..., None], 0)))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_frozen_encoder_with_padding_trains() -> None:
    """PyTorch asks whether a fast path fits the masks of all examples."""
    model, data = PaddedEncoder().double(), of(5, 3, WIDTH)
    wanted = one_by_one(model, lambda n: model(data[n : n + 1]), 5, Flat(1.0))
    same(clipped_sum(model, lambda: model(data), 5, Flat(1.0), batch=data), wanted, 1e-9)
