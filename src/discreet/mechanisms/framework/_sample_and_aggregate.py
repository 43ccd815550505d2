"""Any function of a table, made private: computed on blocks of it, the results then aggregated."""

import hashlib
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._exact import Number
from discreet._unit import Change, Unit
from discreet.errors import InvalidArgument
from discreet.mechanisms._attempts import attempt
from discreet.mechanisms._bounded import Bounded, change_of
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._ids import plain
from discreet.mechanisms._rows import Grid
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms._silence import silent
from discreet.noise._arrays import IndexArray

T = TypeVar("T", bound=np.generic)
TableArray = npt.NDArray[T]

BASIS = "by construction: the rows of a unit are in one block"


def sample_and_aggregate(
    read: Callable[[], tuple[npt.NDArray[Any], TableArray[T]]],  # Any: ids of any kind
    function: Callable[[TableArray[T]], object],
    *,
    blocks: int,
    grid: Grid,
    default: Number,
    unit: Unit,
    name: str,
) -> Bounded[IntegerArray]:
    """The function's value on each block of the table's rows, as its place on the grid.

    ``read()`` gives each row's unit and the rows: two arrays, not lists, since what kind of array
    a list becomes depends on all of it; the rows' dtype must be the same whatever the data are. A
    row's block depends on its unit alone, by a public hash of the id (3, 3.0 and "3" are one, as
    are whole numbers that float64 can't tell apart, and all that are missing), so that one unit
    moves one value, as far as the grid goes; two, if it is replaced, since its id may be another
    then. The function is called once for each block, with copies of its rows, and may be any: what
    lies beyond the grid counts as its end, and whatever raises or is no number as the ``default``;
    warnings are not shown. It must keep nothing from one call to another, and give nothing away but
    its result: that is the caller's word. The running time is not covered.

    `MedianOfBlocks` and `MeanOfBlocks` release what comes out. Nissim, Raskhodnikova and Smith
    (2007).

    >>> ids, pay = np.arange(1000), np.linspace(3, 30, 1000)
    >>> spread = sample_and_aggregate(
    ...     lambda: (ids, pay), np.std, blocks=40, grid=Grid(0, 20, step=0.01), default=0,
    ...     unit=Unit("person"), name="spread of pay",
    ... )
    >>> spread.part.sensitivity
    Sensitivity(l0=1, l1=2000, l2_squared=4000000, linf=2000)
    """
    count = _checks.size(blocks=blocks)
    if not isinstance(grid, Grid):
        raise InvalidArgument(f"grid = {grid!r}: give a Grid, as Grid(0, 120)")
    otherwise = float(min(max(_checks.finite(default=default), grid.lower), grid.upper))
    for given in (read, function):
        if not callable(given):
            raise InvalidArgument("read, function: give functions; they run after the charge")

    def compute() -> IntegerArray:
        ids, rows = (_array(given) for given in read())
        values = [_value(function, rows[places], otherwise) for places in _split(ids, count)]
        return grid.places(np.array(values))

    moved = 1 if _is_added(unit) else 2
    return Bounded(
        compute,
        sensitivity=Sensitivity(l0=moved, linf=grid.size - 1, length=count),
        unit=unit,
        name=name,
        shape=(count,),
        basis=BASIS,
    )


def block_of(ids: npt.NDArray[Any], blocks: int) -> IndexArray:  # Any: ids of any kind
    """The number of the block, from 0, that each unit's rows go to: a hash of its id alone, and
    not of the kind of array that it is in."""
    if ids.dtype.kind in "iu":
        words = _words(ids.astype(np.float64))
    else:
        moments = ids.astype("M8[us]") if ids.dtype.kind == "M" else ids
        words = np.array([_word(plain(own)) for own in moments.tolist()], np.uint64)
    return (_mixed(words) % np.uint64(blocks)).astype(np.int64)


def _array(given: object) -> npt.NDArray[Any]:  # Any: of any kind
    if not hasattr(given, "dtype"):
        raise TypeError("read: give arrays; of lists, one row could change what kind they become")
    return np.asarray(given)


def _split(ids: npt.NDArray[Any], blocks: int) -> list[IndexArray]:
    """The rows of each block, in the table's order."""
    numbers = block_of(ids, blocks)
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, blocks)))


def _value(
    function: Callable[[TableArray[T]], object], rows: TableArray[T], otherwise: float
) -> float:
    """The function's value, whatever it does: one block's failure is no one else's matter."""

    def called(given: Any) -> float:  # Any: what is no number raises
        with silent():
            return float(function(given))  # type: ignore[arg-type]  # see above

    found = attempt(called, rows, otherwise)
    return otherwise if math.isnan(found) else found


def _is_added(unit: Unit) -> bool:
    return change_of(unit) is Change.ADD_REMOVE


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood 2014): spreads ids that follow each other."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def _words(whole: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Whole numbers from -2^63 to 2^64, modulo 2^64."""
    below = np.where(whole < 0, whole, 0.0).astype(np.int64).view(np.uint64)
    return below + np.where((whole > 0) & (whole < 2.0**64), whole, 0.0).astype(np.uint64)


def _word(own: int | str) -> int:
    """A whole number modulo 2^64, or a digest of a text."""
    if isinstance(own, int):
        return own % (1 << 64)
    return int.from_bytes(
        hashlib.blake2b(own.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )
