"""Tail inversion for laws without a closed form: doubling and bisection, with balls."""

from collections.abc import Callable

from flint import arb


def invert_tail(tail: Callable[[int], arb], uniform: arb, near: arb) -> arb:
    """The whole x such that ``uniform < tail(k)`` iff ``k < x``, for every whole k above 0.

    The tail decreases with k. The result is NaN if the precision in force does not decide. The
    search begins at ``near``, which may be wrong.
    """
    start = near.mid().floor().unique_fmpz() if near.is_finite() else None
    low = max(0, int(start or 0))
    high, step = low + 1, 1
    while (is_below := _is_below(uniform, tail(high))) is True:
        low, high, step = high, high + step, 2 * step
    while low and is_below is False and (is_below := _is_below(uniform, tail(low))) is False:
        low, high, step = max(0, low - step), low, 2 * step
    while is_below is not None and high - low > 1:
        middle = (low + high) // 2
        is_below = _is_below(uniform, tail(middle))
        low, high = (middle, high) if is_below else (low, middle)
    return arb.nan() if is_below is None else arb(high)


def _is_below(uniform: arb, tail: arb) -> bool | None:
    """Whether the number lies below the tail, or None if that is not decided."""
    if uniform < tail:
        return True
    return False if uniform >= tail else None
