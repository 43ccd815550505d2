"""Plants each known weakening in a copy of the source, and checks that its test fails.

Run as ``python -m tools.weakenings``. The list is tools/weakenings.toml. Each entry has a
description of the weakening (``says``), a text that occurs exactly once in src/discreet (``old``),
its replacement (``new``), and the test that must fail then (``test``). All tests must pass before
anything is planted.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tools" / "weakenings.toml"

COPIED = ("src", "tests", "tools", "benchmarks", "examples", "docs")
COPIED_FILES = ("pyproject.toml", "conftest.py", "README.md", "CHANGELOG.md", "Makefile")

_PASSED, _FAILED = 0, 1  # pytest's exit codes; others mean that no test gave a result
_SECONDS = 600


Texts = Mapping[Path, str]


class WrongList(Exception):
    """An entry of the list names no text or no test, or more than one."""


@dataclass(frozen=True, slots=True)
class Weakening:
    """A text of the source, its replacement, and the test that must fail then."""

    says: str
    old: str
    new: str
    test: str

    def file(self, texts: Texts) -> Path:
        """The one file that contains the old text, once; raises `WrongList` otherwise."""
        found = {file: text.count(self.old) for file, text in texts.items() if self.old in text}
        if list(found.values()) != [1]:
            places = ", ".join(f"{times} times in {file}" for file, times in found.items())
            raise WrongList(
                f"{self.says}: the old text must occur exactly once, and occurs "
                f"{places or 'nowhere'}; give the current text, with the lines around it"
            )
        [file] = found
        return file

    def planted(self, texts: Texts) -> tuple[Path, str]:
        """The file, and its text with the weakening."""
        file = self.file(texts)
        return file, texts[file].replace(self.old, self.new)


def texts_of(source: Path) -> Texts:
    """The text of each file below this folder."""
    return {file: file.read_text(encoding="utf-8") for file in sorted(source.rglob("*.py"))}


def weakenings(file: Path = LIST) -> list[Weakening]:
    """The entries of the list."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["weakening"]
    return [Weakening(**entry) for entry in entries]


def copied(target: Path) -> Path:
    """Copy the files that tests read into this folder, and return the copy of src/discreet."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, target / folder, ignore=ignored)
    for file in COPIED_FILES:
        shutil.copy(ROOT / file, target / file)
    return target / "src" / "discreet"


def run_tests(root: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run these tests on the source below this folder; the first failure ends the run."""
    options = ["-x", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def unnoticed(root: Path, source: Path, listed: list[Weakening]) -> Iterator[str]:
    """Plant one weakening after another in this copy, and yield those that no test noticed."""
    texts = texts_of(source)
    planted = [each.planted(texts) for each in listed]
    before = run_tests(root, dict.fromkeys(test for each in listed for test in each.test.split()))
    if before.returncode != _PASSED:
        raise WrongList(f"without any weakening the tests must pass:\n{before.stdout[-3000:]}")
    for each, (file, text) in zip(listed, planted, strict=True):
        file.write_text(text, encoding="utf-8")
        try:
            ran = run_tests(root, each.test.split())
        except subprocess.TimeoutExpired:
            yield f"{each.says}: {each.test} did not end within {_SECONDS} seconds"
            continue
        finally:
            file.write_text(texts[file], encoding="utf-8")
        print(
            f"{'noticed' if ran.returncode == _FAILED else 'NOT NOTICED'}: {each.says}", flush=True
        )
        if ran.returncode == _PASSED:
            yield f"{each.says}: {each.test} passes nevertheless"
        elif ran.returncode != _FAILED:
            yield f"{each.says}: {each.test} could not run:\n{ran.stdout[-3000:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant all weakenings, or those with one of the given words. The exit code is 1 if one was not
    noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.weakenings", description=__doc__)
    parser.add_argument("words", nargs="*", help="plant weakenings whose text has one of these")
    words = parser.parse_args(arguments).words
    listed = [
        each
        for each in weakenings()
        if not words or any(word in f"{each.says} {each.old} {each.test}" for word in words)
    ]
    with tempfile.TemporaryDirectory() as folder:
        wrong = list(unnoticed(Path(folder), copied(Path(folder)), listed))
    print(*wrong, sep="\n", file=sys.stderr)
    print(f"{len(listed) - len(wrong)} of {len(listed)} weakenings are noticed")
    return 1 if wrong or not listed else 0


if __name__ == "__main__":
    sys.exit(main())
