"""No call of PyTorch's runs code of the user's, in which nothing is followed.

Such code would read a value of one example, and decide a factor of all others' gradients.
"""

from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.autograd.graph import Node
from torch.library import Library, custom_op
from torch.profiler import profile, record_function

from discreet.errors import Refused
from discreet.train import Flat, check, clipped_sum, one_by_one
from discreet.train._calls._objects import refuse_objects
from tests.train.kit import same
from tests.train.layers import WIDTH, Layers, Use, of, summed

DATA: list[Tensor] = []  # all examples


def number() -> int:
    return 7 if bool((DATA[-1] > 1e6).any()) else 1


class Own:
    """An object that PyTorch can read as a number, a list or an array."""

    def __index__(self) -> int:
        return number()

    def __float__(self) -> float:
        return float(number())

    def __len__(self) -> int:
        return 1

    def __getitem__(self, place: int) -> float:
        return float([number()][place])


class Disguised:
    """An object that claims to be PyTorch's."""

    __module__ = "torch.own"
    __index__ = Own.__index__


class OwnArray:
    """An object with an array."""

    @property
    def __array_interface__(self) -> Any:  # Any: as NumPy has it
        return np.full(1, number()).__array_interface__


class OwnList(list[int]):
    """A list that computes its entries."""

    def __iter__(self) -> Any:  # Any: an iterator
        return iter([number()])


class OwnNumber(int):
    """A number that computes."""

    def __mul__(self, other: int) -> int:
        return number() * other


class OwnText(str):
    """A text that compares itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return number() == 7

    __hash__ = str.__hash__


class OwnTensor(Tensor):
    """A tensor that computes its number of dimensions."""

    def dim(self) -> int:
        return number()


class Dispatched(Tensor):
    """A tensor that computes below PyTorch's functions."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]  # as PyTorch's docs have it

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # PyTorch's has no types
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # Any: PyTorch's functions and what they take
        return torch.full((), number())


LIBRARY: Any = Library("tests_of_training", "DEF")  # type: ignore[no-untyped-call]  # as above
LIBRARY.define("factor(Tensor one) -> Tensor")
LIBRARY.impl("factor", lambda one: one * number(), "CompositeImplicitAutograd")


@custom_op("tests_of_training::own_factor", mutates_args=())
def own_factor(one: Tensor) -> Tensor:
    return one * number()


def object_array() -> Any:  # Any: an array of any objects
    found = np.empty((), dtype=object)
    found[()] = Own()
    return found


OWN_NODE: Any = type("OwnNode", (Node,), {"__index__": Own.__index__})  # Any: as below
OWN_NODE.__abstractmethods__ = frozenset()  # it is made all the same
OWN: Any = Own()  # Any: what PyTorch's types know nothing of
FACTORS: dict[str, Callable[[], Any]] = {  # Any: as above
    "a size": lambda: torch.zeros(1, OWN).shape[1],
    "a disguised size": lambda: torch.zeros(1, Disguised()).shape[1],  # type: ignore[call-overload]  # claims nothing
    "a node as a size": lambda: torch.zeros(1, OWN_NODE()).shape[1],
    "sizes in a list": lambda: torch.zeros([1, OWN]).shape[1],
    "a slice": lambda: torch.zeros(9)[:OWN].shape[0],
    "a padding": lambda: F.pad(torch.zeros(0), (0, OWN)).shape[0],
    "a number": lambda: torch.tensor(OWN),
    "a list": lambda: torch.tensor([1.0, [OWN]][1]),
    "a deque": lambda: torch.tensor(deque([OWN])),
    "an array": lambda: torch.as_tensor(OwnArray()),
    "an array of objects": lambda: torch.tensor([object_array()]),
    "another number": lambda: torch.zeros(1).new_tensor(OWN),
    "a number that is set": lambda: torch.ones(2).__setitem__(0, OWN),
    "a list that computes": lambda: torch.tensor(OwnList([1])),
    "a number that computes": lambda: F.interpolate(torch.zeros(1, 1, 1), OwnNumber(1)).shape[2],
    "a text that computes": lambda: F.mse_loss(torch.ones(7), torch.ones(7), reduction=OwnText("")),
    "a tensor that computes": lambda: F.pad(torch.zeros(3).as_subclass(OwnTensor), (0, 1)).sum(),
    "below": lambda: torch.ones(()).as_subclass(Dispatched) * 1,
    "an operator": lambda: torch.ops.tests_of_training.factor(torch.ones(())),
    "an operator's default": lambda: torch.ops.tests_of_training.factor.default(torch.ones(())),
    "an operator of one's own": lambda: own_factor(torch.ones(())),
}


