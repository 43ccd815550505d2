"""Checks within the steps of a run: the model's own state, other losses, and other shapes."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from discreet.errors import Refused
from discreet.train._batches._collated import Microbatch
from discreet.train._checks._microbatch import MicrobatchSize
from discreet.train._checks._model_check import (
    Losses,
    ModelCheck,
    Public,
    most_rows_of_a_batch,
    rows_of_a_batch,
)
from discreet.train._plans._noise import ExactGaussian
from discreet.train._plans._plan import Phase, TrainingPlan
from discreet.train._randomness._own_generators import refuse_own_generators
from discreet.train._state._buffers import Buffers
from discreet.train._step_inputs import Examples, clipping_of


class StepChecks:
    """Watches one run's model: what it stores, and the shapes of the microbatches it gets."""

    def __init__(  # noqa: PLR0917  # made in one place
        self,
        model: nn.Module,
        examples: Examples,
        plan: TrainingPlan,
        size: MicrobatchSize,
        like: Public | None,
    ) -> None:
        self._model, self._examples, self._plan = model, examples, plan
        self._size, self._like = size, like
        self._buffers = Buffers(model)
        self.is_optimizer_written = False  # by losses
        self.is_spoiled_outside = False  # in a Trainer
        self._check: ModelCheck | None = None  # of the step in progress
        self._has_read = False  # items

    @property
    def is_spoiled(self) -> bool:
        """Whether private data that can't be taken out are in model, optimizer or Trainer."""
        return self._buffers.is_spoiled or self.is_optimizer_written or self.is_spoiled_outside

    def refuse_spoiled(self) -> None:
        """Raise `Refused` if the model, the optimizer or a Trainer holds private data."""
        if self.is_spoiled:
            raise Refused(
                "an earlier step wrote private data into the model, the optimizer or the Trainer, "
                "and nothing is saved: make them anew, from a checkpoint of before"
            )

    @contextmanager
    def step(self, phase: Phase, losses: Losses) -> Iterator[None]:
        """Check the model before the step's first computation, and its state at the end."""
        self._buffers.note()
        self._check = self._model_check(phase, losses)
        with self._buffers.checked():
            # losses that were never compared may mix examples, even where other losses don't
            if self._check and not self._check.compared and self._examples.count:
                self._check.first()
                self._buffers.check_buffers()
                self._buffers.note()  # a cache that depends on no data is there now
            self._buffers.note_parameters()
            yield
        self._buffers.parametrizations.advance()

    def microbatch(self, microbatch: Microbatch) -> None:
        """Compare again if a microbatch has shapes in which these losses were not compared.

        Each microbatch gets the same buffers of parametrizations.
        """
        if not self._has_read:  # items may have made generators
            refuse_own_generators(self._examples.data)
            self._has_read = True
        self._buffers.parametrizations.put_back()
        if self._check and self._check.is_due(microbatch):
            self._buffers.check()  # before the check, which moves parameters and puts them back
            try:
                self._check.due(microbatch)
            finally:
                self._buffers.check_buffers()
                self._buffers.note()
                self._buffers.note_parameters()

    def _model_check(self, phase: Phase, losses: Losses) -> ModelCheck | None:
        """None for exact noise, which computes each unit alone."""
        noise, units = self._plan.noise, self._examples.units
        if isinstance(noise, ExactGaussian):
            return None
        return ModelCheck(
            self._model,
            losses,
            clipping_of(phase, noise.order),
            self._examples.data,
            self._size,
            by_unit=units is not None,
            rows=rows_of_a_batch(self._plan, units),
            most_rows=most_rows_of_a_batch(self._plan, units),
            like=self._like,
            hides_shapes=True,
        )
