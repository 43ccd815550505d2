"""What may be said of a training run, and what of it is not private."""

import math
from dataclasses import dataclass

from discreet._budget import Receipt
from discreet._exact import shown
from discreet.train._adaptive import Counted
from discreet.train._plan import TrainingPlan


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A run's statement. It holds nothing private.

    ``done`` is how many steps gave something; ``taken`` how many count as made, which are more
    where steps failed or were left. The whole plan was paid for, whatever was made of it. ``norms``
    has the clip norms of steps in which they are adaptive, and the noisy shares that move them.
    """

    plan: TrainingPlan
    receipt: Receipt
    done: int
    taken: int
    norms: tuple[Counted, ...] = ()

    @property
    def epsilon(self) -> float:
        """What the steps that count as made cost, at the plan's delta."""
        return self.plan.epsilon_after(self.taken)

    def curve(self, points: int = 20) -> tuple[tuple[int, float], ...]:
        """(step, epsilon after it), as far as the run has come."""
        ends = [(step, epsilon) for step, epsilon in self.plan.curve(points) if step < self.taken]
        return (*ends, (self.taken, self.epsilon)) if self.taken else ()

    def __repr__(self) -> str:
        """The statement in words."""
        receipt, plan = self.receipt, self.plan
        insecure = "INSECURE (bits were not secret; for tests only) " if receipt.is_insecure else ""
        return "\n".join(
            [
                f"{insecure}{receipt.purpose}:",
                f"{self.done} of {plan.steps} steps made, {self.taken} taken",
                f"what they gave has epsilon = {self.epsilon:.6g} at delta = {shown(plan.delta)}",
                *self._norms_in_words(),
                f"receipt {receipt.number} ({receipt.digest[:12]}) for the whole plan:",
                plan.explain(),
                "not private: what `not_private` shows, and whatever is chosen by it",
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
    """What the last step saw of the data. NOT PRIVATE: for the eyes of who may see the data.

    Showing it to others, or stopping or choosing by it, is not covered by the privacy loss.
    """

    step: int
    examples: int
    loss: float
    clipped: float

    def __repr__(self) -> str:
        """The figures, marked."""
        loss = "none" if math.isnan(self.loss) else f"{self.loss:.6g}"
        return (
            f"NOT PRIVATE: step {self.step}, {self.examples} examples, mean loss {loss}, "
            f"{self.clipped:.1%} clipped"
        )
