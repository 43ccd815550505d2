"""Each argument of a loss counts: PyTorch doesn't hand all of them on to modes.

`F.l1_loss` leaves out its weight where a mode intercepts it, so that training would go on without
weights, and nothing would show it: the plain loop runs within modes, too.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from discreet.train import Flat, clipped_sum, one_by_one
from discreet.train._calls._lost_arguments import LOST
from discreet.train._calls._precision import AutocastNotice
from discreet.train._randomness._deterministic import DeterministicMode
from discreet.train._randomness._secret_draws import RefuseGenerators

N, WIDTH = 6, 3
SECRET = torch.Generator().manual_seed(1)
LABELS = torch.randint(WIDTH, (N,), generator=SECRET)
VALUES = torch.randn(N, WIDTH, generator=SECRET)
SHARES = torch.rand(N, WIDTH, generator=SECRET)
CLASSES = torch.rand(WIDTH, generator=SECRET)
SIGNS = torch.tensor([1.0, -1.0] * 3)


def left_out(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The functions of a module of PyTorch's with the arguments that a mode does not get."""
    for function in ast.walk(ast.parse(inspect.getsource(module))):
        if not isinstance(function, ast.FunctionDef):
            continue
        given = function.args
        names = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "handle_torch_function":
                handed = [*call.args[2:], *(one.value for one in call.keywords)]
                known = {ast.unparse(one) for one in handed}
                yield from ((function.name, name) for name in names - known)


def test_all_arguments_that_modes_do_not_get_are_listed() -> None:
    found = [one for module in (F, torch.functional) for one in left_out(module)]
    assert sorted(found) == sorted((one.__name__, name) for one, name in LOST.items())


_CASES: list[tuple[Any, Tensor, dict[str, Any]]] = [  # Any: losses, and their arguments
    *((loss, VALUES, {"weight": SHARES}) for loss in (F.l1_loss, F.mse_loss, F.huber_loss)),
    (F.huber_loss, VALUES, {"delta": 0.1}),
    (F.smooth_l1_loss, VALUES, {"beta": 0.1}),
    (F.cross_entropy, LABELS, {"weight": CLASSES, "label_smoothing": 0.3}),
    (F.cross_entropy, LABELS, {"ignore_index": 1}),
    (F.nll_loss, LABELS, {"weight": CLASSES, "ignore_index": 2}),
    (F.binary_cross_entropy_with_logits, SHARES, {"weight": SHARES, "pos_weight": CLASSES}),
    (F.kl_div, VALUES, {"log_target": True}),
    (F.poisson_nll_loss, SHARES, {"log_input": False, "full": True, "eps": 0.2}),
    (F.hinge_embedding_loss, SIGNS[:, None], {"margin": 0.3}),
    (F.multi_margin_loss, LABELS, {"p": 2, "margin": 0.3, "weight": CLASSES}),
    (F.multilabel_soft_margin_loss, SHARES, {"weight": CLASSES}),
]
# losses without reduction, with an argument that has another value than usual
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    f"{loss.__name__} {' '.join(options)}": partial(
        lambda rows, loss, target, options: loss(rows, target, reduction="none", **options),
        loss=loss,
        target=target,
        options=options,
    )
    for loss, target, options in _CASES
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_plain_pytorch(name: str) -> None:
    model = nn.Linear(WIDTH, WIDTH)
    nn.init.constant_(model.weight, 0.3)

    def losses() -> Tensor:
        found = LOSSES[name](model(VALUES).abs())
        return found if found.dim() == 1 else found.mean(1)

    wanted = torch.autograd.grad(losses().sum(), [*model.parameters()])
    together = clipped_sum(model, losses, N, Flat(1e6))
    alone = one_by_one(model, lambda place: losses()[place : place + 1], N, Flat(1e6))
    for found in (together, alone):
        torch.testing.assert_close(found.sums, [*wanted])


MODES: list[Callable[[], TorchFunctionMode]] = [
    DeterministicMode,
    RefuseGenerators,
    partial(AutocastNotice, torch.device("cpu")),
]


@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", MODES)
def test_no_mode_loses_a_weight(
    first: Callable[[], TorchFunctionMode], second: Callable[[], TorchFunctionMode]
) -> None:
    loss: Any = F.l1_loss  # Any: PyTorch's types lack its weight
    wanted = loss(VALUES, SHARES, weight=SHARES)
    with first(), second():
        found = loss(VALUES, SHARES, weight=SHARES)
    torch.testing.assert_close(found, wanted)


def test_the_product_of_a_chain_is_written_where_it_was_asked_for() -> None:
    place, matrices = torch.zeros(N, N), (VALUES, VALUES.T)
    multiply: Any = torch.chain_matmul  # Any: PyTorch has no types for it
    with RefuseGenerators(), pytest.warns(UserWarning, match="chain_matmul is deprecated"):
        multiply(*matrices, out=place)
    torch.testing.assert_close(place, VALUES @ VALUES.T)
