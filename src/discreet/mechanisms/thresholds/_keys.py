"""Private keys: their order, their part of a computation, the probability to be left out."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from flint import arb

from discreet._bisection import smallest_whole
from discreet._exact import decimal_up, precision, shown, upper_fraction
from discreet.errors import InvalidArgument
from discreet.mechanisms._bounded import Bounded, stated
from discreet.mechanisms._parts import Key, KeysPart
from discreet.noise import NoiseLaw

FOR_KEYS = Fraction(999, 1000)  # of half a delta: the rest is for the accountant's grid

_BITS = 256
_DIGITS = 12
_LEAST = Fraction(1, 10**300)
_ENOUGH = "1e-299"  # of which half, or a little less, is for the keys


def in_order(keys: Iterable[Key]) -> list[Key]:
    """The keys, sorted: integers, texts, tuples entry by entry; independent of the data's order."""
    listed = list(keys)
    kinds = set(map(type, listed))
    return sorted(listed, key=_rank if len(kinds) > 1 or tuple in kinds else None)


def keys_part(bounded: Bounded[Any]) -> KeysPart:  # Any: checked here
    """The computation's only part; raises unless it gives counts under private keys."""
    part = stated(bounded).part
    if not isinstance(part, KeysPart):
        raise InvalidArgument(
            f"{bounded.name!r} gives {part.gives}: give counts under private keys, by Bounded.keys"
        )
    return part


def loss_chance(law: NoiseLaw, threshold: int) -> Callable[[int], arb]:
    """The probability that a count with its noise stays below the threshold, for each count."""

    def chance(count: int) -> arb:
        least = count - threshold + 1  # -Z has the law of Z, and is at least this
        return law.tail(least) / 2 if least > 0 else 1 - law.tail(1 - least) / 2

    return chance


def failure_probability(law: NoiseLaw, missing: int, keys: int) -> Fraction:
    """An upper bound on the probability that the noise of at least one of ``keys`` keys is
    ``missing`` or more; docs/proofs/terms.md, Threshold. A number above 0 and up to 1."""
    with precision(_BITS):
        each = law.tail(missing) / 2 if missing > 0 else arb(1)
        found = upper_fraction(-(keys * (-each).log1p()).expm1()) if missing > 0 else Fraction(1)
    return min(decimal_up(max(found, _LEAST), _DIGITS), Fraction(1))


def least_missing(probability_of: Callable[[int], Fraction], **allowed: Fraction) -> int:
    """The smallest whole number from 1 on whose probability is at most what is allowed under this
    name; raises where that is below every probability, so that no search is endless."""
    (most,) = allowed.values()
    check_failure_probability(**allowed)
    return smallest_whole(lambda missing: probability_of(missing) <= most, 1)


def check_failure_probability(**allowed: Fraction) -> None:
    """Raise if this is below every bound of `failure_probability`."""
    for name, most in allowed.items():
        if most < _LEAST:
            raise InvalidArgument(f"{name} = {shown(most)}: give {_ENOUGH} or more")


def _rank(key: Key) -> tuple[Any, ...]:  # Any: compared with its own kind only
    if isinstance(key, tuple):
        return 2, tuple(_rank(piece) for piece in key)
    return int(isinstance(key, str)), key
