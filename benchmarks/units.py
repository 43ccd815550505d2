"""Private steps of an MLP with a row or a person of 4 rows as the unit, with noise in floating
point and exact: ``python -m benchmarks.units``."""

from benchmarks.rounds import race
from benchmarks.tables import duration, show, table, times

ROUNDS = 5
CASES = "rows", "persons", "rows-exact", "persons-exact"


def main() -> None:
    """Print all times, and on the last line the ratio of person to row."""
    raced = race("units", ("discreet",), CASES, ROUNDS)
    found = {case: seconds["discreet"] for case, seconds in raced.items()}
    made = table("median CPU time of", "a unit", "of a row")
    for case, seconds in found.items():
        made.add_row(case, duration(seconds), times(seconds / found["rows"]))
    show(made)
    person, exact = found["persons"] / found["rows"], found["rows-exact"] / found["rows"]
    print(f"units: a person of 4 rows = {person:.1f} rows, exact noise = {exact:.0f} times float")


if __name__ == "__main__":
    main()
