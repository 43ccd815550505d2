"""The public report of a training run, and the figures that are not private."""

import math
from dataclasses import dataclass

from discreet import _html
from discreet._budget import Receipt
from discreet._exact import shown
from discreet.train._plans._adaptive import NoisyShare
from discreet.train._plans._plan import TrainingPlan


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The public statement of a run. It holds nothing private.

    ``done`` steps changed the model. ``taken`` steps were begun, some of which may have failed. The
    whole plan was paid for in any case. ``norms`` are adaptive clip norms, with the noisy shares
    that move them.
    """

    plan: TrainingPlan
    receipt: Receipt
    done: int
    taken: int
    norms: tuple[NoisyShare, ...] = ()

    _repr_html_ = _html.shown

    @property
    def epsilon(self) -> float:
        """The epsilon of all steps taken, at the plan's delta."""
        return self.plan.epsilon_after(self.taken)

    def curve(self, points: int = 20) -> tuple[tuple[int, float], ...]:
        """Pairs (step, epsilon after it), up to the last step taken."""
        ends = [(step, epsilon) for step, epsilon in self.plan.curve(points) if step < self.taken]
        return (*ends, (self.taken, self.epsilon)) if self.taken else ()

    def __repr__(self) -> str:
        receipt, plan = self.receipt, self.plan
        insecure = "INSECURE (bits were not secret; for tests only) " if receipt.is_insecure else ""
        return "\n".join(
            [
                f"{insecure}{receipt.purpose}:",
                f"{self.done} of {plan.steps} steps changed the model, {self.taken} taken",
                f"these steps cost epsilon = {self.epsilon:.6g} at delta = {shown(plan.delta)}",
                *self._norms_in_words(),
                f"receipt {receipt.number} ({receipt.digest[:12]}) for the whole plan:",
                plan.explain(),
                "not private: the figures of `not_private`, and whatever is chosen by them",
            ]
        )

    def _norms_in_words(self) -> list[str]:
        if not self.norms:
            return []
        first, last = self.norms[0], self.norms[-1]
        return [
            f"clip norm {first.norm:.6g} in step {first.step}, {last.norm:.6g} in step {last.step}"
        ]


@dataclass(frozen=True, slots=True, repr=False)
class NotPrivate:
    """Figures of the last step's batch. NOT PRIVATE: only for people who may see the data.

    The privacy loss does not cover showing it to others, or stopping or choosing by it.
    """

    step: int
    examples: int
    loss: float
    clipped: float

    def __repr__(self) -> str:
        loss = "none" if math.isnan(self.loss) else f"{self.loss:.6g}"
        return (
            f"NOT PRIVATE: step {self.step}, {self.examples} examples, mean loss {loss}, "
            f"{self.clipped:.1%} clipped"
        )
