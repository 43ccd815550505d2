"""Whether audits accuse the library's own mechanisms: ``python -m benchmarks.audit_runs``.

``python -m benchmarks.audit_runs Gaussian Laplace`` audits these two only.

Each mechanism of the tests' registry is audited again and again, on two neighbouring values at
which it is attacked, against its own price. No run may refute the price at the default confidence.
The same evidence is also judged at an alarm of 0.2, where a right audit refutes at most one run in
five: this would show bounds that are a little too high.
"""

import sys
import time
from dataclasses import replace
from fractions import Fraction

from benchmarks.tables import duration, show, table
from discreet.audit import BlackBoxResult, black_box
from tests.mechanisms.registry import CASES

RUNS = 1000
SAMPLES = 100  # of each value
ALARM = 0.2


def judged_at(found: BlackBoxResult, alarm: float) -> bool:
    """Whether the same guesses refute the claim at this alarm."""
    each = alarm / len(found.evidence)
    counts = tuple(replace(one, alarm=each) for one in found.evidence)
    return replace(found, evidence=counts, alarm=alarm).is_refuted


def main(*names: str) -> None:
    """Audit each mechanism, or those of these names, many times, and print the table."""
    made = table("mechanism", "runs", "refuted at 1e-9", f"at {ALARM:g}", "CPU time")
    refuted, most = 0, 0
    audited = names or tuple(CASES)
    for name in audited:
        attack = CASES[name].attack
        claim, draw = attack.charged(), attack.draw(Fraction(1))
        start = time.process_time()
        found = [
            black_box(draw, [(attack.one, attack.other)], claim, samples=SAMPLES)
            for _ in range(RUNS)
        ]
        passed = time.process_time() - start
        wrong = sum(one.is_refuted for one in found)
        loose = sum(judged_at(one, ALARM) for one in found)
        made.add_row(name, str(RUNS), str(wrong), str(loose), duration(passed))
        refuted, most = refuted + wrong, max(most, loose)
    show(made)
    print(
        f"audit_runs: refuted = {refuted} of {len(audited) * RUNS} runs of {len(audited)} "
        f"mechanisms, at {ALARM:g} at most {most} of {RUNS}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
