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
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._calls._arguments import Args, Function, Keywords, tensors_in
from discreet.train._calls._composed import COMPOSED
from discreet.train._calls._graph import nodes
from discreet.train._calls._in_place import changed_by
from discreet.train._calls._initializers import as_method
from discreet.train._calls._lost_arguments import with_lost
from discreet.train._calls._values import CONDITIONS, called, refuse_truncation
from discreet.train._forward._backward import Backward
from discreet.train._forward._shared import Shared
from discreet.train._forward._tagging import Tagging
from discreet.train._forward._unfollowed import (
    caught,
    lowest_mode,
    refuse_backward_hooks,
    refuse_modes_around,
    refuse_numbers,
    refuse_unfollowed,
    tells_values,
)
from discreet.train._forward._unseen import WATCHED, Unseen
from discreet.train._forward._uses import KEEP_FIRST, PerExampleGradients, Use
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._layouts import RowLayout
from discreet.train._tags._tag import ExampleRows, OneExample, UntrackedRows

__all__ = ["Capture", "PerExampleGradients", "Rule", "Rules", "ancestors"]

_SET_GRADIENTS = torch._C._set_grad_enabled  # noqa: SLF001  the function that modes get

_MEND = (
    "compute each from its own example's rows by PyTorch's own functions, without means, lengths "
    "or indices over the batch"
)
_PROPERTIES = "shape dtype device ndim requires_grad is_cuda is_nested"
_METADATA = frozenset(  # they return no tensor
    {
        *(Tensor.dim, Tensor.size, Tensor.stride, Tensor.numel),
        *(Tensor.is_contiguous, Tensor.is_floating_point, _SET_GRADIENTS),
        *(getattr(Tensor, name).__get__ for name in _PROPERTIES.split()),
    }
)


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
            data among the arguments, and a function from the arguments to the number of those
            dimensions.
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


