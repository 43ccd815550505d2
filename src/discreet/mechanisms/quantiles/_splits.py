"""In which order quantiles are found: the middle one first, then those on either side of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Split:
    """One quantile, by its number, of the rows between two that were found before it (`None`: the
    end of the grid); ``share`` of those rows are to lie below it."""

    number: int
    below: int | None
    above: int | None
    share: Fraction

    @property
    def lopsided(self) -> Fraction:
        """1 for a share of one half, up to 2 for the others: what a row can do to its misses."""
        return 2 * max(self.share, 1 - self.share)


def splits(levels: Sequence[Fraction]) -> list[Split]:
    """One for each level, none before those that it lies between."""
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
    """How many splits a row can be part of, one after the other."""
    return len(levels).bit_length()


def influences(found: Sequence[Split]) -> dict[int, dict[int, Fraction]]:
    """For each quantile, how much every split's misplacement adds to its own.

    A split of share s, between cuts that are e rows and f rows off, aims (1 - s) e + s f rows off.
    """
    all_of: dict[int, dict[int, Fraction]] = {}
    for split in found:
        mine = {split.number: Fraction(1)}
        for end, share in ((split.below, 1 - split.share), (split.above, split.share)):
            for number, weight in ({} if end is None else all_of[end]).items():
                mine[number] = mine.get(number, Fraction(0)) + share * weight
        all_of[split.number] = mine
    return all_of
