"""What a forward pass does with trainable parameters, noted call by call.

`Capture` is a mode of PyTorch that sees every function the user's code calls, whatever module it
calls it from. A call that takes a trainable parameter together with data goes to that function's
rule: the rule hands a stand-in of the parameter to PyTorch, so that the backward pass never
computes the parameter's own gradient, and notes what later gives each example's gradient. Calls
of parameters and constants alone (slices, transposes, parametrizations, positions) make derived
weights, treated like parameters and mapped back later. Nothing is put on the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from discreet.errors import Refused

Args = tuple[Any, ...]  # Any: what PyTorch's functions take
Keywords = dict[str, Any]


class Piece(Protocol):
    """One weight's gradient from one use of it, for each example, not yet written out."""

    def measured(self) -> tuple[Tensor, "Piece"]:
        """Upper bounds of the squared L2 norms, round-off included: (example,); and the piece to
        go on with, which holds what was made for them and nothing else."""
        ...

    def part(self, start: int, stop: int) -> Tensor:
        """Gradients of some examples, written out: (example, *weight)."""
        ...

    def total(self, factors: Tensor) -> Tensor:
        """The sum of all gradients, each multiplied with its example's factor: (*weight)."""
        ...

    def only(self, kept: Tensor) -> "Piece":
        """The same with nothing from all examples but those kept, whatever they held."""
        ...


@dataclass(frozen=True, slots=True)
class Use:
    """One use of weights: a gradient of `target`, in this shape, makes a piece of each one's."""

    target: Tensor | GradientEdge
    shape: torch.Size
    makes: tuple[tuple[Tensor, Callable[[Tensor], Piece]], ...]


class Rule(Protocol):
    """How a function's use of weights is noted; returns what the function returns."""

    def __call__(
        self, capture: "Capture", function: Callable[..., Any], args: Args, keywords: Keywords, /
    ) -> Any:  # Any: what the function returns
        """Call the function with stand-ins, and note each weight's use."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """Each function's rule, the one for all others, and those that every call goes to."""

    of: Mapping[Callable[..., Any], Rule]
    otherwise: Rule
    always: frozenset[Callable[..., Any]] = frozenset()


MAKES_CONSTANTS = frozenset(
    {
        torch.arange,
        torch.empty,
        torch.eye,
        torch.full,
        torch.linspace,
        torch.ones,
        torch.tril_indices,
        torch.triu_indices,
        torch.zeros,
    }
)


_SET_GRADIENTS = torch._C._set_grad_enabled  # noqa: SLF001  as it comes here

_TELL_ONLY = frozenset(  # of data and weights alike, and give no tensor
    {
        Tensor.dim,
        Tensor.size,
        Tensor.stride,
        Tensor.is_contiguous,
        Tensor.is_floating_point,
        Tensor.numel,
        *(
            getattr(Tensor, name).__get__
            for name in (
                "shape",
                "dtype",
                "device",
                "ndim",
                "requires_grad",
                "is_cuda",
                "is_nested",
            )
        ),
        _SET_GRADIENTS,
    }
)


