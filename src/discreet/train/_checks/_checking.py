"""Checks of a model and its losses on made-up or public examples.

A sum is only as private as each loss is alone: where one example's loss or gradient depends on
another example, no clipping helps. `check` looks for that on made-up examples, since a refusal that
depends on private data would tell something about it.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from discreet.errors import Refused
from discreet.train._batches._collated import Microbatch
from discreet.train._calls._eager import eager
from discreet.train._calls._graph import refuse_reentrant
from discreet.train._checks._caught_errors import refuse_caught_errors
from discreet.train._checks._comparison import ModelComparison
from discreet.train._checks._made_up import Values, examples_in, made_up
from discreet.train._clipped_sums._clipping import Clipping
from discreet.train._clipped_sums._engine import one_loss_each
from discreet.train._clipped_sums._plain_loop import gradients_of
from discreet.train._forward._zeroed_memory import ZeroedMemory
from discreet.train._randomness._drawn_in_common import draw_in_common
from discreet.train._randomness._held_draws import LEVELS
from discreet.train._randomness._undisturbed import undisturbed
from discreet.train._state._attributes import Attributes

COMPARED = 3  # examples that are computed alone


def check(
    model: nn.Module,
    losses: Callable[[Microbatch], Tensor],
    like: Microbatch,
    clipping: Clipping | None = None,
    *,
    by_unit: bool = False,
    hides_shapes: bool = False,
    uses_values: bool = False,
) -> None:
    """Refuse a model or a loss for which gradients of single examples are wrong.

    The engine's sum is compared with a plain loop over examples, and must not change when other
    examples do. Only the shapes and types of ``like`` are used: made-up numbers replace its values
    (whole numbers are 0 and 1, which are valid indices of any table). With ``uses_values`` its
    values are used: give public examples, if a loss is defined for few values.

    During the check random numbers are held at low, middle and high values. Parameters are moved a
    little, since a comparison at parameters of 0 would show nothing. For the same reason gradients
    that are all 0 or not finite are refused. Afterwards parameters, buffers and random generators
    are as before. With ``by_unit`` a sum is also compared in which some examples belong to one unit
    and are clipped as one. With ``hides_shapes`` no error states the shapes of ``like``.
    """
    values = Values.GIVEN if uses_values else Values.MADE_UP
    compare(
        model, losses, like, clipping, by_unit=by_unit, hides_shapes=hides_shapes, values=values
    )


def compare(
    model: nn.Module,
    losses: Callable[[Microbatch], Tensor],
    like: Microbatch,
    clipping: Clipping | None,
    *,
    by_unit: bool,
    hides_shapes: bool,
    values: Values,
) -> None:
    """`check`, with values of any origin."""
    examples, microbatch = examples_in(like), _microbatch(like, values)
    number = max(1, min(COMPARED, examples - 2))
    start = (examples - number) // 2
    with undisturbed(model) as chance, eager():
        among = partial(
            ModelComparison,
            model,
            losses,
            examples,
            chance=chance,
            hides_shapes=hides_shapes,
            values=values,
        )
        middle = among(range(start, start + number))
        limit = middle.compare(microbatch, clipping)
        for level in LEVELS if chance.has_drawn else LEVELS[:1]:
            with chance.held(level):
                refuse_caught_errors(model, lambda: middle.losses(microbatch), microbatch, examples)
        if by_unit:
            middle.at_each_level(lambda: middle.compare_as_unit(microbatch, limit))
        if examples > number + 2:
            spread = among(_spread(examples))
            spread.at_each_level(lambda: spread.compare_once(microbatch, limit))


def check_among_many(
    model: nn.Module,
    losses: Callable[[Microbatch], Tensor],
    like: Microbatch,
    clipping: Clipping,
    *,
    hides_shapes: bool,
    values: Values,
) -> None:
    """Refuse models that mix examples only if there are many, as an expert of limited size does.

    The first, a middle and the last example are compared, once.
    """
    examples, microbatch = examples_in(like), _microbatch(like, values)
    with undisturbed(model) as chance, eager():
        comparison = ModelComparison(
            model,
            losses,
            examples,
            _spread(examples),
            chance=chance,
            hides_shapes=hides_shapes,
            values=values,
        )

        def compared() -> bool:
            comparison.refuse_written(microbatch)
            return comparison.compare_once(microbatch, clipping)

        comparison.at_each_level(compared)


def check_shared_draws(
    model: nn.Module,
    losses: Callable[[Microbatch], Tensor],
    like: Microbatch,
    clipping: Clipping,
    *,
    hides_shapes: bool,
    values: Values,
) -> bool:
    """Refuse what a step with real random numbers would refuse.

    Returns whether examples share some of these numbers.
    """
    examples, microbatch = examples_in(like), _microbatch(like, values)
    every = range(examples)
    comparison = ModelComparison(
        model, losses, examples, every, hides_shapes=hides_shapes, values=values
    )
    return draw_in_common(
        model,
        lambda: comparison.losses(microbatch),
        microbatch,
        examples,
        clipping,
        hides_shapes=hides_shapes,
    )


def check_padding(
    model: nn.Module,
    losses: Callable[[Microbatch], Tensor],
    like: Microbatch,
    padded: Callable[[Microbatch], tuple[Microbatch, Microbatch]],
    *,
    hides_shapes: bool,
    values: Values,
) -> None:
    """Refuse a model or a loss for which an example's gradient depends on its padding.

    Examples are padded to the longest one of their microbatch, which would so change all other
    gradients. ``padded`` pads the same examples to two lengths, for which gradients must agree.
    """
    examples = examples_in(like)
    both = padded(_microbatch(like, values))
    with undisturbed(model) as chance, eager():
        comparison = ModelComparison(
            model,
            losses,
            examples,
            range(examples),
            chance=chance,
            hides_shapes=hides_shapes,
            values=values,
        )

        def compared() -> bool:
            longer, shorter = (comparison.alone(microbatch) for microbatch in both)
            if (name := comparison.differs(longer, shorter)) is not None:
                raise Refused(
                    f"{name}: an example's gradient depends on how far it is padded, and so on "
                    "the longest example beside it; mask padding, in the model and in the loss, "
                    "or give all examples one length"
                )
            return True

        comparison.at_each_level(compared)


def check_alone(
    model: nn.Module,
    losses: Callable[[Microbatch], Tensor],
    like: Microbatch,
    *,
    values: Values = Values.MADE_UP,
) -> None:
    """Refuse a model or a loss that fails for one unit's examples, or that writes into the model.

    This is for exact noise, for which each unit is computed alone, so that nothing is compared.
    """
    examples, microbatch = examples_in(like), _microbatch(like, values)
    parameters = [p for p in model.parameters() if p.requires_grad]
    comparison = ModelComparison(model, losses, examples, range(examples), values=values)
    with undisturbed(model), eager(), torch.enable_grad(), ZeroedMemory():
        before = Attributes(model)
        found = one_loss_each(comparison.losses(microbatch), examples)
        refuse_reentrant(found)
        gradients_of(found.sum(), parameters)
        comparison.refuse_changed(before, microbatch)


def _microbatch(like: Microbatch, values: Values) -> Microbatch:
    return made_up(like) if values.are_made_up else like


def _spread(examples: int) -> tuple[int, ...]:
    """The first, a middle and the last place."""
    return tuple(sorted({0, examples // 2, examples - 1}))
