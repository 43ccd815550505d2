"""What a forward pass does with trainable parameters, noted call by call.

`Capture` is a mode of PyTorch that sees every function the user's code calls, whatever module it
calls it from. It notes which part of each tensor is which example's (`discreet.train._tags`). A
call that takes a trainable parameter together with data goes to that function's
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
from discreet.train import _flow
from discreet.train._arranged import KEEP_FIRST, ruled
from discreet.train._tags import OUTSIDE, Alone, Layout, Lost, Rows, Tags

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
    """One use of weights: a gradient of `target`, in this shape, makes a piece of each one's, of
    rows of this layout, or of examples."""

    target: Tensor | GradientEdge
    shape: torch.Size
    makes: tuple[tuple[Tensor, Callable[[Tensor], Piece]], ...]
    layout: Layout | None = None


class Rule(Protocol):
    """How a function's use of weights is noted; returns what the function returns."""

    def __call__(
        self, capture: "Capture", function: Callable[..., Any], args: Args, keywords: Keywords, /
    ) -> Any:  # Any: what the function returns
        """Call the function with stand-ins, and note each weight's use."""
        ...


Features = tuple[str, int, Callable[[Args, Keywords], int]]


@dataclass(frozen=True, slots=True)
class Rules:
    """Each function's rule, and what rules need to know of examples.

    Attributes:
        of: each function's rule.
        otherwise: the rule of all others.
        features: of functions that leave all dimensions but the last ones to themselves: the name
            and place of their data among the arguments, and how many last dimensions there are.
        broadcast: functions that broadcast what they are given.
        products: functions with a rule for examples in the first dimension only; those with
            examples in another one go to the rule of all others.
        elsewhere: functions with examples in other dimensions than the first: which data has them
            where.
        always: functions of which every call goes to its rule.
    """

    of: Mapping[Callable[..., Any], Rule]
    otherwise: Rule
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
_LIKE_OTHERS = frozenset(
    {Tensor.to, Tensor.type_as, Tensor.expand_as, Tensor.view_as, Tensor.reshape_as}
)
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
        batch: object = None,
        hides_shapes: bool = False,
    ) -> None:
        super().__init__()
        self.examples, self.hides_shapes = examples, hides_shapes
        self.rows = examples  # of the data that a rule has before it
        self.dim = 0  # where these rows are, from the end, for rules that broadcast
        self.layout: Layout | None = None  # whose these rows are, if row i is not example i's
        self.uses: list[Use] = []
        named: dict[str, Tensor] = {**dict(model.named_buffers()), **parameters}
        self.names = {id(tensor): name for name, tensor in named.items()}
        trainable = [each for each in parameters.values() if each.requires_grad]
        # by identity: parameters and what derives from them
        self.weights: dict[int, Tensor] = {id(each): each for each in trainable}
        self.packed: dict[int, PackedSequence] = {}  # by identity of their rows
        self.replaying = False  # in the backward pass: checkpointed parts are computed again
        self.pauses = False  # some part is computed without a graph, as reentrant checkpoints are
        self.rules = rules
        plain = [one for part in model.modules() for one in vars(part).values()]
        plain += [one for each in plain if type(each) is dict for one in each.values()]
        held = [one for one in plain if isinstance(one, Tensor) and not one.requires_grad]
        others = (each for each in (*named.values(), *held) if id(each) not in self.weights)
        self._constants = {id(each): each for each in others}
        self.tags = Tags(examples, batch, self.is_shared)
        self._has_given_numbers = False  # which may come back, and nobody sees whose they are
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
        if mixes and self._derives(func, args, tensors):
            result = func(*args, **keywords)
            for tensor in _tensors((result, *args[:1]) if changes_its_first(func) else (result,)):
                kind = self.weights if tensor.requires_grad else self._constants
                kind[id(tensor)] = tensor
            return result
        changed = _changed(func, args, keywords)
        before = [self.tags.of(each) for each in changed]
        if mixes:
            self._refuse_complex([each for each in tensors if id(each) in weights])
            result = ruled(self, func, args, keywords, tensors)
        elif func in self.rules.always and not self.replaying:
            result = ruled(self, func, args, keywords, tensors)
        else:
            result = func(*args, **keywords)
            self.follow(func, tensors, args, keywords, result)
        for each, tag in zip(changed, before, strict=True):
            self._change(each, tag, tensors)
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
        return self.rules.otherwise(self, function, args, keywords)

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
            self.uses.append(Use(get_gradient_edge(whole), result.shape, weights, self.layout))

    def note_own(self, weight: Tensor, own: Tensor, piece: Callable[[Tensor], Piece]) -> None:
        """A use through a tensor of its own, whose gradient PyTorch computes."""
        if not self.replaying:
            self.uses.append(Use(own, own.shape, ((weight, piece),), self.layout))

    def by_example(self, data: Tensor, *weights: object, least: int = 1) -> None:
        """Refuse data that a rule can't use: the first dimension must be that of the rows."""
        if data.dim() < least or data.shape[0] != self.rows:
            of_shape = "" if self.hides_shapes else f" of shape {tuple(data.shape)}"
            raise self.refused(*weights, why=f"gets data{of_shape}", mend=KEEP_FIRST)

    def check_losses(self, losses: Tensor) -> None:
        """Refuse losses that are as many as examples, and are other rows."""
        tag = self.tags.of(losses)
        if isinstance(tag, Alone) or (isinstance(tag, Rows) and not tag.layout.is_plain):
            raise Refused(
                "losses are of rows that were picked or put in another order: return one loss for "
                "each example, in their order"
            )

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

    def _derives(self, func: Any, args: Args, tensors: list[Tensor]) -> bool:
        """Whether its result derives from weights alone, or is a part of them that is picked by
        numbers which belong to no row."""
        if all(self.is_shared(each) for each in tensors):
            return True
        if func is not Tensor.__getitem__ or not self.is_shared(args[0]):
            return False
        others = (each for each in tensors[1:] if not self.is_shared(each))
        return all(isinstance(self.tags.of(each), (Lost, Alone)) for each in others)

    def follow(  # noqa: PLR0917  # what a call is made of
        self, func: Any, tensors: list[Tensor], args: Args, keywords: Keywords, result: object
    ) -> None:
        """Note what of a result is whose, or that it is the same for all data."""
        data = self._data_in(func, args, tensors)
        self._has_given_numbers |= bool(data) and func in _GIVES_NUMBERS
        if not data and self._makes_constants(func, tensors, result):
            for tensor in _tensors((result,)):
                self._constants[id(tensor)] = tensor
            _flow.count_on(self.tags, func, args, keywords, result)
        elif any(isinstance(self.tags.of(each), (Rows, Alone, Lost)) for each in data):
            _flow.follow(self.tags, func, args, keywords, result)
        elif self.tags.is_strict:
            for tensor in _tensors((result,)):
                self.tags.set(tensor, OUTSIDE)

    def _data_in(self, func: Any, args: Args, tensors: list[Tensor]) -> list[Tensor]:
        """Tensors that differ with the data, but those of which only shapes and types are used."""
        if func in _OF_SIZES or (func is torch.arange and len(args) == 1):
            return []
        if func in _LIKE_OTHERS and self.is_shared(args[0]):
            return []
        data = [each for each in tensors if not self.is_shared(each)]
        return [each for each in data if each is not args[0]] if func in _NEW else data

    def _makes_constants(self, func: Any, tensors: list[Tensor], result: object) -> bool:
        """Whether a function of no data gives what is the same for all data."""
        if func in _OF_NUMBERS and not tensors:  # which may be those of data
            is_one = isinstance(result, Tensor) and not result.dim()
            return is_one or not self._has_given_numbers
        return bool(tensors) or func in MAKES_CONSTANTS or func in _NEW

    def _change(self, changed: Tensor, before: object, tensors: list[Tensor]) -> None:
        """What shares memory with what was changed in place is whose that is now."""
        now = self.tags.of(changed)
        if all(map(self.is_shared, tensors)) or (now == before and now is not None):
            return
        freed = self._forget(changed)
        if self.tags.of(changed) != before:
            for other in {id(one): one for one in (*freed, *self.tags.sharing(changed))}.values():
                if other is not changed:
                    _flow.shared_now(self.tags, changed, other)

    def _forget(self, changed: Tensor) -> list[Tensor]:
        """What shares memory with it is the same for all data no longer."""
        memory = _memory(changed)
        freed = [each for each in self._constants.values() if _memory(each) == memory]
        for each in freed:
            del self._constants[id(each)]
        base = changed._base  # noqa: SLF001  as in `_whole`
        return freed if base is None else [*freed, base]

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


def _changed(func: Any, args: Args, keywords: Keywords) -> list[Tensor]:  # Any: as above
    """What a function changes in place."""
    name = getattr(func, "__name__", "")
    first = args[:1] if changes_its_first(func) or name == "__set__" else ()
    return _tensors((keywords.get("out"), *first))


def _memory(tensor: Tensor) -> int:
    """The same number for all views of the same memory."""
    if tensor.layout != torch.strided:
        return id(tensor)
    found: int = tensor.untyped_storage()._cdata  # noqa: SLF001  its identity has no other name
    return found


def changes_its_first(func: Any) -> bool:  # Any: a function of PyTorch's
    """Whether it changes its first argument in place."""
    name = getattr(func, "__name__", "")
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
