"""Frozen values whose fields are declared once: how each is converted, checked and written.

The annotation of a field names the type of the attribute and, in `Annotated`, a function that
checks the argument:

>>> @frozen
... class Noise:
...     scale: Positive  # any number above 0, held as a `Fraction`
...     length: PositiveCount = field(default=1, kw_only=True)
>>> Noise(2.5, length=3), Noise(0.1) == Noise(Fraction(1, 10))
(Noise(scale=2.5, length=3), True)
>>> Noise(-1)
Traceback (most recent call last):
    ...
discreet.errors.InvalidArgument: scale = -1: give a finite number above 0

The function is called with the field's name, as ``_checks.positive(scale=2.5)``, and its result
becomes the attribute. So one function serves many fields, and its error names the argument. If the
argument has another type than the attribute, `Converted` tells both to type checkers and editors.

Two kinds of fields are for derived values. An ``InitVar`` is an argument that is checked, given to
``__post_init__`` and not stored. ``field(init=False)`` is an attribute that ``__post_init__`` sets;
it does not count in the ``repr``, and in comparisons only on request.
"""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import InitVar
from enum import Enum
from fractions import Fraction
from typing import (
    Annotated,
    Any,
    Generic,
    NamedTuple,
    TypeVar,
    dataclass_transform,
    get_args,
    overload,
)

from discreet import _checks
from discreet._exact import Number, shown

T = TypeVar("T")
Held = TypeVar("Held", covariant=True)
Given = TypeVar("Given", contravariant=True)

_DECLARED = "__declared_fields__"


class Converted(Generic[Held, Given]):
    """The type of a field whose argument is ``Given`` and whose attribute is ``Held``.

    It is for annotations only.
    """

    def __get__(self, instance: object, owner: object) -> Held:
        """The type of the attribute, for type checkers."""
        raise NotImplementedError

    def __set__(self, instance: object, value: Given) -> None:
        """The type of the argument, for type checkers."""
        raise NotImplementedError


class _Declared(NamedTuple):
    check: Callable[..., object]
    given: object  # the type of the argument


def optional(check: Callable[..., T]) -> Callable[..., T | None]:
    """The same check, for a field that may also be ``None``."""

    def checked(**named: Any) -> T | None:  # Any: what a user gives
        ((_, value),) = named.items()
        return None if value is None else check(**named)

    return checked


Positive = Annotated[Converted[Fraction, Number], _checks.positive]
NotNegative = Annotated[Converted[Fraction, Number], _checks.not_negative]
Probability = Annotated[Converted[Fraction, Number], _checks.probability]
Delta = Annotated[Converted[Fraction, Number], _checks.delta]
Finite = Annotated[Converted[Fraction, Number], _checks.finite]
Count = Annotated[int, _checks.count]
PositiveCount = Annotated[int, _checks.positive_count]
Size = Annotated[int, _checks.size]
Text = Annotated[str, _checks.text]


def field(
    *,
    default: Any = dataclasses.MISSING,  # Any: a value that the field's check accepts
    kw_only: Any = dataclasses.MISSING,  # Any: a truth value; the class decides if it is missing
    init: bool = True,
    compare: bool | None = None,
    named: bool = True,
    brief: bool = False,
    text: Callable[[Any], str] | None = None,  # Any: the field's value
) -> Any:  # Any: type checkers take it for the field's type
    """A field with a default, or with its own place in the ``repr``.

    Without ``init`` it is no argument: the class's ``__post_init__`` derives it, and it counts in
    comparisons only with ``compare``. The ``repr`` writes ``name=value``, and only the value unless
    the field is ``named``; one that is ``brief`` is left out where it has its default. ``text``
    writes the value.
    """
    compare = init if compare is None else compare
    metadata = {"named": named, "brief": brief, "text": text or as_code}
    return dataclasses.field(
        default=default, kw_only=kw_only, init=init, compare=compare, metadata=metadata
    )


@overload
def frozen(cls: type[T]) -> type[T]: ...


@overload
def frozen(*, eq: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T] | None = None, *, eq: bool = True) -> Any:  # Any: the class or a decorator
    """Make a frozen, slotted dataclass whose fields are checked and converted as annotated.

    Fields without `Annotated` are not checked. The class's own ``__post_init__`` runs after the
    checks, on the converted fields. The ``repr`` is the value as it is written in code, unless the
    class defines another one. A subclass without fields of its own needs ``__slots__ = ()`` and no
    decorator (with a decorator, mypy takes the types of arguments for those of inherited fields).
    """
    if cls is None:
        return lambda cls: _frozen(cls, eq=eq)
    return _frozen(cls, eq=eq)


