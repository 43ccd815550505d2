"""Outputs of a mechanism under audit: of a user's function, or of a mechanism of this library."""

import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.accounting import PrivacyLoss
from discreet.audit._canonical import CanonicalOutput, failure_of, output_of
from discreet.audit._outputs import Outputs, layout
from discreet.audit._replay import Run
from discreet.errors import InvalidArgument
from discreet.mechanisms import Bounded, Door, Mechanism, release_through
from discreet.mechanisms._additive import IndependentNoise
from discreet.noise import Bits, SecureBits

V = TypeVar("V")
W = TypeVar("W")

OutputList = Sequence[Any] | npt.NDArray[Any]  # Any: outputs of any kind
_TURNS = 16
_FEWEST = 8  # outputs of a turn


@dataclass(frozen=True, slots=True)
class Draw:
    """Independent outputs of a mechanism for a dataset: ``of(dataset, count)``.

    If it ``is_single``, each output is a call of its own.
    """

    of: Callable[[Any, int], OutputList]  # Any: a dataset of the caller's own
    is_single: bool = False

    def in_turn(
        self, pair: tuple[Any, Any], is_first: npt.NDArray[np.bool_], turns: int = 1
    ) -> Iterator[tuple[OutputList, bool]]:
        """Outputs of the first dataset where ``is_first``, of the second one elsewhere, and whether
        they are of the first. Single outputs are drawn in this order, others in turns, so that the
        datasets differ neither in the time of their outputs nor in the number of earlier calls."""
        if self.is_single:
            one, other = pair
            drawn: tuple[list[Any], list[Any]] = [], []
            for first in is_first.tolist():
                drawn[first].extend(self.of(one if first else other, 1))
            yield from ((outputs, bool(at)) for at, outputs in enumerate(drawn) if outputs)
            return
        is_next = bool(is_first[:1].any())
        for turn in np.array_split(is_first, max(1, min(turns, len(is_first) // _FEWEST))):
            for first in (is_next, not is_next):
                if count := int((turn == first).sum()):
                    yield self.of(pair[0 if first else 1], count), first
            is_next = not is_next


def outputs_of_both(
    draw: Draw, pair: tuple[Any, Any], each: int
) -> tuple[tuple[Outputs, Outputs], bool]:
    """The same number of outputs of both datasets, and whether the mechanism raised each time."""
    # The same order each time, so that a mechanism with a seed has the same guesses
    order = np.random.default_rng(0).permutation(np.arange(2 * each) < each)
    found: tuple[list[Outputs], list[Outputs]] = [], []
    has_failed = True
    for drawn, is_first in draw.in_turn(pair, order, _TURNS):
        has_failed = has_failed and all(map(is_failure, drawn))
        # at once: the mechanism may fill the same array again
        found[0 if is_first else 1].append(Outputs.of(drawn))
    return (Outputs.joined(found[0]), Outputs.joined(found[1])), has_failed


@dataclass(frozen=True, slots=True)
class Repeated(Generic[V, W]):
    """Many independent draws of one mechanism for the same value, at the price of all of them."""

    mechanism: Mechanism[V, W]
    count: int

    def privacy_loss(self, bounded: Bounded[V]) -> PrivacyLoss:
        """The sum of the draws' prices."""
        return self.count * self.mechanism.privacy_loss(bounded)

    def sample(self, value: V, bits: Bits) -> OutputList:
        """The draws; for noise on one integer they are one array."""
        mechanism: Any = self.mechanism  # Any: draws of whatever kind
        if isinstance(mechanism, IndependentNoise) and isinstance(value, int):
            noisy: OutputList = mechanism.sample(np.full(self.count, value), bits)
            return noisy
        return [mechanism.sample(value, bits) for _ in range(self.count)]


def draw_of(mechanism: object) -> Draw:
    """A function that gives independent outputs for a dataset.

    A mechanism of this library takes a `Bounded` as its dataset. It draws through an insecure door
    that charges no ledger. A function takes the dataset, or the dataset and the number of outputs.
    If a function of one argument raises, the exception is an output, since an analyst sees it.
    Arrays of two layouts are refused: use one function for each pair.
    """
    if callable(getattr(mechanism, "privacy_loss", None)) and not isinstance(mechanism, type):
        if not callable(getattr(mechanism, "sample", None)):
            raise InvalidArgument(
                f"mechanism is of type {type(mechanism).__name__}, which answers many questions: "
                "give a function that opens it, asks it and returns its answers"
            )
        return _released(mechanism)  # type: ignore[arg-type]  # checked above
    if not callable(mechanism):
        raise InvalidArgument(
            f"mechanism is of type {type(mechanism).__name__}: give a function of a dataset, or "
            "of a dataset and a number of outputs, or a mechanism such as DiscreteLaplace(2)"
        )
    if _arguments(mechanism) >= 2:
        return _in_batches(mechanism)
    return Draw(lambda dataset, count: _one_by_one(mechanism, dataset, count), is_single=True)


def _released(mechanism: Mechanism[Any, Any]) -> Draw:
    def draw(bounded: Any, count: int) -> OutputList:  # Any: a Bounded, checked by the door
        run = Run()
        door = Door(run, SecureBits(), run)
        drawn: OutputList = release_through(door, bounded, Repeated(mechanism, count)).value
        return drawn

    return Draw(draw)


def _arguments(function: Callable[..., object]) -> int:
    """The number of arguments that must be given by place."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return 1
    by_place = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(one.kind in by_place and one.default is one.empty for one in parameters)


def _in_batches(mechanism: Callable[..., object]) -> Draw:
    known: set[str] = set()

    def draw(dataset: Any, count: int) -> OutputList:  # Any: theirs
        try:
            found = mechanism(dataset, count)
        except SystemExit as error:
            raise _stopped(error) from error
        except Exception as error:
            raise InvalidArgument(
                f"the mechanism raised {located(error)}; a function of the dataset alone may "
                "raise, and this is then an output"
            ) from error
        drawn = _of_length(found, count)
        known.add(layout(drawn))
        if len(known) > 1:
            raise InvalidArgument(
                f"the mechanism returned {' and '.join(sorted(known))} for one pair of datasets. "
                "An output must not depend on others that are drawn with it, and one output may "
                "decide the type or the width of an array: return a list of outputs"
            )
        return drawn

    return Draw(draw)


def _of_length(drawn: object, count: int) -> OutputList:
    found = len(drawn) if isinstance(drawn, Sequence | np.ndarray) else None
    if found != count or isinstance(drawn, str | bytes):
        raise InvalidArgument(
            f"the mechanism was called with a dataset and the number {count}, and returned "
            f"{type(drawn).__name__} of {found} items: return a list or an array of {count} "
            "outputs, or take the dataset alone and return one output"
        )
    return drawn  # type: ignore[return-value]  # checked above


def _one_by_one(
    mechanism: Callable[[Any], Any], dataset: Any, count: int
) -> OutputList:  # Any: theirs
    drawn: list[CanonicalOutput] = []
    for _ in range(count):
        try:
            found = mechanism(dataset)
        except (ImportError, SystemExit) as error:  # a fault of the set-up, and no output
            raise _stopped(error) from error
        except Exception as error:  # noqa: BLE001  # part of what the analyst sees
            drawn.append(failure_of(error))
        else:
            drawn.append(output_of(found))
    return drawn


def is_failure(output: object) -> bool:
    """Whether the output is an exception that the mechanism raised."""
    return isinstance(output, CanonicalOutput) and output.is_failure


def _stopped(error: BaseException) -> InvalidArgument:
    return InvalidArgument(f"the mechanism stopped: {located(error)}")


def located(error: BaseException) -> str:
    """The type and the text of an error, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", at {frames[-1].filename} line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
