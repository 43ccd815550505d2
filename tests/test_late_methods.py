"""A dataclass whose methods are compiled at their first call does what any dataclass does."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from discreet._late_methods import compile_when_called


def outcome(use: Callable[[], object]) -> object:
    """The result of using a value, or the class and the text of its error."""
    try:
        return use()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


def classes() -> tuple[Any, Any]:  # Any: their methods are read
    """A frozen class with slots that inherits a field, and an ordered one that can be altered."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Base:
        self: int

    @dataclasses.dataclass(frozen=True, slots=True)
    class Frozen(Base):
        text: str = "a"
        made: list[int] = dataclasses.field(default_factory=list, compare=False)
        named: int = dataclasses.field(default=0, kw_only=True)

        def __post_init__(self) -> None:
            if self.named < 0:
                raise ValueError("below 0")

    @dataclasses.dataclass(order=True)
    class Ordered:
        x: int
        inner: object = None

    return Frozen, Ordered


def uses(frozen: Any, ordered: Any) -> list[object]:  # Any: their methods are called wrongly, too
    """The outcome of each method of both classes, of its first call and of a later one."""
    loop = ordered(1)
    loop.inner = loop
    one, same, other = frozen(1), frozen(self=1, made=[2]), frozen(2, "b", named=3)
    tried: list[Callable[[], object]] = [
        lambda: repr(other),
        lambda: repr(loop),
        lambda: (one == same, one != other, one == 1, hash(one) == hash(same)),
        lambda: {one: "found"}[same],
        lambda: setattr(one, "text", "c"),
        lambda: setattr(one, "unknown", 1),
        lambda: delattr(one, "text"),
        frozen,
        lambda: frozen(1, unknown=2),
        lambda: frozen(1, named=-1),
        lambda: frozen(1).made is frozen(1).made,
        lambda: dataclasses.replace(other, text="d"),
        lambda: copy.copy(other) == copy.deepcopy(other) == other,
        lambda: dataclasses.asdict(other),
        lambda: (ordered(1) < ordered(2), ordered(2) <= ordered(1), ordered(1) > ordered(0)),
        lambda: ordered(1) < 2,
        lambda: hash(ordered(1)),
        lambda: (frozen.__init__.__name__, frozen.__eq__.__qualname__, frozen.__match_args__),
    ]
    return [str(outcome(use)) for use in tried + tried]


def test_late_methods_do_what_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    before = uses(*classes())
    monkeypatch.setattr(dataclasses, "_create_fn", dataclasses.__dict__["_create_fn"])
    compile_when_called(__name__.partition(".")[0])
    frozen, ordered = classes()
    code = frozen.__init__.__code__
    assert uses(frozen, ordered) == before
    assert frozen.__init__.__code__ is not code  # it was late, and is compiled now


def test_other_packages_keep_their_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataclasses, "_create_fn", dataclasses.__dict__["_create_fn"])
    compile_when_called("elsewhere")
    frozen, _ = classes()
    code = frozen.__init__.__code__
    frozen(1)
    assert frozen.__init__.__code__ is code


def test_a_python_without_this_function_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dataclasses, "_create_fn")
    compile_when_called("discreet")
    assert not hasattr(dataclasses, "_create_fn")


def test_values_of_a_command_can_be_pickled() -> None:
    code = (
        "import pickle, discreet.__main__ as program, sys\n"
        "sys.argv = ['discreet', '--version']\n"
        "try:\n    program.main()\nexcept SystemExit:\n    pass\n"
        "from discreet import Limit\n"
        "sys.stdout.buffer.write(b'|' + pickle.dumps(Limit(epsilon=2)))\n"
    )
    written = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert pickle.loads(written.partition(b"|")[2]).epsilon == 2
