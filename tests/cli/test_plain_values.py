"""Values that commands convert without pydantic are those that Typer makes of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer._coercion import build_runtime_param
from typer.main import get_command

from discreet.cli import app
from discreet.cli._plain_values import PlainCommand, PlainGroup, _conversion_of

Param = Any  # an option or argument of Typer
TEXTS = ["", "a", " a ", "0.5", "1e-6", "0", "1", "-1", "nan", "true", "laplace", "a" * 201, "."]


def commands(command: Any) -> Iterator[Any]:  # Any: commands and groups of Typer
    """A command, and all below it."""
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from commands(one)


def found(conversion: Any, value: object, param: Param, context: Any) -> tuple[object, ...]:
    """The type and value, or the type and text of the error."""
    try:
        made = conversion.coerce(value, param, context)
    except Exception as error:  # noqa: BLE001  # any kind is compared
        return type(error), str(error)
    return type(made), repr(made)  # NaN differs from itself


def test_each_option_of_each_command_is_converted_as_typer_does() -> None:
    """Also what nobody gave, and what was given several times."""
    seen = 0
    for command in commands(get_command(app)):
        context = command.context_class(command, info_name=command.name)
        for param in command.get_params(context):
            own = _conversion_of(param)()
            typers = build_runtime_param(param.type_descriptor)
            values: list[object] = [None, param.default, *TEXTS, ("a", "1"), ()]
            for value in values:
                assert found(own, value, param, context) == found(typers, value, param, context), (
                    f"{command.name} {param.name} {value!r}"
                )
                seen += 1
    assert seen > 1000


def test_paths_are_refused_as_typer_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is there and can't be read, a link without an end, and a text that is no path."""
    (tmp_path / "there").touch()
    (tmp_path / "link").symlink_to(tmp_path / "link")
    monkeypatch.setattr("os.access", lambda *_: False)
    command = get_command(app).commands["ask"]  # type: ignore[attr-defined]  # it is a group
    param = next(one for one in command.params if one.name == "receipt")
    typers, own = build_runtime_param(param.type_descriptor), _conversion_of(param)()
    for name in ("there", "missing", "link", "a\0b"):
        value = str(tmp_path / name)
        assert found(own, value, param, None) == found(typers, value, param, None)


def test_every_command_and_group_converts_plainly() -> None:
    for command in commands(get_command(app)):
        if command.name not in ("ledger", "audit"):  # groups without options
            assert isinstance(command, PlainCommand | PlainGroup), command.name
