"""Tags the results of calls, and all tensors whose memory a call changed in place."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from discreet.train import _flow
from discreet.train._calls._arguments import Args, Keywords, in_order, tensors_in
from discreet.train._calls._in_place import CountsOfChanges, changed_by, may_change, version_of
from discreet.train._calls._values import READS
from discreet.train._forward._shared import OF_SHAPES, SIZED, Shared
from discreet.train._forward._unseen import Unseen, in_func
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._tag import (
    OUTSIDE_BATCH,
    ExampleRows,
    OneExample,
    Tag,
    UntrackedRows,
)


class Before(NamedTuple):
    """The tensors that a call changes, by its name, and the versions of all if it has no rule."""

    changed: Sequence[tuple[Tensor, Tag | None]]
    versions: Sequence[tuple[Tensor, Tag | None, int]]


_NOTHING = Before((), ())


class Tagging:
    """Tags the tensors of one forward pass, call by call."""

    def __init__(self, tags: Tags, shared: Shared, unseen: Unseen) -> None:
        self._tags, self._shared, self._unseen = tags, shared, unseen
        self.counts = CountsOfChanges()

    def before(self, func: Any, tensors: list[Tensor], args: Args, keywords: Keywords) -> Before:
        """Note the tags of all tensors that a call may change in place."""  # Any: PyTorch's
        changed = changed_by(func, args, keywords) if keywords or may_change(func) else []
        is_known = _flow.is_known(func)
        if is_known and not changed:
            return _NOTHING
        before = [(each, self._tags.of(each)) for each in changed]
        for each in changed:
            self._tags.indices.forget(each)
            if self._shared.has(each) and any(map(self._tags.depends, tensors)):
                for one in self._shared.views_of(each):
                    self._tags.indices.note_before(one)
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
        if not data and self._shared.has_tagged_weights:
            data = [each for each in tensors if self._tags.depends(each)]
        if not data and func in SIZED and any(map(self._tags.depends, tensors)):
            data = tensors  # a size depends on examples
        if not data and func in OF_SHAPES and not _flow.has_public_shapes(self._tags, tensors):
            data = tensors
        if not data and self._shared.is_constant(func, tensors, result):
            self._shared.add_constants(tensors_in((result,)))
            call = _flow.Call(self._tags, func, args, keywords, result)
            _flow.count_on(call)
            self._note_draws(call, tensors)
        elif any(map(self._tags.depends, data)):
            drawn = self._draws_of(func, tensors, data)
            _flow.follow(_flow.Call(self._tags, func, args, keywords, result), tensors)
            for each in drawn:  # those that have not become rows of examples
                self._tags.draws.share(each)
        elif self._tags.is_strict:
            for tensor in tensors_in((result,)):
                self._tags.set(tensor, OUTSIDE_BATCH)

    def follow_weights(  # noqa: PLR0917  # as above
        self,
        func: Any,
        tensors: list[Tensor],
        args: Args,
        keywords: Keywords,
        result: object,
        changed: list[Tensor],
    ) -> None:
        """Follow random numbers in a result that derives from weights alone."""  # Any: PyTorch's
        draws = self._tags.draws
        depends = self._shared.has_tagged_weights and any(
            self._tags.depends(each) for each in tensors if self._shared.has(each)
        )
        if keywords:
            args, keywords = in_order(func, args, keywords)
        call = _flow.Call(self._tags, func, args, keywords, result)
        if depends:
            drawn = [each for each in tensors if draws.has(each)]
            _flow.follow(call, tensors)
            for each in drawn:
                draws.share(each)
            for each in tensors_in((result,)):
                self._shared.release(each)
        else:
            _flow.count_on(call)
            self._note_draws(call, tensors)
        for each in changed:
            self.counts.note(each)
            others = [one for one in self._shared.all_in_memory_of(each) if one is not each]
            draws.note_change(each, others)
            if depends:
                for one in (each, *others) if others else ():
                    self._tags.set(one, UntrackedRows("a change of memory in place"))

    def _note_draws(self, call: _flow.Call, tensors: list[Tensor]) -> None:
        """Record random numbers, and what derives from them; reads in Python use them all."""
        # 1. is there anything to record?
        draws = self._tags.draws
        is_new = _flow.draws(call.function, call.args, call.keywords)
        if not (draws or is_new):
            return
        is_read = call.function in READS
        for each in tensors if is_read or _flow.gives_sizes(call) else ():
            draws.share(each)
        if is_read:
            return
        # 2. results, and constants that no draw may have changed when the call is followed later
        changed = [call.args[0]] if _flow.sets_first(call.function) else []
        indices = self._tags.indices
        were_alike = [one for one in tensors if indices.is_alike(one)]
        results = [*changed, *tensors_in((call.result,))]
        fixed = [
            one for one in tensors if not (draws.has(one) or any(one is each for each in results))
        ]
        versions = [(one, version_of(one)) for one in fixed]

        def has_changed() -> bool:
            return any(version_of(one) != version for one, version in versions)

        def follow() -> None:
            is_changed = has_changed()
            with indices.as_then(were_alike):
                _flow.follow(call, tensors)
            for each in results if is_changed else ():
                self._tags.set(each, UntrackedRows("a constant that was changed"))

        # 3. derived numbers, then new ones
        if not (is_new and results):
            draws.note(results, tensors, follow, parts=_flow.parts_of(call))
            return
        drawn = results[0]
        was_alike = any(one is drawn for one in were_alike)

        def is_even(rows: ExampleRows) -> bool:
            with indices.as_then(were_alike):
                return not has_changed() and _flow.is_even(call, drawn, rows, was_alike=was_alike)

        draws.note(results, tensors, follow, is_even)

    def _draws_of(self, func: Any, tensors: list[Tensor], data: list[Tensor]) -> list[Tensor]:
        """The draws that a function of data takes; with data of one example, they become its own
        if they can."""  # Any: as above
        draws = self._tags.draws
        if not draws or func in _flow.LIKE_OTHERS:
            return []
        drawn = [each for each in tensors if draws.has(each)]
        found = [self._tags.of(each) for each in data] if drawn else []
        user = next((tag for tag in found if isinstance(tag, OneExample)), None)
        if user is None:
            return drawn
        for each in drawn:
            if not draws.credit(each, user):
                draws.share(each, user)
        return []

    def after(
        self, before: Before, func: Any, tensors: list[Tensor], result: object
    ) -> None:  # Any: as above
        """Tag all tensors that share memory with one that a call changed."""
        if in_func() is not None:
            self._unseen.note_wrapped(tensors, result)
        if before is _NOTHING:
            return
        for each, tag in before.changed:
            self._change(func, each, tag, tensors, result)
        for each, tag, version in before.versions:
            is_named = any(each is one for one, _ in before.changed)
            if version != version_of(each) and not is_named:
                self._tags.indices.forget(each)
                self._change(func, each, tag, tensors, result)
        self._tags.indices.end_call()

    def _change(  # noqa: PLR0917  # what a change is made of
        self, func: Any, changed: Tensor, before: object, tensors: list[Tensor], result: object
    ) -> None:
        """Tag the tensors that share memory with one that was changed in place."""
        self.counts.note(changed)
        if all(map(self._shared.has, tensors)):
            if self._tags.draws:
                self._tags.draws.note_change(changed, self._shared.views_of(changed))
            return
        self._unseen.refuse_changed_weights(self._shared.weights_in_memory_of(changed))
        is_tagged = _flow.sets_first(func) or any(one is changed for one in tensors_in((result,)))
        if not is_tagged and any(map(self._tags.depends, tensors)):
            self._tags.set(changed, UntrackedRows(_flow.name_of(func)))
        now = self._tags.of(changed)
        self._unseen.refuse_change(changed, now)
        # rows of an untracked view may be those of other examples in the tensor that it views
        may_mix = isinstance(now, UntrackedRows)
        if now == before and now is not None and not may_mix:
            return
        if now != before or may_mix:
            base = changed._base  # noqa: SLF001  PyTorch has no public name for it
            views = [*self._shared.views_of(changed), *([] if base is None else [base])]
            for other in {id(one): one for one in (*views, *self._tags.sharing(changed))}.values():
                if other is not changed:
                    _flow.shared_now(self._tags, changed, other)
        self._shared.forget(changed)
