"""``discreet price --plan``: what several questions cost together, and how often they fit."""

import json
import re
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from tests.cli.kit import DECLARE, Run

PLAN = """
table = "wages"
epsilon = 0.3
delta = 0
questions = [
    "SELECT COUNT(*) AS n FROM wages",
    "SELECT AVG(wage) AS pay FROM wages",
    "SELECT year, COUNT(*) AS n FROM wages GROUP BY year",
]
"""
FILE = Path("plan.toml")


@pytest.fixture
def declared(run: Run) -> Run:
    run(*DECLARE)
    FILE.write_text(PLAN)
    return run


def test_a_plan_counts_what_the_ledger_admits(declared: Run) -> None:
    FILE.write_text(PLAN.replace("0.3", "0.9"))
    planned = json.loads(declared("price", "--plan", "plan.toml", "--json").out)
    count = planned["admitted"]
    assert count == 2
    asked = 0
    while True:
        for one in planned["questions"]:
            ended = declared("ask", "wages", one["asked"], "--epsilon", str(one["epsilon"]))
            if ended.code:
                assert ended.code == 4
                assert asked == count
                return
        asked += 1
        left = json.loads(declared("price", "--plan", "plan.toml", "--json").out)["admitted"]
        assert left == count - asked


def test_a_plan_reads_no_data_and_makes_no_ledger(declared: Run) -> None:
    ended = declared("price", "--plan", "plan.toml")
    assert ended.code == 0
    assert "3 questions, asked as 2, cost together ε = 0.3" in ended.out
    # by Renyi divergences 7, where the sum of epsilons would allow 6
    assert "a new ledger with the limit ε = 2, δ = 1e-06 admits this plan 7 times" in ended.out
    assert not Path("wages.ledger").exists()
    declared("ask", "wages", "SELECT COUNT(*) FROM wages", "--epsilon", "1")
    ended = declared("price", "--plan", "plan.toml")
    assert re.search(r"what is left in \S*wages.ledger admits this plan 3 times", ended.out)
    assert Ledger.open("wages.ledger").spent().charges == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a plan has table, epsilon, questions"),
        ("x = ", "it can't be read"),
        (PLAN + "more = 1", "a plan has table"),
        (PLAN.replace("0.3", "nan"), "give a finite number above 0"),
        (PLAN.replace("0.3", '"a"'), "give a finite number above 0"),
        (PLAN.replace("delta = 0", "delta = 1"), "give a number from 0"),
        (PLAN.replace('"wages"', "3", 1), "the name of a declared table"),
        (PLAN.replace('"wages"', '"x"', 1), "x"),
        ('table = "wages"\nepsilon = 1\nquestions = []', "at least one"),
        ('table = "wages"\nepsilon = 1\nquestions = [1]', "a list of SQL texts"),
        ('table = "wages"\nepsilon = 1\nquestions = "x"', "a list of SQL texts"),
    ],
)
def test_a_mistake_in_the_plan_is_named(declared: Run, text: str, message: str) -> None:
    FILE.write_text(text)
    ended = declared("price", "--plan", "plan.toml")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.message


@pytest.mark.parametrize(
    "command",
    [
        ["price"],
        ["price", "Pure(1)", "--plan", "plan.toml"],
        ["price", "--plan", "missing.toml"],
        ["price", "--plan", "plan.toml", "--epsilon", "1"],
    ],
)
def test_a_wrong_command_line_is_a_mistake(declared: Run, command: list[str]) -> None:
    assert declared(*command).code == 2
