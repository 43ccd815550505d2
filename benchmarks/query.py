"""A private group-by of 10 million rows beside SQL: ``python -m benchmarks.query``.

Goals: at most 0.4 of the time and 1.3 times the memory of SQL by hand that bounds each person's
rows, 10 times the time of DuckDB without privacy, 50 ms for a small question, and 20 ms for a
forecast.
"""

from statistics import median

from benchmarks.rounds import running, taking_turns
from benchmarks.tables import duration, show, table, times

CONTESTANTS = ("duckdb", "by_hand", "discreet")
PEERS = (
    "opendp",
    "pipeline_dp",
    "smartnoise_sql",
    "tmlt_analytics",
)  # with fewer rows, see their workers
CORES = ("one-core", "two-cores")
SMALL = ("small", "forecast")
ROUNDS = 5


def main() -> None:
    """Print CPU times and peak memory, and on the last line the ratios and the fixed cost."""
    with running("query", [*CONTESTANTS, *PEERS]) as workers:
        memory = {w.name: w.figure("peak") for w in workers if w.name in CONTESTANTS[1:]}
        found = taking_turns("query", workers, [*CORES, *SMALL], ROUNDS)
    cpu = {
        case: {name: median(seconds) for name, seconds in by_name.items()}
        for case, by_name in found.items()
    }
    made = table("median CPU time", *CONTESTANTS, "to hand-written", "to raw")
    for case in CORES:
        raw, hand, own = (cpu[case][name] for name in CONTESTANTS)
        made.add_row(
            f"a row, {case}", *map(duration, (raw, hand, own)), times(own / hand), times(own / raw)
        )
    made.add_row(
        "peak memory",
        "",
        *(f"{memory[name]:.0f} MiB" for name in CONTESTANTS[1:]),
        times(memory["discreet"] / memory["by_hand"]),
        "",
    )
    for case in SMALL:
        made.add_row(case, "", "", duration(cpu[case]["discreet"]), "", "")
    show(made)
    raw, hand, own = (cpu["one-core"][name] for name in CONTESTANTS)
    for name in PEERS:
        if name in cpu["one-core"]:
            peer = cpu["one-core"][name]
            print(f"{name}: {duration(peer)} a row, {times(peer / own)} of discreet")
    fixed = 1000 * cpu["small"]["discreet"]
    print(
        f"query: ratio to hand-written = {own / hand:.2f}, to raw = {own / raw:.1f}, "
        f"fixed cost = {fixed:.0f} ms"
    )


if __name__ == "__main__":
    main()
