"""The site is complete: it builds strictly, from its own files, and the reference has all names.

Zensical resolves every link and anchor of the pages and fails for a dead one. It does not check
that each page has a place in the navigation, nor which names the reference shows. These tests do.
"""

import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from inspect import isclass, isfunction, ismodule
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HEADING = re.compile(r'<h\d id="([\w.]+)" class="doc doc-heading"')
LOADS = {"img": "src", "link": "href", "script": "src", "iframe": "src", "source": "src"}
GLOSSARY = re.compile(r"^## ([^\n]+)\n\n(.+?)(?=\n\n## |\Z)", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as by `make docs`, in a temporary folder."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "tools", "src"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "zensical.toml", folder)
    built = build(folder)
    assert built.returncode == 0, built.stdout
    return folder / "site"


def test_a_dead_anchor_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "zensical.toml").write_text('[project]\nsite_name = "one page"\n')
    page = tmp_path / "docs" / "index.md"
    page.write_text("# One page\n\n[here](#one-page)\n")
    assert build(tmp_path).returncode == 0
    page.write_text("# One page\n\n[here](#another)\n")
    assert "anchor does not exist" in build(tmp_path).stdout
    assert build(tmp_path).returncode != 0


def test_each_page_has_one_place_in_the_navigation() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(leaves(nav)) == sorted(pages)


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert pages
    assert [load for page in pages for load in foreign_loads(page.read_text("utf-8"))] == []
    for sheet in site.rglob("*.css"):
        text = sheet.read_text("utf-8")
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", text), sheet


def test_a_foreign_load_is_found() -> None:
    page = '<a href="https://a.org"><img src="https://b.org/x"><script src="//c.org/y"></script>'
    assert foreign_loads(page) == ["https://b.org/x", "//c.org/y"]


def test_the_reference_has_exactly_the_public_names(site: Path) -> None:
    shown = documented(site)
    places = {
        id(getattr(import_module(module), name)) for module in shown for name in shown[module]
    }
    missing, private = [], []
    for module in sorted({*shown, *packages()}):
        public = public_names(module)
        private += [f"{module}.{name}" for name in shown.get(module, set()) - public]
        missing += [
            f"{module}.{name}"
            for name in public
            if id(getattr(import_module(module), name)) not in places
        ]
    assert not private, "the reference shows names that aren't public"
    assert not missing, "give each a docstring, and its module a page in docs/reference/"


def test_each_method_of_a_public_class_has_a_docstring() -> None:
    """The linter takes each class of a module with an underscore for private."""
    values = [
        getattr(import_module(module), name)
        for module in packages()
        for name in public_names(module)
    ]
    classes = [one for one in values if isclass(one) and one.__module__.startswith("discreet.")]
    assert len(classes) > 200
    assert sorted({text for one in classes for text in undocumented(one)}) == []


def test_a_method_without_a_docstring_is_found() -> None:
    class Inner:
        """A class."""

        def one(self) -> None:
            """Do one thing."""

        def two(self) -> None: ...

        @property
        def three(self) -> int:
            return 3

        @staticmethod
        def four() -> None: ...

        def _five(self) -> None: ...

    names = [text.rpartition(".")[2] for text in undocumented(Inner)]
    assert names == ["two", "three", "four"]


def test_the_glossary_has_thirty_words_in_order() -> None:
    words = GLOSSARY.findall((DOCS / "glossary.md").read_text(encoding="utf-8"))
    titles = [title.lower() for title, _ in words]
    assert len(titles) >= 30
    assert titles == sorted(titles)
    assert [title for title, text in words if "](" not in text] == []  # each leads somewhere


def test_each_question_of_the_overview_has_a_link() -> None:
    page = (DOCS / "which-tool.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| ") and "---" not in row]
    assert len(rows) > 20
    assert [row for row in rows if "](" not in row and "question |" not in row] == []


def test_each_extra_has_an_install_line() -> None:
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {*project["optional-dependencies"]} - {"dev"}
    assert extras == set(re.findall(r'pip install "discreet\[(\w+)\]"', page))


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def leaves(nav: object) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
        return
    assert isinstance(nav, list | dict)
    for part in nav.values() if isinstance(nav, dict) else nav:
        yield from leaves(part)


def foreign_loads(page: str) -> list[str]:
    """The resources that a browser would load from another host to show the page."""
    found: list[str] = []

    class Loads(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            address = dict(attrs).get(LOADS.get(tag, "")) or ""
            if re.match(r"(https?:)?//", address):
                found.append(address)

    Loads().feed(page)
    return found


def documented(site: Path) -> dict[str, set[str]]:
    """The names that the reference shows, by the module whose page has them."""
    modules = {
        name
        for page in (DOCS / "reference").glob("*.md")
        for name in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    shown: dict[str, set[str]] = {module: set() for module in modules}
    for page in (site / "reference").rglob("*.html"):
        for path in HEADING.findall(page.read_text(encoding="utf-8")):
            module, _, name = path.rpartition(".")
            if module in modules:
                shown[module].add(name)
    return shown


def packages() -> list[str]:
    """The packages that declare their exports by `__all__`."""
    below = pkgutil.walk_packages(discreet.__path__, "discreet.")
    names = [found.name for found in below if found.ispkg and "._" not in found.name]
    return [name for name in names if hasattr(import_module(name), "__all__")]


def undocumented(one: type) -> Iterator[str]:
    """The public methods and properties that a class defines without a docstring."""
    for name, member in vars(one).items():
        is_property = isinstance(member, property)
        function = member.fget if is_property else getattr(member, "__func__", member)
        if name[0] != "_" and (is_property or isfunction(function)) and not function.__doc__:
            yield f"{one.__module__}.{one.__qualname__}.{name}"


def public_names(module: str) -> set[str]:
    """The names in `__all__`; without it, the functions and classes that the module defines."""
    found = import_module(module)
    defined = [
        name
        for name, value in vars(found).items()
        if callable(value) and getattr(value, "__module__", "") == module
    ]
    names = getattr(found, "__all__", defined)
    return {name for name in names if name[0] != "_" and not ismodule(getattr(found, name))}
