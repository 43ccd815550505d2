"""Notebooks in examples/ run from the first cell to the last, and each shown value has a form."""

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(notebook: Path) -> list[dict[str, Any]]:  # Any: JSON
    found = json.loads(notebook.read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    return [cell for cell in found["cells"] if cell["cell_type"] == "code"]


def shown(source: str, names: dict[str, Any]) -> object:  # Any: the notebook's variables
    """Run a cell; the value of its last line, if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)  # our own file
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # the same


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    pyplot.close("all")  # those of other tests
    names: dict[str, Any] = {"__name__": "__main__"}  # Any: the notebook's variables
    for cell in cells(notebook):
        value = shown("".join(cell["source"]), names)
        kinds = {kind for output in cell["outputs"] for kind in output.get("data", {})}
        if value is not None:
            assert "text/plain" in kinds
            assert repr(value)
        if hasattr(value, "_repr_html_"):
            assert "text/html" in kinds
            assert "<" in value._repr_html_()
        assert bool(pyplot.get_fignums()) == ("image/png" in kinds)
        pyplot.close("all")


def test_the_explorers_sentences_are_todays(capsys: pytest.CaptureFixture[str]) -> None:
    """A view has no chance in it, so a cell prints the same each time."""
    mpl.use("Agg")
    compared, names = 0, {"__name__": "__main__"}
    for cell in cells(ROOT / "examples" / "explorer.ipynb"):
        source = "".join(cell["source"])
        if "explore.outcome" in source:
            continue
        shown(source, names)
        stored = [one["text"] for one in cell["outputs"] if one["output_type"] == "stream"]
        assert capsys.readouterr().out == "".join(line for text in stored for line in text)
        compared += len(stored)
    pyplot.close("all")
    assert compared >= 3


def test_the_folder_has_a_notebook() -> None:
    assert NOTEBOOKS
