"""Assertions about values, such as ``assert (x > 0).all()``: conditions that only raise errors.

Which outcome of a condition raises follows from the code alone. So the other outcome can be the
answer for all data: the assertion passes, and no value is read.
"""

import dis
from functools import lru_cache
from types import CodeType, FrameType

_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})
_BETWEEN = ("COMPARE_OP", "PRECALL", "CALL", "TO_BOOL")  # a truth value and the jump by it
_ALWAYS = ("JUMP", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


def passes(frame: FrameType) -> bool | None:
    """The truth value with which a condition in this frame's current instruction does not raise, or
    None if the condition decides anything else."""
    return _passes(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=1024)
def _passes(code: CodeType, at: int) -> bool | None:
    steps = [*dis.get_instructions(code)]
    places = {step.offset: n for n, step in enumerate(steps)}
    here = places.get(at, len(steps) - 1)
    while steps[here].opname in _BETWEEN:
        here += 1
    jump = steps[here]
    if not (jump.opname.startswith("POP_JUMP_") and jump.opname.endswith(("_TRUE", "_FALSE"))):
        return None
    raises_next = only_raises(steps, places, here + 1)
    if raises_next == only_raises(steps, places, places[jump.argval]):
        return None
    return jump.opname.endswith("_TRUE") == raises_next


def only_raises(
    steps: list[dis.Instruction], places: dict[int, int], start: int, *, the_same: bool = False
) -> bool:
    """Whether no path from an instruction returns or yields, nor raises another error, if it has to
    be ``the_same``."""
    ahead, known = [start], set[int]()
    while ahead:
        here = ahead.pop()
        if here in known:
            continue
        known.add(here)
        step = steps[here]
        if step.opname.startswith(("RETURN_", "YIELD_")):
            return False
        if the_same and step.opname == "RAISE_VARARGS" and step.arg:
            return False
        if step.opcode in _JUMPS:
            ahead.append(places[step.argval])
        if step.opname not in (*_ALWAYS, "RAISE_VARARGS", "RERAISE"):
            ahead.append(here + 1)
    return True
