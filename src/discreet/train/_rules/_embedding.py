"""Look-ups in a table, one by one or summed up in bags."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._arranged import having
from discreet.train._capture import Args, Capture, Keywords
from discreet.train._rules._arguments import named
from discreet.train._rules._gradients import kept_only, scaled, squared, wide
from discreet.train._tags import Rows


@dataclass(frozen=True, slots=True)
class Looked:
    """Gradients of rows of a table that were looked up."""

    places: Tensor  # (example, time)
    rows: Tensor  # (example, time, feature)
    size: int  # of the table

    def measured(self) -> tuple[Tensor, "Looked"]:
        """Rows that one example looked up several times are added up first."""
        examples, time, features = self.rows.shape
        if time == 1:
            return squared(self.rows), self
        start = torch.arange(examples, device=self.places.device)[:, None] * self.size
        keys, segment = torch.unique(self.places + start, return_inverse=True)
        sums = self.rows.new_zeros(len(keys), features)
        sums.index_add_(0, segment.flatten(), self.rows.flatten(0, 1))
        found = self.rows.new_zeros(examples)
        return found.index_add_(0, keys // self.size, squared(sums)), self

    def part(self, start: int, stop: int) -> Tensor:
        """Tables of zeros but for what was looked up."""
        rows, places = self.rows[start:stop], self.places[start:stop]
        found = rows.new_zeros(stop - start, self.size, rows.shape[2])
        return found.scatter_add_(1, places[:, :, None].expand_as(rows), rows)

    def total(self, factors: Tensor) -> Tensor:
        """Added up in one table."""
        found = self.rows.new_zeros(self.size, self.rows.shape[2])
        rows = scaled(self.rows, factors).flatten(0, 1)
        return found.index_add_(0, self.places.flatten(), rows)

    def only(self, kept: Tensor) -> "Looked":
        """Rows that are not kept become zeros."""
        return replace(self, rows=kept_only(self.rows, kept))


def embedding(
    capture: Capture, function: Callable[..., Any], args: Args, keywords: Keywords
) -> Tensor:
    """Places (example, ...) in a table (place, feature)."""
    given = named(
        "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse", args, keywords
    )
    places, weight = given["input"], given["weight"]
    _refuse_what_mixes(capture, given)
    if not capture.is_weight(weight):
        return function(*args, **keywords)  # type: ignore[no-any-return]
    capture.by_example(places, weight)
    result = capture.call(function, **given | {"sparse": False})
    saved, padding = capture.saved(places), given.get("padding_idx")

    def piece(rows: Tensor) -> Looked:
        rows = wide(rows).reshape(capture.rows, -1, weight.shape[1])
        flat = saved().reshape(capture.rows, -1)
        return Looked(flat, _without(rows, flat, padding, weight), weight.shape[0])

    capture.note(result, (weight, piece))
    return result


def embedding_bag(
    capture: Capture, function: Callable[..., Any], args: Args, keywords: Keywords
) -> Tensor:
    """Bags, each one example's: places (example, time), or of all examples one after the other,
    from `offsets` on; each bag's sum, mean or largest, weighted or not."""
    given = named(
        "input weight offsets max_norm norm_type scale_grad_by_freq mode sparse "
        "per_sample_weights include_last_offset padding_idx",
        args,
        keywords,
    )
    places, weight = given["input"], given["weight"]
    _refuse_what_mixes(capture, given)
    shares = given.get("per_sample_weights")
    if not any(map(capture.is_weight, (weight, shares))):
        return function(*args, **keywords)  # type: ignore[no-any-return]
    is_in = torch.ones_like(places, dtype=torch.bool)
    if places.dim() == 1:
        row, is_in = _bags(capture, given)
        places = F.pad(places, (0, 1))[row]
        shares = None if shares is None else F.pad(shares, (0, 1))[row]
        given = given | {"input": places, "per_sample_weights": shares, "offsets": None}
        with having(capture, Rows(0, capture.tags.plain)):
            return _summed_up(capture, given, is_in)
    return _summed_up(capture, given, is_in)


def _summed_up(capture: Capture, given: Keywords, is_in: Tensor) -> Tensor:
    """Bags side by side: places (example, time), and which of them are in the bags."""
    places, weight, mode = given["input"], given["weight"], given.get("mode", "mean")
    shares = given.get("per_sample_weights")
    capture.by_example(places, weight, least=2)
    padding = given.get("padding_idx")
    if padding is not None:
        is_in = is_in & (places != padding % weight.shape[0])
    found = capture.call(F.embedding, places, weight)  # (example, time, feature)
    saved = capture.saved(places)
    capture.note(found, (weight, lambda rows: Looked(saved(), wide(rows), weight.shape[0])))
    if mode == "max":
        return _largest(found, is_in)
    parts = is_in.to(found.dtype)
    if mode == "mean":
        parts = parts / parts.sum(1, keepdim=True).clamp(min=1)
    if shares is not None:
        parts = parts * shares
    return (parts[:, None] @ found).squeeze(1)  # (example, 1, time) @ (example, time, feature)


def _bags(capture: Capture, given: Keywords) -> tuple[Tensor, Tensor]:
    """Where each bag's places are, one more than there are in all, and which of them are its own:
    (example, time) each."""
    starts, many = given["offsets"], len(given["input"])
    ends = F.pad(starts[1:], (0, 1), value=many)
    if given.get("include_last_offset", False):
        starts, ends = starts[:-1], starts[1:]
    sizes = ends - starts
    whose = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    if len(sizes) != capture.examples or not _are(capture, whose, many):
        raise capture.refused(
            given["weight"],
            why="gets bags of which nobody knows whose they are",
            mend="give places as (example, time), with padding_idx for what is filled up",
        )
    longest = max(1, int(sizes.max()))
    time = torch.arange(longest, device=starts.device)
    return (starts[:, None] + time).clamp(max=many), time < sizes[:, None]


def _are(capture: Capture, whose: Tensor, many: int) -> bool:
    """Whether each place is of the example whose bag it is in."""
    layout = capture.tags.plain if capture.layout is None else capture.layout
    return len(whose) == many and torch.equal(layout.whose(whose.device), whose)


def _largest(found: Tensor, is_in: Tensor) -> Tensor:
    """Of (example, time, feature) those that are largest; zeros of what has none."""
    most = found.masked_fill(~is_in[:, :, None], float("-inf")).max(1).values
    return most.masked_fill(~is_in.any(1, keepdim=True), 0)


def _without(rows: Tensor, places: Tensor, padding: int | None, weight: Tensor) -> Tensor:
    """No gradient for padding."""
    if padding is None:
        return rows
    return rows.masked_fill((places == padding % weight.shape[0])[:, :, None], 0)


def _refuse_what_mixes(capture: Capture, given: Keywords) -> None:
    for option in ("max_norm", "scale_grad_by_freq"):
        if given.get(option):
            raise capture.refused(
                given["weight"],
                why=f"has {option}, by which what others look up changes an example's gradient",
                mend=f"leave {option} out",
            )
