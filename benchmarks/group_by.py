"""A private group-by beside that of DuckDB without privacy: ``python -m benchmarks.group_by``."""

from benchmarks.rounds import race
from benchmarks.tables import duration, show, table

ROUNDS = 7
CASE = "count-and-mean"


def main() -> None:
    """Print both times, and on the last line their ratio."""
    found = race("group_by", ("duckdb", "discreet"), [CASE], ROUNDS)[CASE]
    made = table("median CPU time of", "DuckDB", "discreet")
    made.add_row("a row", duration(found["duckdb"]), duration(found["discreet"]))
    show(made)
    print(f"group_by: ratio to duckdb = {found['discreet'] / found['duckdb']:.1f}")


if __name__ == "__main__":
    main()
