"""Records each use of trainable parameters in a forward pass.

`Capture` is a mode of PyTorch that intercepts every function which the user's code calls, from
whatever module. It records which part of each tensor belongs to which example
(`discreet.train._tags`). A call with both data and a trainable parameter goes to the function's
rule. The rule passes a detached copy of the parameter to PyTorch, so that the backward pass never
computes the parameter's own gradient, and records how to compute each example's gradient later.
Calls with parameters and constants only (slices, transposes, parametrizations, positions) make
derived weights. These are treated like parameters, and their gradients are mapped back later. The
model itself is not changed.
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
from discreet.train import _flow
from discreet.train._arguments import Args, Keywords, tensors_in
from discreet.train._layouts import RowLayout
from discreet.train._tags import (
    OUTSIDE_BATCH,
    ExampleRows,
    OneExample,
    Tags,
    UnknownOwners,
    memory_of,
)

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
        self, capture: "Capture", function: Callable[..., Any], args: Args, keywords: Keywords, /
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

    of: Mapping[Callable[..., Any], Rule]
    otherwise: Rule
    ruled: Callable[["Capture", Callable[..., Any], Args, Keywords, list[Tensor]], Any]
    features: Mapping[Callable[..., Any], Features]
    broadcast: frozenset[Callable[..., Any]]
    products: frozenset[Callable[..., Any]]
    elsewhere: Mapping[Callable[..., Any], Callable[[Args, Keywords], list[tuple[Tensor, int]]]]
    always: frozenset[Callable[..., Any]] = frozenset()


MAKES_CONSTANTS = frozenset(
    {
        torch.arange,
        torch.bernoulli,
        torch.empty,
        torch.eye,
        torch.full,
        torch.linspace,
        torch.normal,
        torch.ones,
        torch.rand,
        torch.randint,
        torch.randn,
        torch.tril_indices,
        torch.triu_indices,
        torch.zeros,
    }
)
_NEW = frozenset({Tensor.new_empty, Tensor.new_full, Tensor.new_ones, Tensor.new_zeros})
_OF_SIZES = frozenset({torch.empty, torch.eye, torch.ones, torch.rand, torch.randn, torch.zeros})
_OF_NUMBERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor})
_GIVES_NUMBERS = frozenset(
    {
        Tensor.tolist,
        Tensor.item,
        Tensor.numpy,
        Tensor.__array__,
        Tensor.__int__,
        Tensor.__float__,
        Tensor.__index__,
        Tensor.__dlpack__,
    }
)


_SET_GRADIENTS = torch._C._set_grad_enabled  # noqa: SLF001  the function that modes get

_METADATA = frozenset(  # they return no tensor
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
    """Records every use of trainable parameters in `uses` while it is entered."""

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, nn.Parameter],
        examples: int,
        rules: "Rules",
        *,
        batch: object = None,
        hides_shapes: bool = False,
    ) -> None:
        super().__init__()
        self.examples, self.hides_shapes = examples, hides_shapes
        self.rows = examples  # of the data in the current rule
        self.dim = 0  # their dimension, counted from the end, for rules that broadcast
        self.layout: RowLayout | None = None  # of these rows, or None if row i is example i
        self.uses: list[Use] = []
        named: dict[str, Tensor] = {**dict(model.named_buffers()), **parameters}
        self.names = {id(tensor): name for name, tensor in named.items()}
        trainable = [each for each in parameters.values() if each.requires_grad]
        # by identity: parameters and what derives from them
        self.weights: dict[int, Tensor] = {id(each): each for each in trainable}
        self.packed: dict[int, PackedSequence] = {}  # by identity of their rows
        self.replaying = False  # backward pass: checkpointed parts run again
        self.pauses = False  # some part ran without a graph, as reentrant checkpoints do
        self.rules = rules
        plain = [one for part in model.modules() for one in vars(part).values()]
        plain += [one for each in plain if type(each) is dict for one in each.values()]
        held = [one for one in plain if isinstance(one, Tensor) and not one.requires_grad]
        others = (each for each in (*named.values(), *held) if id(each) not in self.weights)
        self._constants = {id(each): each for each in others}
        self.tags = Tags(examples, batch, self.is_shared)
        self._has_given_numbers = False  # Python numbers of data: a later tensor may hold them
        self._refuse_complex(trainable)

    def __torch_function__(
        self,
        func: Any,  # Any: a function of PyTorch's, and what it takes
        types: Any,
        args: Args = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        keywords = kwargs or {}
        if func in _METADATA:
            self.pauses |= func is _SET_GRADIENTS and not args[0]
            return func(*args, **keywords)
        tensors = tensors_in(args)
        if keywords:
            tensors += tensors_in(keywords.values())
        weights = self.weights
        # 1. weights alone make derived weights
        mixes = torch.is_grad_enabled() and any(id(each) in weights for each in tensors)
        if mixes and self._derives(func, args, tensors):
            result = func(*args, **keywords)
            for tensor in tensors_in((result, *args[:1]) if changes_its_first(func) else (result,)):
                kind = self.weights if tensor.requires_grad else self._constants
                kind[id(tensor)] = tensor
            return result
        # 2. data with weights, and some functions always, are called by their rule
        changed = _changed(func, args, keywords)
        before = [self.tags.of(each) for each in changed]
        if mixes:
            self._refuse_complex([each for each in tensors if id(each) in weights])
            result = self.rules.ruled(self, func, args, keywords, tensors)
        elif func in self.rules.always and not self.replaying:
            result = self.rules.ruled(self, func, args, keywords, tensors)
        else:
            result = func(*args, **keywords)
            self.follow(func, tensors, args, keywords, result)
        # 3. changes in place concern all tensors of the same memory
        for each, tag in zip(changed, before, strict=True):
            self._change(each, tag, tensors)
        return result

    def is_weight(self, tensor: object) -> bool:
        """Whether a tensor is a trainable parameter, or derives from some and from no data."""
        return id(tensor) in self.weights

    def stand_in(self, value: Any) -> Any:  # Any: any argument
        """A detached copy of a weight, so that the backward pass stops there; else the value."""
        return value.detach().requires_grad_() if self.is_weight(value) else value

    def saved(self, data: Tensor) -> Callable[[], Tensor]:
        """A function that returns the data later, and refuses if they were changed in place."""
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
        """Call a function by the rule for functions without one."""
        return self.rules.otherwise(self, function, args, keywords)

    def call(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Tensor:
        """The function's result on stand-ins of its arguments; partial views are copied."""
        given = {key: self.stand_in(value) for key, value in keywords.items()}
        result: Tensor = function(*map(self.stand_in, args), **given)
        is_whole = result._base is None or _in_order(result)  # noqa: SLF001  as in `_whole`
        return result if is_whole else result.clone()

    def note(
        self, result: Tensor, *makes: tuple[Any, Callable[[Tensor], PerExampleGradients]]
    ) -> None:
        """Record a use of those first elements that are weights.

        The second elements make their pieces from the gradient of the result.
        """
        weights = tuple(each for each in makes if id(each[0]) in self.weights)
        if weights and not self.replaying:
            # the gradient of the base: a view loses its own when it is changed in place
            whole = result if result.is_leaf else _whole(result)
            self.uses.append(Use(get_gradient_edge(whole), result.shape, weights, self.layout))

    def note_own(
        self, weight: Tensor, own: Tensor, piece: Callable[[Tensor], PerExampleGradients]
    ) -> None:
        """Record a use through each example's own copy, whose gradient PyTorch computes."""
        if not self.replaying:
            self.uses.append(Use(own, own.shape, ((weight, piece),), self.layout))

    def by_example(self, data: Tensor, *weights: object, least: int = 1) -> None:
        """Refuse data without rows in the first dimension, or with too few dimensions."""
        if data.dim() < least or data.shape[0] != self.rows:
            of_shape = "" if self.hides_shapes else f" of shape {tuple(data.shape)}"
            raise self.refused(*weights, why=f"gets data{of_shape}", mend=KEEP_FIRST)

    def check_losses(self, losses: Tensor) -> None:
        """Refuse losses unless row i is example i's by structure, or they depend on no data."""
        tag = self.tags.of(losses)
        if self.is_shared(losses) or (isinstance(tag, ExampleRows) and tag.layout.is_plain):
            return
        if isinstance(tag, (ExampleRows, OneExample)):
            raise Refused(
                "losses are of rows that were picked or put in another order: return one loss for "
                "each example, in their order"
            )
        after = f"were made by {tag.by}" if isinstance(tag, UnknownOwners) else "were computed"
        raise Refused(
            f"the loss of one example depends on others, or may: losses {after}; compute each from "
            "its own example's rows by PyTorch's own functions, without means, lengths or indices "
            "over the batch"
        )

    def refused_change(self, function: Any, *weights: object) -> Refused:  # Any: as above
        """The error for a function that changes its argument in place."""
        return self.refused(
            *weights,
            why=f"is used by {function.__name__}, which changes its argument in place",
            mend="call the function that makes a new tensor instead",
        )

    def name(self, *weights: object) -> str:
        """The name of the first weight that has one, or that derives from a named one."""
        for weight in weights:
            if id(weight) in self.names:
                return self.names[id(weight)]
            if isinstance(weight, Tensor):
                for parameter in ancestors(weight):
                    return self.names.get(id(parameter), "a parameter")
        return "a parameter"

    def refused(self, *weights: object, why: str, mend: str) -> Refused:
        """The error that names a layer, its mistake and what to do."""
        return Refused(f"{self.name(*weights)} {why}; {mend}")

    def is_shared(self, tensor: Tensor) -> bool:
        """Whether a tensor is the same for all data."""
        return id(tensor) in self.weights or id(tensor) in self._constants

    def _derives(self, func: Any, args: Args, tensors: list[Tensor]) -> bool:
        """Whether a call's result derives from weights alone.

        A part of them may be picked by the place of a loop, such as of each expert in turn.
        """
        if all(self.is_shared(each) for each in tensors):
            return True
        if func is not Tensor.__getitem__ or not self.is_shared(args[0]):
            return False
        tags = (self.tags.of(each) for each in tensors[1:] if not self.is_shared(each))
        return all(isinstance(tag, UnknownOwners) and tag.is_place for tag in tags)

    def follow(  # noqa: PLR0917  # what a call is made of
        self, func: Any, tensors: list[Tensor], args: Args, keywords: Keywords, result: object
    ) -> None:
        """Tag a result, or record that it is the same for all data."""
        data = self._data_in(func, args, tensors)
        self._has_given_numbers |= bool(data) and func in _GIVES_NUMBERS
        if not data and self._makes_constants(func, tensors, result):
            for tensor in tensors_in((result,)):
                self._constants[id(tensor)] = tensor
            _flow.count_on(_flow.Call(self.tags, func, args, keywords, result))
        elif any(
            isinstance(self.tags.of(each), (ExampleRows, OneExample, UnknownOwners))
            for each in data
        ):
            _flow.follow(_flow.Call(self.tags, func, args, keywords, result))
        elif self.tags.is_strict:
            for tensor in tensors_in((result,)):
                self.tags.set(tensor, OUTSIDE_BATCH)

    def _data_in(self, func: Any, args: Args, tensors: list[Tensor]) -> list[Tensor]:
        """The tensors that depend on data, without those used for their shape or type only."""
        if func in _OF_SIZES or (func is torch.arange and len(args) == 1):
            return []
        if func in _flow.LIKE_OTHERS and self.is_shared(args[0]):
            return []
        data = [each for each in tensors if not self.is_shared(each)]
        return [each for each in data if each is not args[0]] if func in _NEW else data

    def _makes_constants(self, func: Any, tensors: list[Tensor], result: object) -> bool:
        """Whether a function without data arguments returns the same for all data."""
        if func in _OF_NUMBERS and not tensors:  # the numbers may come from data
            is_one = isinstance(result, Tensor) and not result.dim()
            return is_one or not self._has_given_numbers
        return bool(tensors) or func in MAKES_CONSTANTS or func in _NEW

    def _change(self, changed: Tensor, before: object, tensors: list[Tensor]) -> None:
        """Tag the tensors that share memory with one that was changed in place."""
        now = self.tags.of(changed)
        if all(map(self.is_shared, tensors)) or (now == before and now is not None):
            return
        freed = self._forget(changed)
        if self.tags.of(changed) != before:
            for other in {id(one): one for one in (*freed, *self.tags.sharing(changed))}.values():
                if other is not changed:
                    _flow.shared_now(self.tags, changed, other)

    def _forget(self, changed: Tensor) -> list[Tensor]:
        """Stop taking tensors in this memory for constants; returns these."""
        memory = memory_of(changed)
        freed = [each for each in self._constants.values() if memory_of(each) == memory]
        for each in freed:
            del self._constants[id(each)]
        base = changed._base  # noqa: SLF001  as in `_whole`
        return freed if base is None else [*freed, base]

    def _refuse_complex(self, weights: Sequence[Tensor]) -> None:
        """Refuse complex weights: half of their gradient would be lost as a real one."""
        for weight in weights:
            if weight.is_complex():
                raise self.refused(
                    weight,
                    why="is trained in complex numbers",
                    mend="keep real and imaginary parts as two real parameters, and multiply "
                    "complex data by each",
                )


def _whole(result: Tensor) -> Tensor:
    """The base of a view; another tensor itself."""
    base = result._base  # noqa: SLF001  PyTorch has no public name for it
    return result if base is None else base


def _in_order(result: Tensor) -> bool:
    """Whether a view has all entries of its base, in the same order."""
    whole = _whole(result)
    return whole.numel() == result.numel() and whole.is_contiguous() and result.is_contiguous()


def ancestors(derived: Tensor) -> list[Tensor]:
    """The parameters from which a weight derives."""
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


def _changed(func: Any, args: Args, keywords: Keywords) -> list[Tensor]:  # Any: as above
    """The tensors that a call changes in place."""
    name = getattr(func, "__name__", "")
    first = args[:1] if changes_its_first(func) or name == "__set__" else ()
    return tensors_in((keywords.get("out"), *first))


def changes_its_first(func: Any) -> bool:  # Any: a function of PyTorch's
    """Whether a function changes its first argument in place."""
    name = getattr(func, "__name__", "")
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
