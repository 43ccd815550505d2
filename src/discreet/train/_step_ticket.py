"""A ticket for one step of a training run."""

from typing import ClassVar

from discreet._ownership import Owned


class StepTicket(Owned):
    """Admits one logical step, counted from 1, to `TrainingRun.step`.

    The step's batch is private, and so is its size: neither is in the ticket.
    """

    described: ClassVar[str] = "a step's ticket"
    advice: ClassVar[str] = "give it to the run's step as it is"

    __slots__ = ("_step",)

    def __init__(self, step: int) -> None:
        self._step = step

    @property
    def step(self) -> int:
        """The number of the step, from 1."""
        return self._step

    def __repr__(self) -> str:
        return f"StepTicket(step={self._step})"
