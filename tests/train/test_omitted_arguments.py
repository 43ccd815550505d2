"""Arguments beside rows of examples that a rule could leave out, and equal values that are trained.

PyTorch broadcasts many arguments that are usually vectors or numbers, such as biases and
tolerances. So each argument of each function in the table of rules is tried with a constant that
differs by place in the batch. All examples are equal; so if the result has rows of examples, they
must be equal, too. No values of the data could hide that.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train import Flat, clipped_sum
from discreet.train._calls._arguments import _orders, tensors_in
from discreet.train._flow._random import is_random
from discreet.train._flow._table import FLOW
from discreet.train._forward._capture import Capture
from discreet.train._rules import RULES
from discreet.train._tags._tag import ExampleRows

N = 4  # examples, and also the width of rows, so that most shapes fit
MODEL = nn.Linear(1, 1)
PARAMETERS = dict(MODEL.named_parameters())
Arguments = tuple[Any, ...]  # Any: arguments, of several kinds
_SQUARE, _VECTOR = torch.eye(N), torch.ones(N)
_GATES = [torch.ones(N, N), torch.ones(N, N), torch.ones(N), torch.ones(N)]


def _rows(*shape: int) -> Tensor:
    """Rows of equal examples, each a matrix that has an inverse and a logarithm."""
    found = torch.full((N, *shape), 0.5)
    return found + torch.eye(N) if len(shape) > 1 else found


def _by_place(*shape: int) -> Tensor:
    return (0.5 + torch.arange(N).view(-1, *[1] * (len(shape) - 1))).expand(shape).clone()


X1, X2, X3, X4 = _rows(N), _rows(N, N), _rows(N, N, N), _rows(N, N, N, N)
BASES: dict[str, list[Arguments]] = {
    "linear": [(X1, _SQUARE, _VECTOR)],
    "bilinear": [(X1, X1, torch.ones(N, N, N), _VECTOR)],
    "embedding": [(torch.ones(N, N, dtype=torch.int64), _SQUARE)],
    "embedding_bag": [(torch.ones(N, N, dtype=torch.int64), _SQUARE)],
    "layer_norm": [(X2, [N])],
    "rms_norm": [(X2, [N])],
    "group_norm": [(X2, 2)],
    "index_fill": [(X1, 1, torch.tensor([0]), 2.0)],
    "grid_sample": [(X3, torch.zeros(N, N, N, 2))],
    "prelu": [(X1, _VECTOR)],
    "bucketize": [(X1, torch.arange(4.0))],
    "batch_norm": [(X1, torch.zeros(N), _VECTOR)],
    "instance_norm": [(X2,)],
    "gru_cell": [(X1, X1, torch.ones(3 * N, N), torch.ones(3 * N, N), *[torch.ones(3 * N)] * 2)],
    "lstm_cell": [
        (X1, (X1, X1), torch.ones(4 * N, N), torch.ones(4 * N, N), *[torch.ones(4 * N)] * 2)
    ],
    "rnn_tanh_cell": [(X1, X1, *_GATES)],
    "rnn_relu_cell": [(X1, X1, *_GATES)],
    "rnn_tanh": [
        (X2, torch.zeros(1, N, N), _GATES, True, 1, 0.0, False, False, True),
        (X2, torch.zeros(2, N, N), _GATES[:2] * 2, False, 1, 0.0, False, True, True),
    ],
    "rnn_relu": [(X2, torch.zeros(1, N, N), _GATES, True, 1, 0.0, False, False, True)],
    "multi_head_attention_forward": [
        (
            *(X1[None].expand(3, -1, -1),) * 3,
            *(N, 1, torch.ones(3 * N, N), torch.ones(3 * N), torch.ones(1, 1, N)),
            *(torch.ones(1, 1, N), False, 0.0, _SQUARE, _VECTOR),
        )
    ],
    **{f"conv{n}d": [(x, torch.ones(N, N, *[1] * n))] for n, x in ((1, X2), (2, X3), (3, X4))},
    **{f"lp_pool{n}d": [(x.clamp(min=0.1), 2.0, 1)] for n, x in ((1, X2), (2, X3), (3, X4))},
    "fractional_max_pool2d": [(X3, 2, 3)],
    "local_response_norm": [(X2, 2)],
    "pad": [(X2, (1, 0))],
    "isin": [(X1, _VECTOR)],
}
_OF_ALL: list[Arguments] = [(x, *more) for x in (X1, X2, X3) for more in ((), (1,), (2,), ([N],))]
SHAPES = [(N,), (N, 1), (N, N), (N, 1, 1), (N, N, N), (N, 3 * N), (N, 4 * N)]
ODD = [_by_place(*shape) for shape in SHAPES]
FUNCTIONS: dict[str, list[Any]] = {}  # Any: functions of PyTorch's
for _function in FLOW:
    _name = getattr(_function, "__name__", "")
    is_tried = _name in BASES or not is_random(_function)
    if is_tried and not _name.startswith(("__", "empty")) and not _name.endswith("_"):
        FUNCTIONS.setdefault(_name, []).append(_function)


def substituted(args: Arguments, names: list[str]) -> Iterator[tuple[Arguments, dict[str, Any]]]:
    """Calls in which each argument in turn is by place; the first stays the rows of examples."""
    for odd in ODD:
        for n in range(1, len(args)):
            yield (*args[:n], odd, *args[n + 1 :]), {}
            if isinstance(args[n], (list, tuple)):
                for m in range(len(args[n])):
                    yield (*args[:n], [*args[n][:m], odd, *args[n][m + 1 :]], *args[n + 1 :]), {}
        yield from ((args, {name: odd}) for name in names if name != "out")


def calls(function: Any) -> Iterator[tuple[Arguments, dict[str, Any]]]:  # Any: as above
    """Calls that PyTorch takes."""
    name = getattr(function, "__name__", "")
    names = {one for order, alone in _orders(function) for one in (*order[1:], *alone)}
    for args in BASES.get(name, _OF_ALL):
        try:
            function(*_copies(args))
        except Exception:  # noqa: BLE001  not for this shape
            continue
        for given, named in substituted(args, sorted(names)):
            try:
                function(*_copies(given), **{name: one.clone() for name, one in named.items()})
            except Exception:  # noqa: BLE001  most arguments don't fit
                continue
            yield given, named


def _copies(values: Any) -> Any:  # Any: nested arguments
    if isinstance(values, Tensor):
        return values.clone()
    return type(values)(map(_copies, values)) if isinstance(values, (list, tuple)) else values


def has_rows_by_place(function: Any, args: Arguments, named: dict[str, Any]) -> bool:
    """Whether rows of equal examples differ in a result that is said to have rows of examples."""
    data, *others = _copies(args)
    examples_dim = 1 if getattr(function, "__name__", "").startswith("multi_head") else 0
    batch = data.movedim(examples_dim, 0).contiguous()
    capture = Capture(MODEL, PARAMETERS, N, RULES, batch=batch)
    with capture:
        try:
            result = function(batch.movedim(0, examples_dim), *others, **named)
        except (Refused, RuntimeError, IndexError, TypeError, ValueError):
            return False
    for each in tensors_in((result,)):
        tag = capture.tags.of(each)
        if isinstance(tag, ExampleRows) and tag.layout.is_plain and not each.is_complex():
            rows = each.movedim(tag.dim, 0).double().nan_to_num()
            if not torch.allclose(rows, rows[:1].expand_as(rows)):
                return True
    return False


def found_by_place(name: str) -> tuple[int, list[str]]:
    tried, found = 0, []
    for function in FUNCTIONS[name][:1]:
        for args, named in calls(function):
            tried += 1
            if has_rows_by_place(function, args, named):
                shapes = [getattr(one, "shape", one) for one in (*args, *named.items())]
                found.append(f"{name}{shapes}")
    return tried, found


def test_no_argument_of_any_rule_differs_by_place() -> None:
    several = {name: found_by_place(name) for name in FUNCTIONS}
    assert not [one for _, found in several.values() for one in found]
    assert sum(tried for tried, _ in several.values()) > 1000
    known = ("linear", "gru_cell", "rnn_tanh", "linalg_pinv", "bilinear")
    assert not [name for name in (*known, "multi_head_attention_forward") if not several[name][0]]


class Tables(nn.Module):
    """Weights with a row for each example and more, and a layer at the end."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.vector = nn.Parameter(torch.zeros(9, N)), nn.Parameter(torch.zeros(N))
        self.layer = nn.Linear(N, 2)

    def forward(self, data: Tensor, use: Callable[["Tables", Tensor], Tensor]) -> Tensor:
        """The use shows only in data that made-up examples do not have."""
        rows = torch.where(data[:, :1] > 50, use(self, data), data)
        found: Tensor = self.layer(rows).square().sum(1)
        return found


