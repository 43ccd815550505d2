"""The pages are correct: examples run, commands end as shown, links have targets.

The ``python`` and ``console`` blocks of a page run in order, in one empty folder. Its ``python``
blocks share their names. A number at the start of a comment behind an expression is the
expression's value. In a ``console`` block each line after ``$ `` runs; lines after ``> `` continue
it. The exit code must be 0, or the one in the block's title: ``console title="exit code 4"``. The
output is compared if the title is ``exact output``. For a ``make`` command only the target is
checked. Other blocks (``sh``, ``text``, ``toml``) do not run.
"""

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import dedent

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tests import warm

ROOT = Path(__file__).parents[1]
RUN = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
READ = [*RUN, *sorted(ROOT.glob("C*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]
SOURCE = ROOT / "src" / "discreet"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOT_RUN = "# not run by the tests:"  # in an example, with the reason behind it

FENCE = re.compile(r"^([ ]*)```(\w+)([^\n]*)\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^\s*# (-?\d+(?:\.(\d+))?)(…?)(?=[,:;]|$)")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
PARTS = "accounting|audit|cli|ledger|local|mechanisms|noise|plots|query|tests|tools|train"
PLACE = re.compile(rf"`((?:{PARTS})/[\w/]+\.py)`(?:: `([\w.]+)`)?")
DOTTED = re.compile(r"`(discreet(?:\.(?!toml|owner)\w+)+)`")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its title if it has one, its text and first line."""

    language: str
    title: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, and the output shown below it."""

    line: str
    output: str


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # Lightning causes it
@pytest.mark.parametrize("page", RUN, ids=relative)
def test_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.parametrize("page", READ, ids=relative)
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


@pytest.mark.parametrize("page", READ, ids=relative)
def test_places_in_the_source_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        pytest.skip("it names places of earlier versions, too")
    assert list(missing_places(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`train/_run.py` and `tests/test_docs.py`", []),
        ("`train/nothing.py`", ["train/nothing.py"]),
        ("(`query/_table.py`: `Table`, `_ready`)", []),
        ("`query/_table.py`: `gone`", ["query/_table.py: gone"]),
        ("| charge | `mechanisms/_door.py`: `Door.charge` |", []),
        ("`discreet.accounting._theorems`, `discreet.Table`", []),
        ("`discreet.accounting.theorems`", ["discreet.accounting.theorems"]),
    ],
)
def test_a_missing_place_is_found(text: str, missing: list[str]) -> None:
    assert list(missing_places(text)) == missing


def missing_places(text: str) -> Iterator[str]:
    """Files, names behind a file, and dotted names that do not exist in the source."""
    for file, name in PLACE.findall(text):
        path = next((at / file for at in (SOURCE, ROOT) if (at / file).is_file()), None)
        if path is None:
            yield file
        elif name and not re.search(rf"(def|class) {name.rpartition('.')[2]}\b", path.read_text()):
            yield f"{file}: {name}"
    for dotted in DOTTED.findall(text):
        if not is_there(dotted):
            yield dotted


def is_there(dotted: str) -> bool:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        with suppress(ImportError):
            found: object = importlib.import_module(".".join(parts[:length]))
            return all((found := getattr(found, part, None)) is not None for part in parts[length:])
    return False


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "example",
    [
        # its two lines print what tests/train/test_examples.py computes on fewer records
        pytest.param(path, marks=pytest.mark.long if path.stem == "train_finetuning" else ())
        for path in EXAMPLES
    ],
    ids=relative,
)
def test_examples_run(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, which has loaded what they need; commands come from the warm server."""
    if NOT_RUN in example.read_text(encoding="utf-8"):
        pytest.skip("the example says so")
    program = Path(warm.command())
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setattr(sys, "argv", [str(example)])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")


def test_every_command_and_option_has_its_place() -> None:
    from discreet.cli import app

    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    said = spoken(get_command(app))
    assert [words for words in said if not re.search(rf"{re.escape(words)}(?![\w-])", page)] == []


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n```\n\n```python\nassert x == 1\n```",
        "```python\nopen('a.txt', 'w').close()\n```\n\n```console\n$ ls a.txt\nanything\n```",
        '```console title="exit code 3"\n$ exit 3\n```',
        '```console title="exact output"\n$ echo a && \\\n> echo b\na\nb\n$ echo c\nc\n```',
        "```console\n$ make test\n```",
        "1. first\n\n   ```python\n   x = 1\n   ```\n",
        "```python\n2 / 3  # 0.67: two thirds\n2 / 3  # 0.66…, cut off\n5  # 5\n5  # 6 or so\n```",
        "```sh\nexit 1\n```",
    ],
)
def test_a_good_page_passes(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(written(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "```python\nassert False\n```",
        "  ```python\n  assert False\n  ```",
        "```python\n2 / 3  # 0.66: cut off\n```",
        "```python\n2 / 3  # 0.67…, rounded\n```",
        "```python\nx = 5\nx + 0.1  # 5\n```",
        "```python\n(5,)  # 5: of another kind\n```",
        "```console\n$ exit 3\n```",
        '```console title="exit code 3"\n$ exit 4\n```',
        '```console title="exact output"\n$ echo one\ntwo\n```',
        "```console\n$ make gold\n```",
        "```console\nan output, and no command\n```",
        "```console exit=3\n$ exit 3\n```",
    ],
)
def test_a_bad_page_fails(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        run_page(written(tmp_path, text))


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = written(tmp_path, "[a](page.md#top) [b](https://a.org/x) [c](#top) [d](gone.md)")
    assert dead_links(page) == ["gone.md"]


def written(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def run_page(page: Path) -> None:
    """Run the page's blocks in the current folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            run_python("\n" * block.line + block.text, str(page), names)  # on the page's lines
        elif block.language == "console":
            run_console(block)


def run_python(code: str, page: str, names: dict[str, object]) -> None:
    """Run the code, and compare the values of expressions with the numbers behind them."""
    lines = code.encode().splitlines()
    for part in ast.parse(code, page).body:
        if not isinstance(part, ast.Expr):
            exec(compile(ast.Module([part], []), page, "exec"), names)
            continue
        value = eval(compile(ast.Expression(part.value), page, "eval"), names)
        behind = lines[(part.end_lineno or 0) - 1][part.end_col_offset :].decode()
        if value is not None and (shown := SHOWN.match(behind)):
            assert is_shown_as(value, shown), f"{page}:{part.lineno}: {value!r}, not {shown[1]}"


def is_shown_as(value: object, shown: re.Match[str]) -> bool:
    """Whether the value is this number, rounded to its digits; with … behind them, cut off."""
    assert isinstance(value, int | float | Fraction), f"{value!r} is no number, as {shown[1]} is"
    off, last = float(value) - float(shown[1]), 10.0 ** -len(shown[2] or "")
    return 0 <= off < last if shown[3] else abs(off) <= (0.5001 * last if shown[2] else 0)


def run_console(block: Block) -> None:
    code = re.fullmatch(r"exit code (\d+)", block.title)
    expected = int(code[1]) if code else 0
    found = list(commands(block.text))
    assert found, f"line {block.line}: a console block without a command"
    for command in found:
        if command.line.startswith("make "):
            assert set(command.line.split()[1:]) <= TARGETS, command.line
            continue
        ran = subprocess.run(
            command.line,
            shell=True,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ran.returncode == expected, f"$ {command.line}\n{ran.stdout}"
        if block.title == "exact output":
            assert ran.stdout.rstrip() == command.output.rstrip()


def environment() -> dict[str, str]:
    """The commands of this environment first, and plain output."""
    folders = [str(Path(warm.command()).parent), str(Path(sys.executable).parent)]
    path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}


def blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        _, language, option, body = found.groups()
        line = text.count("\n", 0, found.start(4))
        title = re.fullmatch(r' title="([^"]+)"|', option)
        assert title, f"line {line}: the site would not show a fence with {option.strip()!r}"
        yield Block(language, title[1] or "", dedent(body), line)


def commands(text: str) -> Iterator[Command]:
    """Each command with the output shown below it, up to the next command."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = part.splitlines()
        more = next((n for n, line in enumerate(rest) if not line.startswith("> ")), len(rest))
        line = "\n".join([first, *(line.removeprefix("> ") for line in rest[:more])])
        yield Command(line, "\n".join(rest[more:]))


def dead_links(page: Path) -> list[str]:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(prose) if not (page.parent / link).exists()]


def spoken(command: object, name: str = "discreet") -> Iterator[str]:
    """All commands and options that a user may type."""
    assert isinstance(command, TyperCommand | TyperGroup)
    yield name
    for parameter in command.params:
        yield from (word for word in parameter.opts if word.startswith("--"))
    if isinstance(command, TyperGroup):
        for short, inner in command.commands.items():
            yield from spoken(inner, f"{name} {short}")
