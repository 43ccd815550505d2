"""``discreet train`` runs the shipped examples; without PyTorch it says how to get it."""

from decimal import Decimal
from pathlib import Path

import pytest

from discreet.cli import _training
from tests.cli.kit import Run


@pytest.mark.parametrize("name", _training.names())
def test_every_example_runs(run: Run, name: str) -> None:
    ended = run("train", name, "--epsilon", "2", "--delta", "1e-4")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out


def test_options_reach_the_example(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decimals, so that they are exact; an epsilon of its own where none is given."""
    asked = []

    class Planted:
        @staticmethod
        def main(**given: Decimal) -> list[int]:
            asked.append(given)
            return [1, 2]

    (tmp_path / "planted.py").touch()
    (tmp_path / "__init__.py").touch()
    monkeypatch.setattr(_training, "EXAMPLES", tmp_path)
    monkeypatch.setattr(_training, "import_module", lambda name: Planted)
    ended = run("train", "planted", "--epsilon", "0.1", "--delta", "1e-4")
    assert (ended.code, ended.out, ended.err) == (0, "[1, 2]\n", "")
    run("train", "planted")
    assert asked == [
        {"epsilon": Decimal("0.1"), "delta": Decimal("1e-4")},
        {"delta": Decimal("1e-5")},
    ]
    assert _training.names() == ["planted"]
    assert _training.begun("pl") == ["planted"]
    assert _training.begun("x") == []


def test_the_help_names_examples_and_pytorch(run: Run) -> None:
    message = run("train", "--help").out
    assert "discreet[torch]" in message
    assert all(name in message for name in _training.names())


def test_other_names_are_refused(run: Run) -> None:
    ended = run("train", "circle")
    assert ended.code == 2
    assert f"'circle': there are {', '.join(_training.names())}" in ended.message


def test_a_delta_that_is_none_is_refused_with_a_good_one(run: Run) -> None:
    ended = run("train", "line", "--delta", "2")
    assert (ended.code, "such as 1e-6" in ended.message) == (2, True)


def test_without_pytorch_it_says_how_to_get_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError('private training needs PyTorch: pip install "discreet[torch]"')

    (tmp_path / "line.py").touch()
    monkeypatch.setattr(_training, "EXAMPLES", tmp_path)
    monkeypatch.setattr(_training, "import_module", missing)
    ended = run("train", "line")
    assert ended.code == 3
    assert "pip install 'discreet[torch]'" in ended.message

    def other(name: str) -> None:
        raise ImportError("another")

    monkeypatch.setattr(_training, "import_module", other)
    assert run("train", "line").code == 5