def times(factor: Callable[[], Any]) -> Use:  # Any: as above
    def use(m: Layers, x: Tensor) -> Tensor:
        DATA[:] = [x]
        found: Tensor = summed(m.layer(x)) * factor()
        return found

    return use


@pytest.mark.parametrize("name", FACTORS)
def test_objects_and_operators_of_the_users_are_refused(name: str) -> None:
    """Whatever made-up examples show."""
    model = Layers(times(FACTORS[name])).double()
    with pytest.raises(Refused, match=r"takes an object of the class|is an operator of torch"):
        check(model, model, of(5, WIDTH))


class Sizes(NamedTuple):
    """Some sizes."""

    rows: int
    columns: int


class Width(IntEnum):
    """A size."""

    NARROW = 3


class Reduction(StrEnum):
    """A choice, as configurations have it."""

    NONE = "none"


class Plain(Tensor):
    """A kind of tensor with more methods."""

    def doubled(self) -> Tensor:
        return self * 2


PLAIN: dict[str, Callable[[], Any]] = {  # Any: as above
    "a named tuple": lambda: torch.ones(Sizes(1, 2)).sum(),
    "a member": lambda: torch.ones(Width.NARROW).sum(),
    "a choice": lambda: F.mse_loss(torch.ones(1), torch.zeros(1), reduction=Reduction.NONE),
    "numbers of NumPy": lambda: torch.ones(3)[np.int64(2)].sum() * np.float64(2),
    "an array": lambda: torch.tensor(np.arange(3)).sum(),
    "a range": lambda: torch.tensor(range(3)).sum(),
    "an index": lambda: torch.ones(3)[..., None, :2].sum() * 1,
    "a kind": lambda: torch.ones(2).as_subclass(Plain).doubled().sum(),
    "types": lambda: torch.ones(2, dtype=float, device=torch.device("cpu")).sum(),  # type: ignore[call-overload]  # PyTorch's own types lack it
    "a layout": lambda: torch.ones(2, layout=torch.strided).contiguous(
        memory_format=torch.contiguous_format
    )[0],
}


@pytest.mark.parametrize("name", PLAIN)
def test_ordinary_arguments_train(name: str) -> None:
    model = Layers(times(PLAIN[name])).double()
    check(model, model, of(5, WIDTH))


@pytest.mark.parametrize("is_profiled", [False, True])
def test_names_for_profiles_are_no_objects_of_the_user(is_profiled: bool) -> None:
    """`record_function` hands an object of PyTorch's own to PyTorch."""

    def named(m: Layers, x: Tensor) -> Tensor:
        with record_function("a layer"):
            return summed(m.layer(x))

    model, data = Layers(named).double(), of(5, WIDTH)
    with profile() if is_profiled else nullcontext():
        found = clipped_sum(model, lambda: model(data), 5, Flat(0.3), batch=data)
    wanted = one_by_one(model, lambda one: model(data[one : one + 1]), 5, Flat(0.3))
    same(found, wanted)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_other_objects_of_scripts_are_refused() -> None:
    packed = torch.ops.quantized.linear_prepack(
        torch.quantize_per_tensor(torch.ones(1, 1), 1.0, 0, torch.qint8), None
    )
    assert type(packed) is torch.ScriptObject
    with pytest.raises(Refused, match="class ScriptObject"):
        refuse_objects(torch.ops.quantized.linear_unpack, (packed,), {})
