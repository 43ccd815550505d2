"""The order of splits for several quantiles: the middle level first, then either side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Split:
    """The split at one quantile, given by its number. It divides the rows between two earlier
    splits (`None`: the end of the grid); a ``share`` of these rows should lie below it."""

    number: int
    below: int | None
    above: int | None
    share: Fraction

    @property
    def lopsided(self) -> Fraction:
        """The move of a miss by one row, relative to a median: from 1, for a share of 1/2, to 2."""
        return 2 * max(self.share, 1 - self.share)


def splits(levels: Sequence[Fraction]) -> list[Split]:
    """One split for each level, after the splits that it lies between."""
    return list(_between(levels, None, None))


def _between(levels: Sequence[Fraction], below: int | None, above: int | None) -> Iterator[Split]:
    first = 0 if below is None else below + 1
    last = len(levels) if above is None else above
    if first == last:
        return
    number = (first + last) // 2
    low = Fraction(0) if below is None else levels[below]
    high = Fraction(1) if above is None else levels[above]
    yield Split(number, below, above, (levels[number] - low) / (high - low))
    yield from _between(levels, below, number)
    yield from _between(levels, number, above)


def depth(levels: Sequence[Fraction]) -> int:
    """The largest number of splits that one row takes part in."""
    return len(levels).bit_length()


def influences(found: Sequence[Split]) -> dict[int, dict[int, Fraction]]:
    """For each quantile, the weight of every split's error in its own error.

    If a split of share s lies between cuts with errors of e and f rows, its target has an error of
    (1 - s) e + s f rows.
    """
    all_of: dict[int, dict[int, Fraction]] = {}
    for split in found:
        mine = {split.number: Fraction(1)}
        for end, share in ((split.below, 1 - split.share), (split.above, split.share)):
            for number, weight in ({} if end is None else all_of[end]).items():
                mine[number] = mine.get(number, Fraction(0)) + share * weight
        all_of[split.number] = mine
    return all_of