def as_code(value: object) -> str:
    """The value as it is written in code: exact numbers as decimals, members of enumerations by
    name."""
    if isinstance(value, Fraction):
        return shown(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if type(value) is tuple:
        return f"({', '.join(map(as_code, value))}{',' * (len(value) == 1)})"
    return repr(value)


def _frozen(cls: type[T], *, eq: bool) -> type[T]:
    declared: dict[str, _Declared] = {**getattr(cls, _DECLARED, {}), **_declared(cls)}
    has_own_repr = cls.__repr__ is not object.__repr__
    setattr(cls, _DECLARED, declared)
    make = dataclasses.dataclass(frozen=True, slots=True, init=False, repr=False, eq=eq)
    made = make(cls)
    setattr(made, "__init__", _constructor(made, declared))  # noqa: B010  # mypy forbids the other way
    for one in _arguments(made):
        if one.name in vars(made) and isinstance(one.type, InitVar):
            delattr(made, one.name)  # its default, which would read as an attribute
    if not has_own_repr:
        made.__repr__ = _written  # type: ignore[method-assign]  # a function is a method
    return made


def _declared(cls: type) -> dict[str, _Declared]:
    """The class's own fields that have checks. Their annotations become the types of attributes."""
    declared, annotations = {}, inspect.get_annotations(cls)
    for name, annotation in annotations.items():
        if isinstance(annotation, str):  # its check would be overlooked
            raise TypeError(f"{cls.__name__}.{name}: give annotations as types, not as texts")
        is_argument = isinstance(annotation, InitVar)
        if is_argument:
            annotation = annotation.type  # noqa: PLW2901  # of the argument
        if hasattr(annotation, "__metadata__"):  # of Annotated
            held, check = get_args(annotation)
            is_converted = getattr(held, "__origin__", None) is Converted
            held, given = get_args(held) if is_converted else (held, held)
            declared[name] = _Declared(check, given)
            annotations[name] = InitVar(held) if is_argument else held
    cls.__annotations__ = annotations
    return declared


def _constructor(cls: Any, declared: dict[str, _Declared]) -> Callable[..., None]:
    """An ``__init__`` that checks and sets each field, as fast as a hand-written one."""
    places: list[str] = []
    names: list[str] = []
    lines: list[str] = []
    unstored: list[str] = []
    given: dict[str, Any] = {"_set": object.__setattr__}  # names that the text below uses
    # 1. each argument: its place in the signature, its check, and the line that stores it
    arguments = _arguments(cls)
    for one in arguments:
        name, has_default = one.name, one.default is not dataclasses.MISSING
        (names if one.kw_only else places).append(f"{name}=_of_{name}" if has_default else name)
        given[f"_of_{name}"] = one.default
        value = name
        if name in declared:
            given[f"_check_{name}"] = declared[name].check
            value = f"_check_{name}({name}={name})"
        if isinstance(one.type, InitVar):
            unstored.append(value)
        else:
            lines.append(f"    _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(f"    self.__post_init__({', '.join(unstored)})")
    # 2. the text of the method, compiled once
    parameters = ", ".join(["self", *places, *(["*"] if names else []), *names])
    text = "\n".join([f"def __init__({parameters}):", *(lines or ["    pass"])])
    exec(text, given)  # noqa: S102  # names and checks of a class, as dataclasses do it
    made: Callable[..., None] = given["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    # 3. what help() and editors show
    made.__annotations__ = {  # for help() and editors
        one.name: declared[one.name].given if one.name in declared else _held(one)
        for one in arguments
    } | {"return": None}
    return made


def _arguments(cls: Any) -> list[dataclasses.Field[Any]]:  # Any: a dataclass, and its fields
    """The fields that are arguments of the constructor, stored or not."""
    stored = dataclasses.fields(cls)
    found = cls.__dataclass_fields__.values()
    return [one for one in found if one.init and (one in stored or isinstance(one.type, InitVar))]


def _held(one: dataclasses.Field[Any]) -> Any:  # Any: a type
    return one.type.type if isinstance(one.type, InitVar) else one.type


def _written(self: Any) -> str:  # Any: a frozen value
    parts = []
    for one in (one for one in dataclasses.fields(self) if one.init):
        value, style = getattr(self, one.name), one.metadata
        if style.get("brief") and value == _default(self, one):
            continue
        text = style.get("text", as_code)(value)
        parts.append(f"{one.name}={text}" if style.get("named", True) else text)
    return f"{type(self).__name__}({', '.join(parts)})"


def _default(self: Any, one: Any) -> object:  # Any: a frozen value and its field
    """The default value of the field's attribute."""
    declared = getattr(self, _DECLARED).get(one.name)
    return one.default if declared is None else declared.check(**{one.name: one.default})
