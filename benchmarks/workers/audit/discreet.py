"""Black-box audits of known noise."""

from functools import partial

from benchmarks.known_laws import ALARM, LAWS, SAMPLES, KnownLaw
from benchmarks.worker import Case, serve
from discreet.audit import black_box


def bound(law: KnownLaw) -> float:
    """The certified epsilon."""
    found = black_box(
        law.draw, [(0, 1)], law.epsilon, delta=law.delta, samples=SAMPLES, confidence=1 - ALARM
    )
    return found.epsilon(law.delta)


BOUNDS = {name: partial(bound, law) for name, law in LAWS.items()}
CASES: dict[str, Case] = {name: (1, run) for name, run in BOUNDS.items()}
serve(CASES, figures={f"bound-{name}": run for name, run in BOUNDS.items()})
