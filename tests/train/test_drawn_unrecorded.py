"""Random numbers that no rule records count as shared by all examples; set states are refused.

A number belongs to one example only if its function draws another one for each row of examples.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor
from torch.distributions import Normal
from torch.utils.checkpoint import checkpoint

from discreet.errors import Refused
from discreet.train import Flat
from discreet.train._checks._checking import check_shared_draws
from discreet.train._checks._made_up import Values
from tests.train.layers import WIDTH, Layers, Use, of, summed

NUMBER = 5
ONE, HALF = torch.zeros(1), torch.full((WIDTH,), 0.5)  # the model does not know them
NORMAL = Normal(torch.zeros(WIDTH), torch.ones(WIDTH))


def is_common(use: Use) -> bool:
    model = Layers(use).double()
    return check_shared_draws(
        model,
        model,
        of(NUMBER, WIDTH),
        Flat(1.0),
        hides_shapes=False,
        values=Values.MADE_UP,
    )


def by(make: Callable[[], Tensor]) -> Use:
    """All rows are multiplied by the same numbers."""
    return lambda m, x: summed(m.layer(x) * make())


def sized(size: Callable[[Tensor], int]) -> Use:
    """How many numbers are large decides a factor of all."""
    return lambda m, x: summed(m.layer(x)) * (1 + size(torch.rand(8)))


def dropped(drop: Callable[[Tensor], Tensor], *dims: int) -> Use:
    """Masks of channels, for rows whose dimensions were moved: 0 stands for the examples."""
    back = [dims.index(n) for n in range(len(dims))]

    def use(m: Layers, x: Tensor) -> Tensor:
        rows = m.layer(x).view(len(x), WIDTH, *[1] * (len(dims) - 2))
        return summed(drop(rows.permute(dims)).permute(back))

    return use


def twice(begin: Callable[[], object], again: Callable[[object], None]) -> Use:
    """Numbers that are drawn a second time meet rows of other examples."""

    def use(m: Layers, x: Tensor) -> Tensor:
        state = begin()
        one = torch.rand(len(x))
        again(state)
        torch.rand(1)
        return summed(m.layer(x)) * one * torch.rand(len(x))

    return use


def forked(m: Layers, x: Tensor) -> Tensor:
    with torch.random.fork_rng(devices=[]):
        one = torch.rand(len(x))
    torch.rand(1)
    return summed(m.layer(x)) * one * torch.rand(len(x))


CHANNELS: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {  # and whether data have a batch
    "dropout1d": (F.dropout1d, False),
    "dropout2d": (F.dropout2d, True),
    "dropout3d": (F.dropout3d, False),
    "feature_alpha_dropout": (lambda x: F.feature_alpha_dropout(x, 0.5, training=True), True),
}
COMMON: dict[str, Use] = {
    "like": by(lambda: torch.rand_like(ONE)),
    "like, normal": by(lambda: torch.randn_like(HALF)),
    "coins": by(lambda: torch.bernoulli(HALF)),
    "coins, a method": by(HALF.bernoulli),
    "normal": by(lambda: torch.normal(HALF, 1.0)),
    "a distribution": by(NORMAL.sample),
    "dropout": by(lambda: F.dropout(HALF)),
    "in place": by(lambda: HALF.clone().uniform_()),
    "places": sized(lambda r: (r < 0.5).nonzero().size(0)),
    "where": sized(lambda r: torch.where(r < 0.5)[0].numel()),
    "picked": sized(lambda r: r[r < 0.5].numel()),
    "selected": sized(lambda r: r.masked_select(r < 0.5).numel()),
    "a length": sized(lambda r: len((r < 0.5).nonzero())),
    "different": sized(lambda r: len((4 * r).long().unique())),  # type: ignore[no-untyped-call]  # PyTorch has no types
    "in a row": sized(lambda r: len((4 * r).long().unique_consecutive())),  # type: ignore[no-untyped-call]  # as above
    "counted": sized(lambda r: len(torch.bincount((4 * r).long()))),
    "classes": sized(lambda r: F.one_hot((4 * r).long()).shape[1]),
    "repeated": sized(lambda r: len(r.repeat_interleave((4 * r).long()))),
}
SET = {
    "the state": twice(torch.get_rng_state, torch.set_rng_state),  # type: ignore[arg-type]
    "a generator": twice(
        torch.default_generator.get_state,
        torch.default_generator.set_state,  # type: ignore[arg-type]
    ),
    "a fork": forked,
}


@pytest.mark.parametrize("name", COMMON)
def test_unrecorded_numbers_are_in_common(name: str) -> None:
    assert is_common(COMMON[name])


@pytest.mark.filterwarnings("ignore:dropout:UserWarning")
@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("name", CHANNELS)
def test_masks_of_channels_are_own_only_if_examples_have_channels(
    name: str, dims: tuple[int, ...]
) -> None:
    """The first two dimensions have masks, or one if there is no batch."""
    drop, has_batch = CHANNELS[name]
    masked = 1 if name == "dropout1d" and len(dims) == 2 and not has_batch else 2
    assert is_common(dropped(drop, *dims)) == (dims.index(0) >= masked)


@pytest.mark.parametrize("place", range(4))
def test_masks_of_volumes(place: int) -> None:
    """With four dimensions, `dropout3d` takes the first one for channels."""
    dims = [1, 2, 3]
    dims.insert(place, 0)
    assert is_common(dropped(F.dropout3d, *dims)) == (place > 0)


@pytest.mark.parametrize("name", ["query", "value"])
def test_masks_of_attention_are_own_only_with_own_weights(name: str) -> None:
    def use(m: Layers, x: Tensor) -> Tensor:
        rows = m.layer(x)[:, None, :, None]
        fixed = torch.ones(1, 1, WIDTH, 1, dtype=x.dtype)
        query = rows if name == "query" else fixed
        return summed(F.scaled_dot_product_attention(query, fixed, rows, dropout_p=0.5))

    assert is_common(use) == (name == "value")


@pytest.mark.parametrize("name", SET)
def test_states_that_are_set_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="set_rng_state"):
        is_common(SET[name])


def test_numbers_of_each_example_are_own() -> None:
    assert not is_common(lambda m, x: summed(m.layer(F.dropout(x))) * torch.rand(len(x)))
    assert not is_common(lambda m, x: summed(m.layer(x + torch.randn_like(x))))


def test_checkpoints_may_set_states() -> None:
    """A checkpoint draws the same numbers when it computes its part again."""

    def use(m: Layers, x: Tensor) -> Tensor:
        again = checkpoint(lambda one: F.dropout(m.layer(one)), x, use_reentrant=False)
        return summed(again) * torch.rand(len(x))

    assert not is_common(use)
