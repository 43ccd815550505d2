"""Look-ups in a table, one by one or summed up in bags."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train.capture import Args, Capture, Keywords
from discreet.train.rules.arguments import named
from discreet.train.rules.pieces import kept_only, scaled, squared, wide


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
    capture.by_example(places, weight)
    result = capture.call(function, **given | {"sparse": False})
    saved, padding = capture.saved(places), given.get("padding_idx")

    def piece(rows: Tensor) -> Looked:
        rows = wide(rows).reshape(capture.examples, -1, weight.shape[1])
        flat = saved().reshape(capture.examples, -1)
        return Looked(flat, _without(rows, flat, padding, weight), weight.shape[0])

    capture.note(weight, result, piece)
    return result


def embedding_bag(
    capture: Capture, _: Callable[..., Any], args: Args, keywords: Keywords
) -> Tensor:
    """Bags of equal size: places (example, time), each bag's sum or mean, weighted or not."""
    given = named(
        "input weight offsets max_norm norm_type scale_grad_by_freq mode sparse "
        "per_sample_weights include_last_offset padding_idx",
        args,
        keywords,
    )
    places, weight, mode = given["input"], given["weight"], given.get("mode", "mean")
    _refuse_what_mixes(capture, given)
    if given.get("offsets") is not None or places.dim() != 2 or mode == "max":
        raise capture.refused(
            weight,
            why="gets bags of unequal sizes by offsets, or takes their maximum",
            mend="give places as (examples, time) with padding_idx, and mode 'sum' or 'mean'",
        )
    capture.by_example(places, weight)
    padding = given.get("padding_idx")
    found = capture.call(F.embedding, places, weight)  # (example, time, feature)
    saved = capture.saved(places)
    capture.note(
        weight,
        found,
        lambda rows: Looked(
            saved(), _without(wide(rows), saved(), padding, weight), weight.shape[0]
        ),
    )
    shares = torch.ones(places.shape, dtype=found.dtype, device=found.device)
    if padding is not None:
        shares = shares.masked_fill(places == padding % weight.shape[0], 0)
    if mode == "mean":
        shares = shares / shares.sum(1, keepdim=True).clamp(min=1)
    if given.get("per_sample_weights") is not None:
        shares = shares * given["per_sample_weights"]
    return (shares[:, None] @ found).squeeze(1)  # (example, 1, time) @ (example, time, feature)


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