class Capture(TorchFunctionMode):
    """Records every use of trainable parameters in `uses` while it is entered."""

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, nn.Parameter],
        examples: int,
        rules: Rules,
        *,
        batch: object = None,
        hides_shapes: bool = False,
    ) -> None:
        super().__init__()
        # 1. the call whose rule runs
        self.examples, self.hides_shapes = examples, hides_shapes
        self.rows = examples  # of the data in the current rule
        self.dim = 0  # their dimension, counted from the end, for rules that broadcast
        self.layout: RowLayout | None = None  # of these rows, or None if row i is example i
        self.uses: list[Use] = []
        # 2. what is the same for all data
        self._model, self._parameters = model, parameters
        self._shared = Shared(model, parameters)
        self.is_shared = self._shared.has  # whether a tensor is the same for all data
        self.weights = self._shared.weights
        self.packed: dict[int, PackedSequence] = {}  # by identity of their rows
        self.replaying = False  # backward pass: checkpointed parts run again
        self.pauses = False  # some part ran without a graph, as reentrant checkpoints do
        self.rules = rules
        # 3. whose rows are whose, and what the check of a model asks
        self.tags = Tags(examples, batch, self.is_shared, self._shared.release)
        self.calling: tuple[Any, Args] = (None, ())  # Any: the function that was intercepted last
        self.error: Refused | None = None  # of a call with data, which the losses may catch
        self.has_tossed = False  # random numbers decided a condition of Python's
        self.answers: list[bool] = []  # to such conditions, in place of their own
        self._unseen = Unseen(self.tags, self.is_weight, self.refused)
        self._backward = Backward(self.tags, self._shared)
        self._tagging = Tagging(self.tags, self._shared, self._unseen)
        self._refuse_complex([*self.weights.values()])
        refuse_backward_hooks(model)
        self._refuse_modes()

    def __torch_function__(
        self,
        func: Any,  # Any: a function of PyTorch's, and what it takes
        types: Any,
        args: Args = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        if lowest_mode() is not self._lowest:
            self._refuse_modes()
        func, args, keywords = as_method(func, args, with_lost(func, kwargs or {}))
        self.calling = func, args
        if (composed := COMPOSED.get(func)) is not None:
            with self:
                return composed(*args, **keywords)
        if func in _METADATA:
            self.pauses |= func is _SET_GRADIENTS and not args[0]
            return func(*args, **keywords)
        refuse_unfollowed(func, types, args, keywords)
        tensors = tensors_in(args)
        if keywords:
            tensors += tensors_in(keywords.values())
        try:
            return self._followed(func, args, keywords, tensors)
        except Exception as error:
            if tells_values(error) and self.error is None and any(map(self.has_values, tensors)):
                self.error = caught(func, error)
            raise

    def _followed(
        self, func: Any, args: Args, keywords: Keywords, tensors: list[Tensor]
    ) -> Any:  # Any: as above
        """The result of a call, which is recorded and tagged."""
        if self._has_own_way(func, args, keywords, tensors):
            return self._in_own_way(func, args)
        if func in WATCHED and (known := self._unseen.watch(func, args[0], tensors)) is not None:
            return known
        if func is torch.autograd.grad and any(map(self.tags.depends, tensors)):
            return self._backward.gradients_of_inputs(args, keywords)
        # 1. weights alone make derived weights
        mixes = torch.is_grad_enabled() and any(id(each) in self.weights for each in tensors)
        if mixes and self._derives(func, args, tensors):
            result = called(func, args, keywords)
            changed = changed_by(func, args, keywords)
            for each in changed:
                self.tags.indices.forget(each)
                self.tags.indices.end_call()  # nothing looks at what it was
            self._shared.add_derived([*tensors_in((result,)), *changed])
            self._tagging.follow_weights(func, tensors, args, keywords, result, changed)
            return result
        # 2. data with weights, and some functions always, are called by their rule
        before = self._tagging.before(func, tensors, args, keywords)
        if mixes or (func in self.rules.always and not self.replaying):
            self._refuse_complex([each for each in tensors if id(each) in self.weights])
            result = self.rules.ruled(self, func, args, keywords, tensors)
        else:
            result = called(func, args, keywords)
            self.follow(func, tensors, args, keywords, result)
            if self.replaying:
                self._backward.refuse_mixed(func, tensors, result)
        if not isinstance(result, Tensor) and any(map(self.has_values, tensors)):
            refuse_numbers(func, result)
        # 3. changes in place concern all tensors of the same memory
        self._tagging.after(before, func, tensors, result)
        return result

    def _refuse_modes(self) -> None:
        """Refuse modes of the user's that get calls after this one."""
        refuse_modes_around()
        self._lowest = lowest_mode()

    def refuse_hidden(self) -> None:
        """Refuse losses that caught an error, which values of data may have caused, or that hid a
        change in place."""
        if self.error is not None:
            raise self.error
        self._tagging.counts.check()

    def has_values(self, tensor: Tensor) -> bool:
        """Whether a tensor holds values of data, or random numbers."""
        return self.tags.are_values(tensor) or self.tags.draws.has(tensor)

    def _has_own_way(
        self, func: Any, args: Args, keywords: Keywords, tensors: list[Tensor]
    ) -> bool:  # Any: as above
        """Whether a call is answered, or made in parts; some are refused in a backward pass."""
        if self.replaying:
            self._backward.refuse_draws(func, args, keywords)
        else:
            self._backward.note(tensors)
        if func in CONDITIONS and self.tags.draws.has(args[0]):
            refuse_truncation()
            self.has_tossed = True
            return bool(self.answers)
        return func is torch.broadcast_tensors and _flow.has_public_shapes(self.tags, tensors)

    def _in_own_way(self, func: Any, args: Args) -> Any:  # Any: as above
        """The answer to a condition, or several tensors that are expanded one by one."""
        if func in CONDITIONS:
            self.tags.draws.share(args[0])
            return self.answers.pop()
        several = tensors_in(args)
        shape = torch.broadcast_shapes(*(each.shape for each in several))  # type: ignore[no-untyped-call]  # PyTorch has no types
        expand: Any = Tensor.expand  # Any: as above
        return tuple(self.__torch_function__(expand, (), (each, shape)) for each in several)

    def is_weight(self, tensor: object) -> bool:
        """Whether a tensor is a trainable parameter, or derives from some and from no data."""
        return id(tensor) in self.weights

    def stand_in(self, value: Any) -> Any:  # Any: any argument
        """A detached copy of a weight, so that the backward pass stops there; else the value."""
        return value.detach().requires_grad_() if self.is_weight(value) else value

    def saved(self, data: Tensor) -> Callable[[], Tensor]:
        """A function that returns the data later, and refuses if they were changed in place."""
        version = data._version  # noqa: SLF001  PyTorch has no public name for it
        self._unseen.note_saved(data)

        def give_back() -> Tensor:
            if data._version != version:  # noqa: SLF001
                of_shape = "" if self.hides_shapes else f" of shape {tuple(data.shape)}"
                raise Refused(
                    f"data{of_shape} was changed in place after a layer had used it; call the "
                    "function that makes a new tensor instead"
                )
            return data.detach()

        return give_back

    def otherwise(self, function: Function, args: Args, keywords: Keywords) -> Any:
        """Call a function by the rule for functions without one."""
        return self.rules.otherwise(self, function, args, keywords)

    def call(self, function: Function, *args: Any, **keywords: Any) -> Tensor:
        """The function's result on stand-ins of its arguments; partial views are copied."""
        given = {key: self.stand_in(value) for key, value in keywords.items()}
        result: Tensor = function(*map(self.stand_in, args), **given)
        is_whole = result._base is None or _in_order(result)  # noqa: SLF001  as in `_whole`
        return result if is_whole else result.clone()

    def note(
        self, result: Tensor, *makes: tuple[Any, Callable[[Tensor], PerExampleGradients]]
    ) -> None:
        """Record a use of each weight in ``makes``: pairs of a weight and a function from the
        result's gradient to per-example gradients. Pairs without a weight are left out."""
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

    def refuse_other_rows(self, data: Tensor, *weights: object, least: int = 1) -> None:
        """Refuse data without rows in the first dimension, or with too few dimensions."""
        if data.dim() < least or data.shape[0] != self.rows:
            of_shape = "" if self.hides_shapes else f" of shape {tuple(data.shape)}"
            raise self.refused(*weights, why=f"gets data{of_shape}", mend=KEEP_FIRST)

    def refuse_mixed_losses(self, losses: Tensor) -> None:
        """Refuse losses unless row i is example i's by structure, or they depend on no data."""
        # 1. random numbers
        if self.tags.draws.are_used_by_some:
            raise Refused(
                "several examples, but not all, use the same random numbers; draw them for each "
                "example, as by torch.rand(len(x)), or once for all"
            )
        if self.tags.draws.are_divided:
            raise Refused(
                "some random numbers belong to single examples and are used by all as well; draw "
                "them apart"
            )
        if self.tags.draws.has(losses) and not _flow.has_own_draws(self.tags, losses):
            raise Refused(
                "losses depend on no data, but on random numbers that can't be credited to single "
                "examples; draw them for each example, as by torch.rand(len(x))"
            )
        self._backward.note([losses])
        self.tags.draws.share(losses)  # the same for all, if they have no rows
        # 2. rows
        tag = self.tags.of(losses)
        if isinstance(tag, ExampleRows) and tag.layout.is_plain:
            return
        if tag is None and self.is_shared(losses):
            return
        if isinstance(tag, (ExampleRows, OneExample)):
            raise Refused(
                "losses are of rows that were picked or put in another order: return one loss for "
                "each example, in their order"
            )
        after = f"were made by {tag.by}" if isinstance(tag, UntrackedRows) else "were computed"
        mend = tag.mend if isinstance(tag, UntrackedRows) else ""
        raise Refused(
            f"the loss of one example depends on others, or may: losses {after}; {mend or _MEND}"
        )

    def refused_change(self, function: Any, *weights: object) -> Refused:  # Any: as above
        """The error for a function that changes its argument in place."""
        return self.refused(
            *weights,
            why=f"is used by {function.__name__}, which changes its argument in place",
            mend="call the function that makes a new tensor instead",
        )

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of parameters and buffers, by identity: for errors only."""
        named: dict[str, Tensor] = {**dict(self._model.named_buffers()), **self._parameters}
        return {id(tensor): name for name, tensor in named.items()}

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

    def watch_backward(self, losses: Tensor) -> None:
        """Check what users' functions return in the backward pass that follows."""
        self._backward.watch(losses)

    def ask_dispatcher(self, around: Callable[[], AbstractContextManager[object]]) -> None:
        """Enter this around users' functions in the backward pass."""
        self._backward.around = around

    def _derives(self, func: Any, args: Args, tensors: list[Tensor]) -> bool:
        """Whether a call's result derives from weights alone.

        A part of them may be picked by the place of a loop, such as of each expert in turn.
        """
        if all(self.is_shared(each) for each in tensors):
            return True
        if func is not Tensor.__getitem__ or not self.is_shared(args[0]):
            return False
        tags = (self.tags.of(each) for each in tensors[1:] if not self.is_shared(each))
        return all(isinstance(tag, UntrackedRows) and tag.is_place for tag in tags)

    def follow(  # noqa: PLR0917  # what a call is made of
        self, func: Any, tensors: list[Tensor], args: Args, keywords: Keywords, result: object
    ) -> None:
        """Tag a result, or record that it is the same for all data."""
        self._tagging.follow(func, tensors, args, keywords, result)

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
    leaves = (getattr(node, "variable", None) for node in nodes(derived))
    return [*{id(one): one for one in leaves if one is not None}.values()]