class Capture(TorchFunctionMode):
    """Notes every use of trainable parameters while it is entered; afterwards `uses` has them."""

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, nn.Parameter],
        examples: int,
        rules: "Rules",
        *,
        hides_shapes: bool = False,
    ) -> None:
        super().__init__()
        self.examples, self.hides_shapes = examples, hides_shapes
        self.uses: list[Use] = []
        named: dict[str, Tensor] = {**dict(model.named_buffers()), **parameters}
        self.names = {id(tensor): name for name, tensor in named.items()}
        trainable = [each for each in parameters.values() if each.requires_grad]
        # by identity: parameters and what derives from them
        self.weights: dict[int, Tensor] = {id(each): each for each in trainable}
        self.packed: dict[int, PackedSequence] = {}  # by identity of their rows
        self.replaying = False  # in the backward pass: checkpointed parts are computed again
        self.pauses = False  # some part is computed without a graph, as reentrant checkpoints are
        self._rules = rules
        others = (each for each in named.values() if id(each) not in self.weights)
        self._constants = {id(each): each for each in others}
        self._refuse_complex(trainable)

    def __torch_function__(
        self,
        func: Any,  # Any: a function of PyTorch's, and what it takes
        types: Any,
        args: Args = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        keywords = kwargs or {}
        if func in _TELL_ONLY:
            self.pauses |= func is _SET_GRADIENTS and not args[0]
            return func(*args, **keywords)
        tensors = _tensors(args)
        if keywords:
            tensors += _tensors(keywords.values())
        weights = self.weights
        mixes = torch.is_grad_enabled() and any(id(each) in weights for each in tensors)
        if mixes and all(self.is_shared(each) for each in tensors):
            result = func(*args, **keywords)
            for tensor in _tensors((result, *args[:1]) if changes_its_first(func) else (result,)):
                kind = self.weights if tensor.requires_grad else self._constants
                kind[id(tensor)] = tensor
            return result
        if mixes:
            self._refuse_complex([each for each in tensors if id(each) in weights])
            rule = self._rules.of.get(func, self._rules.otherwise)
            return rule(self, func, args, keywords)
        if func in self._rules.of and func in self._rules.always and not self.replaying:
            return self._rules.of[func](self, func, args, keywords)
        result = func(*args, **keywords)
        self._constancy(func, tensors, (args, keywords), result)
        return result

    def is_weight(self, tensor: object) -> bool:
        """Whether it is a trainable parameter or derives from some and no data."""
        return id(tensor) in self.weights

    def stand_in(self, value: Any) -> Any:  # Any: any argument
        """Of a weight, one that the backward pass does not follow; all else as it is."""
        return value.detach().requires_grad_() if self.is_weight(value) else value

    def saved(self, data: Tensor) -> Callable[[], Tensor]:
        """Gives the data back later, unless something changed it in place meanwhile."""
        version = data._version  # noqa: SLF001  PyTorch has no public name for it

        def give_back() -> Tensor:
            if data._version != version:  # noqa: SLF001
                of_shape = "" if self.hides_shapes else f" of shape {tuple(data.shape)}"
                raise Refused(
                    f"data{of_shape} was changed in place after a layer had used it; call the "
                    "function that makes a new tensor instead"
                )
            return data.detach()

        return give_back

    def otherwise(self, function: Callable[..., Any], args: Args, keywords: Keywords) -> Any:
        """What is done with functions that have no rule."""
        return self._rules.otherwise(self, function, args, keywords)

    def call(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Tensor:
        """The function's result, which is no view but of a tensor of its own in the same order.

        Arguments are swapped for their stand-ins.
        """
        given = {key: self.stand_in(value) for key, value in keywords.items()}
        result: Tensor = function(*map(self.stand_in, args), **given)
        is_whole = result._base is None or _in_order(result)  # noqa: SLF001  as in `_whole`
        return result if is_whole else result.clone()

    def note(self, result: Tensor, *makes: tuple[Any, Callable[[Tensor], Piece]]) -> None:
        """A use of those that are weights: a gradient of the result makes each one's piece."""
        weights = tuple(each for each in makes if id(each[0]) in self.weights)
        if weights and not self.replaying:
            # of what the result is a view of: a change of the view in place leaves that behind it
            whole = result if result.is_leaf else _whole(result)
            self.uses.append(Use(get_gradient_edge(whole), result.shape, weights))

    def note_own(self, weight: Tensor, own: Tensor, piece: Callable[[Tensor], Piece]) -> None:
        """A use through a tensor of its own, whose gradient PyTorch computes."""
        if not self.replaying:
            self.uses.append(Use(own, own.shape, ((weight, piece),)))

    def by_example(self, data: Tensor, *weights: object, least: int = 1) -> None:
        """Refuse data whose first dimension is not that of examples."""
        if torch._C._functorch.is_functorch_wrapped_tensor(data):  # noqa: SLF001  has no other name
            raise self.refused(
                *weights,
                why="is used within torch.vmap or torch.func",
                mend="call the layer on all examples at once",
            )
        if data.dim() < least or data.shape[0] != self.examples:
            shape = f"data of shape {tuple(data.shape)} for {self.examples} examples"
            hidden = "data of which the first dimension is not that of examples"
            raise self.refused(
                *weights,
                why=f"gets {hidden if self.hides_shapes else shape}",
                mend="keep examples in the first dimension, such as (examples, time, features), or "
                "set batch_first=True",
            )

    def has_rows_in_order(self, data: Tensor) -> bool:
        """Whether its rows are those of the first example, then those of the second, and so on,
        in memory too: what `view` makes of data (example, time, ..., feature)."""
        whole, size = _whole(data), data.numel() // self.examples
        if whole.shape[:1] != (self.examples,) or whole.numel() != data.numel():
            return False
        strides = zip(whole.shape[1:], whole.stride()[1:], strict=True)
        within = sum((length - 1) * stride for length, stride in strides)
        starts = whole.stride(0) == size and whole.storage_offset() == data.storage_offset()
        return starts and within < size and data.is_contiguous()

    def refused_change(self, function: Any, *weights: object) -> Refused:  # Any: as above
        """An error for a function that changes its argument in place."""
        return self.refused(
            *weights,
            why=f"is used by {function.__name__}, which changes its argument in place",
            mend="call the function that makes a new tensor instead",
        )

    def name(self, *weights: object) -> str:
        """The first of these that has a name, or what derives from it."""
        for weight in weights:
            if id(weight) in self.names:
                return self.names[id(weight)]
            if isinstance(weight, Tensor):
                for parameter in ancestors(weight):
                    return self.names.get(id(parameter), "a parameter")
        return "a parameter"

    def refused(self, *weights: object, why: str, mend: str) -> Refused:
        """An error that names the layer, what is wrong with it and what to do."""
        return Refused(f"{self.name(*weights)} {why}; {mend}")

    def is_shared(self, tensor: Tensor) -> bool:
        """Whether it is the same for all data."""
        return id(tensor) in self.weights or id(tensor) in self._constants

    def _constancy(
        self, func: Any, tensors: list[Tensor], given: tuple[Args, Keywords], result: object
    ) -> None:
        """Keep in mind what is the same for all data and has no gradient."""
        args, keywords = given
        is_number = func is torch.tensor and isinstance(result, Tensor) and not result.dim()
        made = func in MAKES_CONSTANTS or is_number
        if made or (tensors and all(map(self.is_shared, tensors))):
            for tensor in _tensors((result,)):
                self._constants[id(tensor)] = tensor
            return
        first = args[:1] if changes_its_first(func) else ()
        for changed in _tensors((keywords.get("out"), *first)):
            self._forget(changed)

    def _forget(self, changed: Tensor) -> None:
        """What shares memory with it is the same for all data no longer."""
        whole = id(_whole(changed))
        if whole in self._constants:
            kept = self._constants.items()
            self._constants = {key: each for key, each in kept if id(_whole(each)) != whole}

    def _refuse_complex(self, weights: Sequence[Tensor]) -> None:
        """Half of a complex gradient would be lost where it is made a real one."""
        for weight in weights:
            if weight.is_complex():
                raise self.refused(
                    weight,
                    why="is trained in complex numbers",
                    mend="keep real and imaginary parts as two real parameters, and multiply "
                    "complex data by each",
                )


def _whole(result: Tensor) -> Tensor:
    """What the result is a view of, or itself."""
    base = result._base  # noqa: SLF001  PyTorch has no public name for it
    return result if base is None else base


def _in_order(result: Tensor) -> bool:
    """Whether the result has all that it is a view of, in the same order."""
    whole = _whole(result)
    return whole.numel() == result.numel() and whole.is_contiguous() and result.is_contiguous()


def ancestors(derived: Tensor) -> list[Tensor]:
    """The parameters that a derived weight comes from, or itself."""
    if derived.grad_fn is None:
        return [derived]
    found: dict[int, Tensor] = {}
    seen, ahead = set(), [derived.grad_fn]
    while ahead:
        node = ahead.pop()
        if node in seen:
            continue
        seen.add(node)
        if (variable := getattr(node, "variable", None)) is not None:
            found[id(variable)] = variable
        ahead.extend(following for following, _ in node.next_functions if following is not None)
    return [*found.values()]


def _tensors(values: Any) -> list[Tensor]:  # Any: arguments or results
    """All tensors among these, those in lists and tuples too."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def changes_its_first(func: Any) -> bool:  # Any: a function of PyTorch's
    """Whether it changes its first argument in place."""
    name = getattr(func, "__name__", "")
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
