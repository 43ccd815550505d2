"""The list of weakenings matches the current code, and its tools report correctly."""

import ast
import importlib
from pathlib import Path

import pytest

from tools.layers import SOURCE
from tools.mutants import MODULES, WHOLE, Module, modules
from tools.weakenings import ROOT, Weakening, WrongList, texts_of, unnoticed, weakenings

LISTED = weakenings()
TEXTS = texts_of(SOURCE)
CODE = "def half(number):\n    return number / 2\n\n\nONE = 1\n"
TEST = "from toy.one import half\n\n\ndef test_half():\n    assert half(4) == 2\n"


def says(weakening: Weakening) -> str:
    return weakening.says


@pytest.mark.parametrize("listed", LISTED, ids=says)
def test_each_weakening_stands_once_and_is_code(listed: Weakening) -> None:
    file, text = listed.planted(TEXTS)
    before, after = (ast.dump(ast.parse(code)) for code in (TEXTS[file], text))
    assert before != after


@pytest.mark.parametrize("listed", LISTED, ids=says)
def test_each_weakening_names_tests_that_exist(listed: Weakening) -> None:
    for test in listed.test.split():
        file, _, name = test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name.rpartition('::')[2]}(" in text


def test_no_weakening_is_listed_twice() -> None:
    assert len({each.says for each in LISTED}) == len(LISTED)
    assert len({(each.old, each.new) for each in LISTED}) == len(LISTED)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("number / 2", "number / 3", None),
        ("ONE = 1", "ONE = 2", "passes nevertheless"),
        ("number / 2", "number / (", "could not run"),
        ("number / 2", "missing / 2", None),
    ],
)
def test_unnoticed_weakenings_are_listed(
    old: str, new: str, complaint: str | None, tmp_path: Path
) -> None:
    source = toy(tmp_path)
    found = list(unnoticed(tmp_path, source, [Weakening("weaker", old, new, "test_one.py")]))
    assert [complaint in text for text in found if complaint] == [True] * (complaint is not None)
    assert (source / "one.py").read_text() == CODE


def test_tests_that_fail_by_themselves_prove_nothing(tmp_path: Path) -> None:
    source = toy(tmp_path)
    (tmp_path / "test_one.py").write_text(TEST.replace("== 2", "== 3"))
    with pytest.raises(WrongList, match="without any weakening"):
        list(unnoticed(tmp_path, source, [Weakening("weaker", "ONE", "TWO", "test_one.py")]))


@pytest.mark.parametrize("old", ["number * 2", "number"])
def test_a_text_that_stands_nowhere_or_often_is_refused(old: str, tmp_path: Path) -> None:
    with pytest.raises(WrongList, match="must occur exactly once"):
        Weakening("weaker", old, "", "test_one.py").file(texts_of(toy(tmp_path)))


@pytest.mark.parametrize("tool", ["mutants", "weakenings"])
def test_help_starts_no_run(
    tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"tools.{tool}")
    monkeypatch.setattr("sys.argv", [tool, "--help"])
    monkeypatch.delattr(module, "copied")
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage:")


def toy(root: Path) -> Path:
    source = root / "src" / "toy"
    source.mkdir(parents=True)
    (source / "one.py").write_text(CODE)
    (root / "test_one.py").write_text(TEST)
    return source


def test_every_module_in_scope_has_tests_near_it() -> None:
    found = modules("")
    assert [module.parts for module in found if not module.tests()[0]] == []
    parts = {module.parts[0] for module in found}
    assert parts == {*WHOLE, *MODULES}
    for part, names in MODULES.items():
        inner = [".".join((*module.parts[1:], "")) for module in found if module.parts[0] == part]
        assert all(any(one.startswith(f"{name}.") for one in inner) for name in names)


def test_words_choose_modules() -> None:
    assert {module.parts[0] for module in modules("ledger,train.")} == {"ledger", "train"}
    assert modules("no such module") == []


def test_an_underscore_makes_no_difference() -> None:
    assert Module(Path("src/discreet/query/_bounding/_bounding.py")).parts[:2] == (
        "query",
        "bounding",
    )
