"""Functions with rules take arguments by place and by name, as PyTorch does.

Calls are made from PyTorch's own list of its functions' arguments. Those that PyTorch accepts must
give an answer or a named refusal, and the same answer however the arguments are given.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train._flow._table import FLOW
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._tags._tag import ExampleRows, Tag, UntrackedRows

SIZE = 4  # of examples, and of everything else
CALLS = 12  # of each function and kind of data
Given = dict[str, Any]  # Any: arguments of PyTorch's functions, by name
Function = Callable[..., Any]


class Weight(nn.Module):
    """A weight and a constant of the same shape."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, SIZE * SIZE).reshape(SIZE, SIZE))
        self.register_buffer("constant", torch.linspace(0.1, 1, SIZE * SIZE).reshape(SIZE, SIZE))


def schemas(function: Function) -> list[Any]:
    """PyTorch's lists of the arguments of a function, for each form of a call."""
    name = getattr(function, "__name__", "")
    try:
        found: Any = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    except RuntimeError:  # a function of Python's, or a property
        return []
    return [*found]


def choices(argument: Any, tensors: list[Tensor]) -> list[Any]:
    """Some values of an argument; none if it can be left out only."""
    kind = str(argument.type)
    if kind == "Tensor":
        return tensors
    if kind == "List[Tensor]":
        return [[tensors[0], tensors[0]], [tensors[0], tensors[1]]]
    if argument.has_default_value():
        return [] if argument.default_value is None else [argument.default_value]
    values: dict[str, list[Any]] = {
        "int": [1, 0],
        "List[int]": [[1], [SIZE, SIZE], [0, 1]],
        "float": [0.5],
        "bool": [False],
        "number": [2],
    }
    return values.get(kind, [None])


def calls(function: Function, tensors: list[Tensor]) -> Iterator[Given]:
    """Arguments by name, in their order, that a function may take."""
    for schema in schemas(function):
        known = [one for one in schema.arguments if one.name not in ("generator", "out")]
        several = [(one.name, choices(one, tensors)) for one in known]
        several = [(name, values) for name, values in several if values]
        for values in islice(product(*(each for _, each in several)), CALLS):
            yield {name: one for (name, _), one in zip(several, values, strict=True)}


def forms(given: Given) -> Iterator[tuple[list[Any], Given]]:
    """By place as far as possible, and by name from the first, second or third argument on."""
    named = [("input" if name == "self" else name, value) for name, value in given.items()]
    for number in (len(named), 0, 1, 2):
        rest = named[number:]
        yield [value for _, value in named[:number]], dict(rest)
        if len(rest) > 1:
            yield [value for _, value in named[:number]], dict(reversed(rest))


def copied(values: Any, copies: dict[int, Tensor]) -> Any:
    """The same with a copy of each tensor, which is remembered by identity."""
    if isinstance(values, Tensor):
        return copies.setdefault(id(values), values.clone())
    if isinstance(values, list):
        return [copied(one, copies) for one in values]
    if isinstance(values, dict):
        return {name: copied(one, copies) for name, one in values.items()}
    return values


def is_valid(function: Function, args: list[Any], named: Given) -> bool:
    try:
        function(*args, **named)
    except Exception:  # noqa: BLE001  PyTorch raises many kinds
        return False
    return True


def answer(model: Weight, data: Tensor, function: Function, args: list[Any], named: Given) -> str:
    """Where a call's result has examples, or that it was refused."""
    capture = Capture(model, dict(model.named_parameters()), SIZE, RULES, batch=data)
    try:
        with capture:
            result = function(*args, **named)
    except Refused:
        return "refused"
    return described(capture.tags.of(result)) if isinstance(result, Tensor) else "several"


def described(tag: Tag | None) -> str:
    if isinstance(tag, UntrackedRows):
        return "unknown"
    if isinstance(tag, ExampleRows):
        return f"{tag.dim} {tag.layout.outer} {tag.layout.inner} {tag.layout.order.examples}"
    return str(type(tag))


NAMED = sorted({function for function in FLOW if schemas(function)}, key=repr)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_whole", [False, True], ids=["fractions", "whole numbers"])
@pytest.mark.parametrize("part", range(8))
def test_arguments_by_name_have_the_answer_of_those_by_place(part: int, is_whole: bool) -> None:
    model, tried, differing = Weight(), 0, list[str]()
    constant: Tensor = model.get_buffer("constant")
    numbers = constant.clone()
    for function in NAMED[part::8]:
        data = torch.arange(SIZE * SIZE).reshape(SIZE, SIZE) % SIZE if is_whole else constant + 0.1
        others = [data % 2] if is_whole else [constant, model.weight]
        for given in calls(function, [data, *others]):
            answers: list[tuple[str, str]] = []
            for args, named in forms(given):
                trial: dict[int, Tensor] = {id(model.weight): model.weight}
                if is_valid(function, copied(args, trial), copied(named, trial)):
                    copies: dict[int, Tensor] = {
                        id(model.weight): model.weight,
                        id(constant): constant,
                    }
                    place, name = copied(args, copies), copied(named, copies)
                    found = answer(model, copied(data, copies), function, place, name)
                    constant.copy_(numbers)  # some functions change it in place
                    answers.append((found, f"{len(args)} by place, then {[*named]}"))
                    tried += 1
            allowed = {answers[0][0], "unknown", "refused"} if answers else set()
            differing += [f"{function}: {one}" for one in answers if one[0] not in allowed]
    assert tried > 100
    assert differing == []


def test_a_rule_that_cannot_read_a_call_refuses_it_by_name() -> None:
    """An error of PyTorch's own function passes through."""

    def fails(*_: object) -> Any:
        raise KeyError("other")

    model, data = nn.Linear(SIZE, SIZE), torch.ones(SIZE, SIZE)
    rules = replace(RULES, of={F.linear: fails})
    capture = Capture(model, dict(model.named_parameters()), SIZE, rules, batch=data)
    with capture, pytest.raises(Refused, match="weight is used by linear with arguments that"):
        model(data)
    with capture, pytest.raises(KeyError):
        model(data[:, 1:])
