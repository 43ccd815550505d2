"""Sample and aggregate: any function, computed on blocks of a table."""

import hashlib
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from discreet import _checks
from discreet._arrays import IndexArray
from discreet._exact import Number
from discreet._unit import Unit
from discreet.errors import InvalidArgument
from discreet.mechanisms._attempts import attempt
from discreet.mechanisms._bounded import Bounded, tables_of
from discreet.mechanisms._fixed_point import IntegerArray
from discreet.mechanisms._ids import plain
from discreet.mechanisms._rows import Grid
from discreet.mechanisms._sensitivity import Sensitivity
from discreet.mechanisms._silence import silent
from discreet.mechanisms.quantiles._column import checked_grid

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

    ``read()`` returns the ids of the rows' units and the rows, as two arrays. Lists are refused:
    a single row could decide the dtype of an array made from a list. The dtype must not depend on
    the data.

    A row's block depends on its unit only, by a public hash of the id. The ids 3, 3.0 and "3" are
    the same; so are integers that float64 can't distinguish, and all missing ids. So one unit moves
    one value, at most over the whole grid. A replaced unit moves two values, since its id may
    change.

    The function is called once for each block, with copies of its rows. Values beyond the grid
    become its end. If the function raises or gives no number, the value is the ``default``.
    Warnings are not shown. The caller asserts that the function stores nothing between calls and
    reveals nothing but its result. The running time is not covered.

    `MedianOfBlocks` and `MeanOfBlocks` release the values. Nissim, Raskhodnikova and Smith (2007).

    >>> ids, pay = np.arange(1000), np.linspace(3, 30, 1000)
    >>> spread = sample_and_aggregate(
    ...     lambda: (ids, pay), np.std, blocks=40, grid=Grid(0, 20, step=0.01), default=0,
    ...     unit=Unit("person"), name="spread of pay",
    ... )
    >>> spread.part.sensitivity
    Sensitivity(l0=1, l1=2000, l2_squared=4000000, linf=2000)
    """
    count = _checks.size(blocks=blocks)
    checked_grid(grid)
    otherwise = float(min(max(_checks.finite(default=default), grid.lower), grid.upper))
    for given in (read, function):
        if not callable(given):
            raise InvalidArgument("read, function: give functions; they run after the charge")

    def compute() -> IntegerArray:
        ids, rows = (_array(given) for given in read())
        values = [_value(function, rows[places], otherwise) for places in _split(ids, count)]
        return grid.places(np.array(values))

    return Bounded(
        compute,
        sensitivity=Sensitivity(l0=tables_of(unit), linf=grid.size - 1, length=count),
        unit=unit,
        name=name,
        shape=(count,),
        basis=BASIS,
    )


def block_of(ids: npt.NDArray[Any], blocks: int) -> IndexArray:  # Any: ids of any kind
    """The block of each unit, from 0: a hash of its id, independent of the type of the array."""
    if ids.dtype.kind in "iu":
        words = _words(ids.astype(np.float64))
    else:
        moments = ids.astype("M8[us]") if ids.dtype.kind == "M" else ids
        words = np.array([_word(plain(own)) for own in moments.tolist()], np.uint64)
    return (_mixed(words) % np.uint64(blocks)).astype(np.int64)


def _array(given: object) -> npt.NDArray[Any]:  # Any: of any kind
    if not hasattr(given, "dtype"):
        raise TypeError("read: give arrays; a single row could decide the dtype of a list")
    return np.asarray(given)


def _split(ids: npt.NDArray[Any], blocks: int) -> list[IndexArray]:
    """The rows of each block, in the table's order."""
    numbers = block_of(ids, blocks)
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, blocks)))


def _value(
    function: Callable[[TableArray[T]], object], rows: TableArray[T], otherwise: float
) -> float:
    """The function's value, or ``otherwise`` if it fails; a failure affects one block only."""

    def called(given: Any) -> float:  # Any: other types raise
        with silent():
            return float(function(given))  # type: ignore[arg-type]  # see above

    found = attempt(called, rows, otherwise)
    return otherwise if math.isnan(found) else found


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finalizer (Steele, Lea and Flood 2014), which scatters consecutive ids."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def _words(whole: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Integers from -2^63 up to 2^64, modulo 2^64."""
    below = np.where(whole < 0, whole, 0.0).astype(np.int64).view(np.uint64)
    return below + np.where((whole > 0) & (whole < 2.0**64), whole, 0.0).astype(np.uint64)


def _word(own: int | str) -> int:
    """An integer modulo 2^64, or a digest of a text."""
    if isinstance(own, int):
        return own % (1 << 64)
    return int.from_bytes(
        hashlib.blake2b(own.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )
