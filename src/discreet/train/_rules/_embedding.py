"""Look-ups in a table, single or summed in bags."""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.train._calls._arguments import Args, Function, Keywords, named
from discreet.train._forward._arranged import having
from discreet.train._forward._capture import Capture
from discreet.train._rules._elementwise import copied_per_example
from discreet.train._rules._gradients import masked_rows, scaled, squared, wide
from discreet.train._tags._tag import ExampleRows


@dataclass(frozen=True, slots=True)
class LookupGradients:
    """Gradients of a table, through the rows that each example looked up."""

    places: Tensor  # (example, time)
    outputs: Tensor  # (example, time, feature)
    size: int  # the number of the table's rows

    def squared_norms(self) -> tuple[Tensor, "LookupGradients"]:
        """If an example looked up a row several times, its gradients are summed first."""
        examples, time, features = self.outputs.shape
        if time == 1:
            return squared(self.outputs), self
        start = torch.arange(examples, device=self.places.device)[:, None] * self.size
        keys, segment = torch.unique(self.places + start, return_inverse=True)
        sums = self.outputs.new_zeros(len(keys), features)
        sums.index_add_(0, segment.flatten(), self.outputs.flatten(0, 1))
        found = self.outputs.new_zeros(examples)
        return found.index_add_(0, keys // self.size, squared(sums)), self

    def rows(self, start: int, stop: int) -> Tensor:
        rows, places = self.outputs[start:stop], self.places[start:stop]
        found = rows.new_zeros(stop - start, self.size, rows.shape[2])
        return found.scatter_add_(1, places[:, :, None].expand_as(rows), rows)

    def weighted_sum(self, factors: Tensor) -> Tensor:
        found = self.outputs.new_zeros(self.size, self.outputs.shape[2])
        rows = scaled(self.outputs, factors).flatten(0, 1)
        return found.index_add_(0, self.places.flatten(), rows)

    def masked(self, kept: Tensor) -> "LookupGradients":
        return replace(self, outputs=masked_rows(self.outputs, kept))


def embedding(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """Row numbers (example, ...) of a table (row, feature)."""
    given = named(
        "input weight padding_idx max_norm norm_type scale_grad_by_freq sparse", args, keywords
    )
    places, weight = given["input"], given["weight"]
    _refuse_what_mixes(capture, given)
    if not capture.is_weight(weight):
        return function(*args, **keywords)  # type: ignore[no-any-return]
    capture.refuse_other_rows(places, weight)
    result = capture.call(function, **given | {"sparse": False})
    saved, padding, number = capture.saved(places), given.get("padding_idx"), capture.rows

    def piece(rows: Tensor) -> LookupGradients:
        rows = wide(rows).reshape(number, -1, weight.shape[1])
        flat = saved().reshape(number, -1)
        return LookupGradients(flat, _without(rows, flat, padding, weight), weight.shape[0])

    capture.note(result, (weight, piece))
    return result


def embedding_bag(capture: Capture, function: Function, args: Args, keywords: Keywords) -> Tensor:
    """One bag for each example: row numbers (example, time), or (time,) with `offsets` of bags.

    The result is each bag's sum, weighted or not, its mean or its maximum.
    """
    given = named(
        "input weight offsets max_norm norm_type scale_grad_by_freq mode sparse "
        "per_sample_weights include_last_offset padding_idx",
        args,
        keywords,
    )
    places, weight = given["input"], given["weight"]
    _refuse_what_mixes(capture, given)
    has_own = places.dim() == 1 and capture.tags.depends(given["offsets"])
    if has_own:
        given = _by_own_bags(capture, given)
    if not any(map(capture.is_weight, (weight, given.get("per_sample_weights")))):
        return function(**given)  # type: ignore[no-any-return]
    is_in = torch.ones_like(places, dtype=torch.bool)
    if places.dim() == 1:
        row, is_in = _bags(capture, given, is_known=has_own)
        places, shares = (
            None if each is None else F.pad(each, (0, 1))[row]
            for each in (given["input"], given.get("per_sample_weights"))
        )
        given = given | {"input": places, "per_sample_weights": shares, "offsets": None}
        with having(capture, ExampleRows(0, capture.tags.plain)):
            return _summed_up(capture, given, is_in)
    return _summed_up(capture, given, is_in)


def _by_own_bags(capture: Capture, given: Keywords) -> Keywords:
    """The same call with a bag for each example, of its own rows.

    Offsets of data could put rows in another example's bag.
    """
    tag = capture.tags.of(given["input"])
    if not isinstance(tag, ExampleRows):
        return given
    whose = tag.layout.example_of_row(given["input"].device)
    order = whose.argsort(stable=True)
    counts = torch.bincount(whose, minlength=capture.examples)
    starts = F.pad(counts.cumsum(0), (1, 0))
    own = {name: given.get(name) for name in ("input", "per_sample_weights")}
    rows = {name: each[order] for name, each in own.items() if each is not None}
    offsets = starts if given.get("include_last_offset", False) else starts[:-1]
    return given | rows | {"offsets": offsets.to(given["offsets"].dtype)}


def _summed_up(capture: Capture, given: Keywords, is_in: Tensor) -> Tensor:
    """Bags from row numbers (example, time); ``is_in`` says which of them are in the bags."""
    places, weight, mode = given["input"], given["weight"], given.get("mode", "mean")
    shares = given.get("per_sample_weights")
    capture.refuse_other_rows(places, weight, least=2)
    padding = given.get("padding_idx")
    if padding is not None:
        is_in = is_in & (places != padding % weight.shape[0])
    found = capture.call(F.embedding, places, weight)  # (example, time, feature)
    saved = capture.saved(places)
    capture.note(
        found, (weight, lambda rows: LookupGradients(saved(), wide(rows), weight.shape[0]))
    )
    if mode == "max":
        return _largest(found, is_in)
    parts = is_in.to(found.dtype)
    if mode == "mean":
        parts = parts / parts.sum(1, keepdim=True).clamp(min=1)
    if shares is not None:
        parts = parts * copied_per_example(capture, shares, 2)
    return (parts[:, None] @ found).squeeze(1)  # (example, 1, time) @ (example, time, feature)


def _bags(capture: Capture, given: Keywords, *, is_known: bool) -> tuple[Tensor, Tensor]:
    """For each bag, positions in the list of row numbers, and which are the bag's own.

    (example, time) each. Positions that no bag has point behind the end of the list.
    """
    starts, length = given["offsets"], len(given["input"])
    ends = F.pad(starts[1:], (0, 1), value=length)
    if given.get("include_last_offset", False):
        starts, ends = starts[:-1], starts[1:]
    sizes = ends - starts
    whose = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)
    is_own = is_known or _matches(capture, whose, length)
    if len(sizes) != capture.examples or not is_own:
        raise capture.refused(
            given["weight"],
            why="gets bags whose examples are not known",
            mend="give row numbers as (example, time), padded with padding_idx",
        )
    longest = max(1, int(sizes.max()))
    time = torch.arange(longest, device=starts.device)
    return (starts[:, None] + time).clamp(max=length), time < sizes[:, None]


def _matches(capture: Capture, whose: Tensor, length: int) -> bool:
    """Whether each row number belongs to the example of its bag."""
    layout = capture.tags.plain if capture.layout is None else capture.layout
    return len(whose) == length and torch.equal(layout.example_of_row(whose.device), whose)


def _largest(found: Tensor, is_in: Tensor) -> Tensor:
    """The maximum over time of (example, time, feature); zeros for empty bags."""
    most = found.masked_fill(~is_in[:, :, None], float("-inf")).max(1).values
    return most.masked_fill(~is_in.any(1, keepdim=True), 0)


def _without(rows: Tensor, places: Tensor, padding: int | None, weight: Tensor) -> Tensor:
    """The rows, with zeros for padding."""
    if padding is None:
        return rows
    return rows.masked_fill((places == padding % weight.shape[0])[:, :, None], 0)


def _refuse_what_mixes(capture: Capture, given: Keywords) -> None:
    for option in ("max_norm", "scale_grad_by_freq"):
        if given.get(option):
            raise capture.refused(
                given["weight"],
                why=f"has {option}, so that other examples change an example's gradient",
                mend=f"leave {option} out",
            )
