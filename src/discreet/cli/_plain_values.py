"""Commands that convert the plain values of their options without pydantic.

Typer makes a validator of pydantic for each option, also for those that nobody gave. To load and
make them takes a sixteenth of the time of a short question.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import typer
from typer.core import TyperCommand, TyperGroup

Given = Any  # a text, a default, or what these become


class _ValueConversion(Protocol):
    """The conversion of an option's value, as Typer has it."""

    def coerce(self, value: Given, param: Any, ctx: Any) -> Given:  # Any: Typer's own
        """The converted value."""
        ...


@dataclass(frozen=True, slots=True)
class _PlainValues:
    """Converts texts, paths, what a parser of ours reads, and options that nobody gave; Typer
    converts everything else by ``otherwise``."""

    kind: object
    parser: Callable[[Given], Given] | None
    otherwise: Callable[[], _ValueConversion]

    def coerce(self, value: Given, param: Any, ctx: Any) -> Given:  # Any: Typer's own
        """The converted value."""
        if param.multiple or param.nargs != 1:
            return () if value is None else self.otherwise().coerce(value, param, ctx)
        if value is None:
            return None
        if self.parser is not None:
            with suppress(ValueError):  # Typer says in words what is wrong
                return self.parser(value)
        if self.kind is str and type(value) is str:
            return value
        if self.kind is Path and isinstance(value, str | Path) and _is_plain(Path(value)):
            return Path(value)
        return self.otherwise().coerce(value, param, ctx)


def _is_plain(path: Path) -> bool:
    """Whether Typer would take this path: it has no NUL, and is not there or can be read."""
    # `Path.exists` may raise
    return "\0" not in str(path) and (not os.path.exists(path) or os.access(path, os.R_OK))  # noqa: PTH110


class PlainCommand(TyperCommand):
    """A command whose plain values need no pydantic."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # Typer's own class of contexts
        """The arguments that are left over."""
        _convert_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)


class PlainGroup(TyperGroup):
    """A group of commands whose own plain values need no pydantic."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # Typer's own class of contexts
        """The arguments that are left over."""
        _convert_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)


def _convert_plainly(params: Iterable[Any]) -> None:  # Any: options and arguments of Typer
    for param in params:
        if "get_runtime_param" not in vars(param):  # else the command was called before
            param.get_runtime_param = _conversion_of(param)


def _conversion_of(param: Any) -> Callable[[], _ValueConversion]:  # Any: as above
    described = param.type_descriptor
    kind, parser = described.annotation, described.parameter_info.parser
    conversion = _PlainValues(kind, parser, param.get_runtime_param)
    return lambda: conversion
