"""Audits of known noise by jax-privacy, from scores of which the larger ones are of the second
value. It takes the best of all thresholds, which is its default."""

from functools import partial

from jax_privacy.auditing import CanaryScoreAuditor

from benchmarks.known_laws import ALARM, LAWS, SAMPLES, KnownLaw
from benchmarks.worker import Case, serve


def bound(law: KnownLaw) -> float:
    """The certified epsilon."""
    auditor = CanaryScoreAuditor(law.draw(1, SAMPLES), law.draw(0, SAMPLES))
    return float(auditor.epsilon_clopper_pearson(ALARM, law.delta, one_sided=False))


BOUNDS = {name: partial(bound, law) for name, law in LAWS.items()}
CASES: dict[str, Case] = {name: (1, run) for name, run in BOUNDS.items()}
serve(CASES, figures={f"bound-{name}": run for name, run in BOUNDS.items()})