Use = Callable[[Tables, Tensor], Tensor]


def signs(data: Tensor) -> Tensor:
    return 300.0 - 600 * (torch.arange(len(data))[:, None] % 2)


def unlike(weight: Tensor) -> Tensor:
    """Zeros, whose gradient is that of the weight."""
    return weight - weight.detach()


OF_EQUAL_VALUES: dict[str, Use] = {
    "rows of a table": lambda m, x: 30 * m.table[: len(x)],
    "rows minus themselves": lambda m, x: 30 * unlike(m.table)[: len(x)],
    "rows that were rounded": lambda m, x: (
        ((m.table.round() - m.table).detach() + m.table)[: len(x)] * 30
    ),
    "a factor by place": lambda m, x: x * 0.01 + unlike(m.vector) * signs(x),
    "rows of an embedding": lambda m, x: F.embedding(torch.arange(len(x)), m.table),
    "a bias": lambda m, x: F.linear(x, torch.eye(N), m.table[: len(x)]),
}
OMITTED: dict[str, Use] = {
    "a bias beside constants": lambda _, x: F.linear(x, torch.eye(N), signs(x).expand(-1, N)),
    "a bias beside weights": lambda m, x: F.linear(x, m.table[:N], signs(x).expand(-1, N)),
    "a bias of a cell": lambda _, x: torch.rnn_tanh_cell(
        x, torch.zeros_like(x), torch.eye(N), torch.eye(N), signs(x).expand(-1, N), torch.zeros(N)
    ),
    "a tolerance": lambda _, x: torch.linalg.pinv(
        torch.eye(N) + 0 * x[:, :, None], rtol=signs(x)[:, 0].clamp(min=0)
    ).sum(1),
}
ALIKE: dict[str, Use] = {
    "a vector": lambda m, x: x + m.vector.expand(len(x), N),
    "one row of a table for all": lambda m, x: x + m.table[torch.zeros(len(x), dtype=torch.int64)],
    "an embedding of zeros": lambda m, x: x + F.embedding(torch.zeros(len(x)).long(), m.table),
    "factors that are alike": lambda m, x: x + torch.full((len(x), 1), 0.5) * m.vector,
    "a row that is repeated": lambda m, x: x + m.vector[None].repeat_interleave(len(x), 0),
    "a vector several times": lambda m, x: x + torch.stack([m.vector] * len(x)),
    "positions": lambda m, x: x + m.table[torch.arange(3).expand(len(x), 3)].sum(1),
    "a bias for all": lambda _, x: F.linear(x, torch.eye(N), torch.ones(1).expand(len(x), N)),
}
DATA = torch.cat([60.0 + torch.arange(7)[:, None], torch.randn(7, N - 1)], 1)


@pytest.mark.parametrize("name", [*OF_EQUAL_VALUES, *OMITTED])
def test_rows_behind_a_condition_do_not_differ_by_place(name: str) -> None:
    use, model = (OF_EQUAL_VALUES | OMITTED)[name], Tables()
    with pytest.raises(Refused):
        clipped_sum(model, lambda: model(DATA, use), len(DATA), Flat(1.0), batch=DATA)


@pytest.mark.parametrize("name", ALIKE)
def test_weights_that_are_alike_train_like_single_examples(name: str) -> None:
    model = Tables()

    def sums(data: Tensor) -> Tensor:
        clipped = clipped_sum(
            model, lambda: model(data, ALIKE[name]), len(data), Flat(1.0), batch=data
        )
        return torch.cat([one.flatten() for one in clipped.sums])

    alone = sum(sums(DATA[n : n + 1]) for n in range(len(DATA)))
    torch.testing.assert_close(sums(DATA), alone, atol=1e-4, rtol=1e-4)
