"""Tail inversion for laws without a closed form: doubling and bisection, with balls."""

from collections.abc import Callable

from flint import arb

from discreet._bisection import decided_whole


def invert_tail(tail: Callable[[int], arb], uniform: arb, near: arb) -> arb:
    """The whole x such that ``uniform < tail(k)`` iff ``k < x``, for every whole k above 0.

    The tail decreases with k. The result is NaN if the precision in force does not decide. The
    search begins at ``near``, which may be wrong.
    """

    def is_past(number: int) -> bool | None:
        """Whether the tail there is at most the number, or None if that is not decided."""
        beyond = tail(number)
        if uniform < beyond:
            return False
        return True if uniform >= beyond else None

    start = near.mid().floor().unique_fmpz() if near.is_finite() else None
    low = max(0, int(start or 0))
    high, step = low + 1, 1
    while (is_enough := is_past(high)) is False:
        low, high, step = high, high + step, 2 * step
    while low and is_enough and (is_enough := is_past(low)):
        low, high, step = max(0, low - step), low, 2 * step
    found = None if is_enough is None else decided_whole(is_past, low, high)
    return arb.nan() if found is None else arb(found)
