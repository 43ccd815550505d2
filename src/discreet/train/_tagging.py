"""Tags the results of calls, and all tensors whose memory a call changed in place."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from discreet.train import _flow
from discreet.train._arguments import Args, Keywords, in_order, tensors_in
from discreet.train._in_place import changed_by, may_change, version_of
from discreet.train._shared import OF_SHAPES, SIZED, Shared
from discreet.train._tags import OUTSIDE_BATCH, Tag, Tags, UnknownOwners
from discreet.train._unseen import Unseen, in_func


class Before(NamedTuple):
    """The tensors that a call changes, by its name, and the versions of all if it has no rule."""

    changed: Sequence[tuple[Tensor, Tag | None]]
    versions: Sequence[tuple[Tensor, Tag | None, int]]


_NOTHING = Before((), ())


class Tagging:
    """Tags the tensors of one forward pass, call by call."""

    def __init__(self, tags: Tags, shared: Shared, unseen: Unseen) -> None:
        self._tags, self._shared, self._unseen = tags, shared, unseen

    def before(self, func: Any, tensors: list[Tensor], args: Args, keywords: Keywords) -> Before:
        """Note the tags of all tensors that a call may change in place."""  # Any: PyTorch's
        changed = changed_by(func, args, keywords) if keywords or may_change(func) else []
        is_known = _flow.is_known(func)
        if is_known and not changed:
            return _NOTHING
        before = [(each, self._tags.of(each)) for each in changed]
        for each in changed:
            self._tags.indices.forget(each)
        if is_known:
            return Before(before, ())
        # the name of a function without a rule may not show what it changes
        return Before(before, [(each, self._tags.of(each), version_of(each)) for each in tensors])

    def follow(  # noqa: PLR0917  # what a call is made of
        self, func: Any, tensors: list[Tensor], args: Args, keywords: Keywords, result: object
    ) -> None:
        """Tag a result, or record that it is the same for all data."""
        if keywords:
            args, keywords = in_order(func, args, keywords)
        data = self._shared.data_in(func, args, tensors)
        if not data and func in SIZED and any(map(self._tags.depends, tensors)):
            data = tensors  # a size depends on examples
        if not data and func in OF_SHAPES and not _flow.has_public_shapes(self._tags, tensors):
            data = tensors
        if not data and self._shared.is_constant(func, tensors, result):
            self._shared.add_constants(tensors_in((result,)))
            _flow.count_on(_flow.Call(self._tags, func, args, keywords, result))
        elif any(map(self._tags.depends, data)):
            _flow.follow(_flow.Call(self._tags, func, args, keywords, result), tensors)
        elif self._tags.is_strict:
            for tensor in tensors_in((result,)):
                self._tags.set(tensor, OUTSIDE_BATCH)

    def after(
        self, before: Before, func: Any, tensors: list[Tensor], result: object
    ) -> None:  # Any: as above
        """Tag all tensors that share memory with one that a call changed."""
        if in_func() is not None:
            self._unseen.note_wrapped(tensors, result)
        if before is _NOTHING:
            return
        self._tags.indices.end_call()
        for each, tag in before.changed:
            self._change(func, each, tag, tensors, result)
        for each, tag, version in before.versions:
            is_named = any(each is one for one, _ in before.changed)
            if version != version_of(each) and not is_named:
                self._tags.indices.forget(each)
                self._change(func, each, tag, tensors, result)

    def _change(  # noqa: PLR0917  # what a change is made of
        self, func: Any, changed: Tensor, before: object, tensors: list[Tensor], result: object
    ) -> None:
        """Tag the tensors that share memory with one that was changed in place."""
        if all(map(self._shared.has, tensors)):
            return
        is_tagged = _flow.sets_first(func) or any(one is changed for one in tensors_in((result,)))
        if not is_tagged and any(map(self._tags.depends, tensors)):
            self._tags.set(changed, UnknownOwners(_flow.name_of(func)))
        now = self._tags.of(changed)
        self._unseen.refuse_change(changed, now)
        if now == before and now is not None:
            return
        freed = self._shared.forget(changed)
        if self._tags.of(changed) != before:
            for other in {id(one): one for one in (*freed, *self._tags.sharing(changed))}.values():
                if other is not changed:
                    _flow.shared_now(self._tags, changed, other)
