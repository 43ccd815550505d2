"""Outputs of a mechanism as arrays: one label for each output, and the numbers inside it.

Everything about an output depends on this output alone, and not on the others that were drawn with
it: only then are labels and scores of independent outputs independent. One output may decide the
type of a whole array, so numbers in arrays are compared by their values, as floats. A label is a
hash, so two different outputs may share one; an attack then loses a little power, and its bounds
stay valid.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Labels = npt.NDArray[np.int64]
NumberArray = npt.NDArray[np.float64]
_Real = bool | int | float | np.bool_ | np.integer | np.floating

_REAL = "biuf"  # kinds of arrays of real numbers
_MOST_NUMBERS = 64  # of one output
_LONGEST = 50
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs as arrays: ``labels`` of shape (output,), ``structures`` of the same shape, and
    ``numbers`` of shape (output, place).

    A structure is the label of an output whose numbers are left out. A place without a number
    holds NaN.
    """

    labels: Labels
    structures: Labels
    numbers: NumberArray

    @staticmethod
    def of(drawn: Sequence[Any] | npt.NDArray[Any]) -> "Outputs":  # Any: outputs of any kind
        """From an array whose first axis counts outputs, or from a list of outputs."""
        if isinstance(drawn, np.ndarray) and drawn.dtype.kind in _REAL:
            return _of_array(drawn.reshape(len(drawn), -1))
        if isinstance(drawn, np.ndarray) and drawn.dtype.kind == "O":
            return _of_objects(drawn)
        return _of_list(list(drawn))

    def wide(self, width: int) -> NumberArray:
        """The numbers of this many places; missing ones are NaN."""
        found = np.full((len(self), width), np.nan)
        there = min(width, self.numbers.shape[1])
        found[:, :there] = self.numbers[:, :there]
        return found

    def __len__(self) -> int:
        """The number of outputs."""
        return len(self.labels)


def printed(output: Any) -> str:  # Any: any output
    """The output as it prints, shortened."""
    text = repr(output.item() if isinstance(output, np.generic) else output)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def layout(drawn: Sequence[Any] | npt.NDArray[Any]) -> str:
    """The form that outputs have together: outputs in arrays of two forms can't be compared, since
    one of them may decide the form of all."""
    if not isinstance(drawn, np.ndarray):
        return "a list"
    kind = drawn.dtype.kind
    named = {"U": "texts", "S": "bytes", **dict.fromkeys(f"{_REAL}O", "numbers or objects")}
    shape = "".join(f" × {length}" for length in drawn.shape[1:])
    return f"an array of {named.get(kind, drawn.dtype.name)}{shape}"


def _of_array(rows: npt.NDArray[Any]) -> Outputs:
    seed = np.uint64(zlib.crc32(f"{rows.shape[1]}".encode()))
    labels = np.full(len(rows), seed, dtype=np.uint64)
    numbers = rows.astype(np.float64)
    numbers[np.isnan(numbers)] = np.nan  # of whatever bits
    for column in numbers.view(np.uint64).T:  # the finalizer of splitmix64 between columns
        labels = (labels ^ column) * _MIX
        labels ^= labels >> np.uint64(29)
    structures = np.full(len(rows), seed, dtype=np.uint64)
    return Outputs(labels.view(np.int64), structures.view(np.int64), numbers[:, :_MOST_NUMBERS])


def _of_objects(drawn: npt.NDArray[Any]) -> Outputs:
    """Those of numbers only are what they would be in an array of numbers."""
    rows = drawn.reshape(len(drawn), -1)
    is_real = np.array([all(isinstance(one, _Real) for one in row) for row in rows], dtype=bool)
    floats = [[_as_float(one) for one in row] for row in rows[is_real]]
    real = _of_array(np.array(floats, dtype=np.float64).reshape(len(floats), rows.shape[1]))
    other = _of_list(list(drawn[~is_real]))
    width = max(real.numbers.shape[1], other.numbers.shape[1])
    labels, structures = np.empty((2, len(rows)), np.int64)
    numbers = np.empty((len(rows), width))
    for part, at in ((real, is_real), (other, ~is_real)):
        labels[at], structures[at], numbers[at] = part.labels, part.structures, part.wide(width)
    return Outputs(labels, structures, numbers)


def _of_list(drawn: Sequence[Any]) -> Outputs:
    plain = [_plain(output) for output in drawn]
    leaves = [list(_leaves(one)) for one in plain]
    numbers = [[leaf for leaf in one if _is_number(leaf)] for one in leaves]
    width = min(_MOST_NUMBERS, max(map(len, numbers), default=0))
    table = np.full((len(plain), width), np.nan)
    for row, found in zip(table, numbers, strict=True):
        row[: len(found)] = [_as_float(one) for one in found[:width]]
    structures = [
        hash(tuple(type(leaf).__name__ if _is_number(leaf) else repr(leaf) for leaf in one))
        for one in leaves
    ]
    labels = [hash(repr(one)) for one in plain]
    return Outputs(np.array(labels, np.int64), np.array(structures, np.int64), table)


def _plain(output: Any) -> Any:  # Any: any output
    """The output made of tuples, numbers and texts."""
    if isinstance(output, np.generic):
        return output.item()
    if isinstance(output, np.ndarray):
        return (f"array {output.shape}", *map(_plain, output.ravel().tolist()))
    if isinstance(output, Mapping):
        return ("mapping", *((_plain(key), _plain(value)) for key, value in output.items()))
    if isinstance(output, tuple | list):
        return (type(output).__name__, *map(_plain, output))
    if isinstance(output, set | frozenset):
        return ("set", *sorted(repr(_plain(item)) for item in output))
    if output is None or isinstance(output, bool | int | float | str | bytes):
        return output
    text = repr(output)
    if f"{id(output):x}" in text.lower():
        raise InvalidArgument(
            f"an output is of type {type(output).__name__}, which prints as its place in memory, "
            "not as its values: return numbers, texts, tuples or mappings"
        )
    return text


def _leaves(plain: Any) -> Iterator[Any]:  # Any: a tuple, a number or a text
    if isinstance(plain, tuple):
        yield f"{len(plain)} items"
        for item in plain:
            yield from _leaves(item)
    else:
        yield plain


def _is_number(leaf: object) -> bool:
    return isinstance(leaf, int | float) and not isinstance(leaf, bool)


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf
