"""Notices random numbers that no rule records, by the states of PyTorch's generators.

Such numbers don't belong to single examples: all share them. They come from tensors outside the
model, from masks of whole channels, or from functions without a rule. A state that changes between
two calls was set by the user, or numbers were drawn where calls can't be followed: then numbers
may come twice. Reading states takes time, so this happens only before the charge.
"""

from typing import Any

from torch import Tensor

from discreet.errors import Refused
from discreet.train import _flow
from discreet.train._calls._arguments import Args, Function, Keywords, tensors_in
from discreet.train._forward._capture import Capture
from discreet.train._randomness._secret_draws import states
from discreet.train._tags._tag import ExampleRows, OneExample, UntrackedRows


class WatchfulCapture(Capture):
    """A `Capture` that compares the generators before and after each call.

    Attributes:
        has_unrecorded: whether a call drew numbers that all examples share, but recorded none.
    """

    has_unrecorded = False
    _states: list[bytes] | None = None

    def __torch_function__(
        self,
        func: Any,  # Any: a function of PyTorch's, and what it takes
        types: Any,
        args: Args = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        if self.replaying:  # a checkpoint sets the state of the forward pass
            return super().__torch_function__(func, types, args, kwargs)
        self.refuse_set_states()
        result = super().__torch_function__(func, types, args, kwargs)
        now = states()
        if now != self._states:
            self._states = now
            self.has_unrecorded |= not self._is_recorded(func, args, kwargs or {}, result)
        return result

    def refuse_set_states(self) -> None:
        """Refuse states that changed since the last call."""
        now = states()
        if self._states is not None and now != self._states:
            raise Refused(
                "the model or its losses set the state of PyTorch's generator, as "
                "torch.random.fork_rng, torch.set_rng_state and Generator.set_state do, or draw "
                "where calls can't be followed: numbers may come twice, for different examples; "
                "let the generator go on"
            )
        self._states = now

    def _is_recorded(
        self, function: Function, args: Args, keywords: Keywords, result: object
    ) -> bool:
        """Whether each number that a call drew is followed, or belongs to one example."""
        results = tensors_in((result,))
        return bool(results) and all(
            self.tags.draws.has(each) or self._is_own(function, args, keywords, each)
            for each in results
        )

    def _is_own(self, function: Function, args: Args, keywords: Keywords, result: Tensor) -> bool:
        tag = self.tags.of(result)
        if not _flow.is_random(function):
            return False
        if isinstance(tag, ExampleRows):
            call = _flow.Call(self.tags, function, args, keywords, result)
            return _flow.has_own_numbers(call, tag)
        return isinstance(tag, (OneExample, UntrackedRows))  # unknown owners are refused
