"""The forms of rules: how a call with data and weights is run, and what is recorded of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from discreet.train._arguments import Args, Function, Keywords
from discreet.train._layouts import RowLayout

if TYPE_CHECKING:
    from discreet.train._capture import Capture

KEEP_FIRST = (
    "keep examples in the first dimension, such as (examples, time, features), or set "
    "batch_first=True"
)


class PerExampleGradients(Protocol):
    """For each example, one weight's gradient from one use of it, in a compact form.

    Elsewhere this is called a piece: a weight's gradient is the sum of the pieces of its uses.
    """

    def squared_norms(self) -> tuple[Tensor, "PerExampleGradients"]:
        """Upper bounds of the squared L2 norms, round-off included, (example,), and a piece.

        The piece has the same gradients. If the norms needed dense gradients and these are small,
        it holds the dense gradients in place of the data.
        """
        ...

    def rows(self, start: int, stop: int) -> Tensor:
        """Dense gradients of the examples from ``start`` to ``stop``: (example, *weight)."""
        ...

    def weighted_sum(self, factors: Tensor) -> Tensor:
        """The sum over examples of gradients times factors: (*weight)."""
        ...

    def masked(self, kept: Tensor) -> "PerExampleGradients":
        """The same gradients, with zeros for examples that are not kept, even in place of NaN."""
        ...


@dataclass(frozen=True, slots=True)
class Use:
    """One use of weights.

    Attributes:
        target: a result of the forward pass.
        shape: the shape to which the target's gradient is reshaped.
        makes: for each weight, a function that makes its piece from the target's gradient.
        layout: the layout of the pieces' rows, or None if row i is example i.
    """

    target: Tensor | GradientEdge
    shape: torch.Size
    makes: tuple[tuple[Tensor, Callable[[Tensor], PerExampleGradients]], ...]
    layout: RowLayout | None = None


class Rule(Protocol):
    """Calls a function, and records its use of weights."""

    def __call__(
        self, capture: "Capture", function: Function, args: Args, keywords: Keywords, /
    ) -> Any:  # Any: what the function returns
        """The function's result; each weight's use is recorded."""
        ...


Features = tuple[str, int, Callable[[Args, Keywords], int]]


@dataclass(frozen=True, slots=True)
class Rules:
    """Each function's rule, and where it expects examples.

    Attributes:
        of: each function's rule.
        otherwise: the rule of all other functions.
        ruled: calls a function by its rule, with rows where the rule expects them.
        features: functions that act on the last dimensions only: the name and position of their
            data among the arguments, and the number of those dimensions.
        broadcast: functions that broadcast their arguments.
        products: functions whose rule needs examples in the first dimension; if they are in another
            one, `otherwise` applies.
        elsewhere: functions with examples in fixed other dimensions: each data argument with its
            dimension of examples.
        always: functions whose rule gets every call, also those without weights.
    """

    of: Mapping[Function, Rule]
    otherwise: Rule
    ruled: Callable[["Capture", Function, Args, Keywords, list[Tensor]], Any]
    features: Mapping[Function, Features]
    broadcast: frozenset[Function]
    products: frozenset[Function]
    elsewhere: Mapping[Function, Callable[[Args, Keywords], list[tuple[Tensor, int]]]]
    always: frozenset[Function] = frozenset()
