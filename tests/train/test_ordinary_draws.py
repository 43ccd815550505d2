"""Random numbers as ordinary code draws them: each example alone gets the same gradient.

Draws that mix examples, or have no numbers of each example, are refused before the charge.
"""

import math
from typing import Any

import pytest
import torch
import torch.distributions as law
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor

from discreet.errors import Refused
from discreet.train import check
from tests.train.layers import WIDTH, of
from tests.train.test_draws_of_weights import Queries, Use, agrees, is_admitted

LEVELS = 10


def steps(x: Tensor) -> Tensor:
    """A time step of a diffusion for each example."""
    return torch.randint(0, LEVELS, (len(x),))


def waves(times: Tensor) -> Tensor:
    """Sines and cosines of time steps."""
    rates = torch.exp(-math.log(100.0) * torch.arange(WIDTH // 2, dtype=torch.float64))
    angles = times[:, None].double() * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


def diffused(m: Queries, x: Tensor) -> Tensor:
    kept = torch.cumprod(torch.linspace(0.99, 0.9, LEVELS, dtype=torch.float64), 0)
    times, noise = steps(x), torch.randn_like(x)
    share = kept[times][:, None]
    noisy = share.sqrt() * x + (1 - share).sqrt() * noise
    made: Tensor = m.layer(noisy + m.layer(waves(times)))
    return made - noise


def slots(m: Queries, x: Tensor) -> Tensor:
    """Slot attention: noisy slots compete for inputs."""
    found: Tensor = m.query + m.norm.weight.exp() * torch.randn(len(x), 3, WIDTH, dtype=x.dtype)
    inputs = m.layer(x)[:, None] * torch.arange(1, 3, dtype=x.dtype)[:, None]
    for _ in range(2):
        scores = torch.einsum("bid,bjd->bij", m.layer(m.norm(found)), inputs)
        found = found + torch.einsum("bij,bjd->bid", scores.softmax(1), inputs)
    return found


def erased(m: Queries, x: Tensor) -> Tensor:
    """A window of each example is hidden."""
    start, every = torch.randint(0, WIDTH - 1, (len(x), 1)), torch.arange(WIDTH)
    found: Tensor = m.layer(x.masked_fill((every >= start) & (every < start + 2), 0.0))
    return found


def cropped(m: Queries, x: Tensor) -> Tensor:
    """A window of each example is shown."""
    start = torch.randint(0, 3, (len(x), 1))
    shown = F.pad(m.layer(x), (1, 1)).gather(1, start + torch.arange(WIDTH))
    found: Tensor = m.layer(shown)
    return found


def smoothed(m: Queries, x: Tensor) -> Tensor:
    labels = torch.full_like(x, 0.1 / WIDTH).scatter(1, x.argmax(1, keepdim=True), 0.9)
    found: Tensor = m.layer(x).log_softmax(1)
    return found * labels


def generated(m: Queries, x: Tensor) -> Tensor:
    """A generator's numbers against data."""
    found: Tensor = m.layer(m.norm(m.layer(torch.randn(len(x), WIDTH, dtype=x.dtype))))
    return found - x


def coins(number: int) -> Tensor:
    chance: Any = law.Bernoulli(torch.tensor(0.5))  # Any: it has no types
    found: Tensor = chance.sample((number, 1))
    return found


def shifted(m: Queries, x: Tensor, drawn: Tensor) -> Tensor:
    found: Tensor = m.layer(x) * (drawn * drawn.flip(0))[:, None]
    return found


def hidden(m: Queries, x: Tensor) -> Tensor:
    """Some steps are replaced by a learned one."""
    drawn = torch.rand(len(x), 3, 1) < 0.5
    return torch.where(drawn, m.query, m.layer(x)[:, None].expand(-1, 3, -1))


def masked(share: float, *, hides: bool = True) -> Use:
    """Masked modelling: some steps are hidden, and only these are predicted."""

    def use(m: Queries, x: Tensor) -> Tensor:
        steps = x[:, None] * torch.arange(1, 4, dtype=x.dtype)[:, None]
        mask = torch.rand(steps.shape[:2]) < share
        if hides:
            found = m.layer(steps.masked_fill(mask[..., None], 0.0))
        else:
            found = torch.where(mask[..., None], m.query, m.layer(steps))
        wrong: Tensor = (found - steps) * mask[..., None]
        return wrong

    return use


def chosen(number: int) -> Tensor:
    """Classes of a public law that is not even."""
    chances = torch.arange(1.0, 1 + WIDTH)
    return torch.multinomial(chances, number, replacement=True)


def classes(logits: Tensor, number: int) -> Tensor:
    law_of: Any = law.Categorical(logits=logits)  # Any: it has no types
    found: Tensor = law_of.sample((number,))
    return found


def one_hot_classes(number: int) -> Tensor:
    return F.one_hot(torch.randint(WIDTH, (number,)), WIDTH)


def one_hot_law(number: int) -> Tensor:
    law_of: Any = law.OneHotCategorical(logits=torch.arange(1.0, 1 + WIDTH))  # Any: as above
    found: Tensor = law_of.sample((number,))
    return found


RIGHT: dict[str, Use] = {
    "one-hot classes": lambda m, x: m.layer(x) * one_hot_classes(len(x)),
    "a one-hot law": lambda m, x: m.layer(x + one_hot_law(len(x))),
    "masked": masked(0.15),
    "masked by a weight": masked(0.15, hides=False),
    "masked, mostly": masked(0.85),
    "classes": lambda m, x: m.layer(x) * classes(torch.zeros(3), len(x))[:, None],
    "classes by weights": lambda m, x: m.layer(x) * classes(m.norm.weight, len(x))[:, None],
    "picks": lambda m, x: m.layer(x) * chosen(len(x))[:, None],
    "as many picks as classes": lambda m, x: (
        m.layer(x) * torch.multinomial(torch.arange(1.0, 6.0), len(x), replacement=True)[:, None]
    ),
    "picks of weights": lambda m, x: m.layer(x) + m.place[chosen(len(x))][:, 0],
    "a normal law of data": lambda m, x: law.Normal(m.layer(x), 1.0).rsample(),
    "a normal law of two": lambda m, x: law.Normal(m.layer(x), F.softplus(m.layer(x))).rsample(),
    "several at once": lambda m, x: (
        law.Independent(law.Normal(m.layer(x), 0.5), 1).rsample((2,)).mean(0)
    ),
    "logarithms": lambda m, x: law.LogNormal(m.layer(x), torch.tensor(0.5)).rsample(),
    "beta": lambda m, x: m.layer(x) * law.Beta(1.0, 2.0).sample((len(x), 1)),
    "gamma": lambda m, x: m.layer(x) * law.Gamma(2.0, 1.0).sample((len(x), 1)),
    "shares": lambda m, x: m.layer(x) * law.Dirichlet(torch.ones(WIDTH)).sample((len(x),)),
    "coins": lambda m, x: m.layer(x) * coins(len(x)),
    "slots": slots,
    "a diffusion": diffused,
    "a level of each": lambda m, x: m.layer(x) + m.place[steps(x)][:, 0],
    "a generator": generated,
    "erased": erased,
    "cropped": cropped,
    "smooth labels": smoothed,
    "hidden steps": hidden,
    "a place by chances": lambda m, x: x.gather(1, torch.multinomial(x.softmax(1), 1)) * m.layer(x),
    "counts": lambda m, x: m.layer(torch.poisson(x.abs())),
    "a row for all": lambda m, x: (
        m.layer(x) + torch.randn(1, WIDTH, dtype=x.dtype).repeat(len(x), 1)
    ),
}
ADMITTED: dict[str, Use] = {
    "gamma of data": lambda m, x: law.Gamma(m.layer(x).exp(), 1.0).rsample(),
    "beta of data": lambda m, x: law.Beta(m.layer(x).exp(), torch.ones_like(x)).rsample(),
    "shares of data": lambda m, x: law.Dirichlet(m.layer(x).exp()).rsample(),
    "a soft choice": lambda m, x: F.gumbel_softmax(m.layer(x), hard=True),
    "a soft choice of weights": lambda m, x: (
        F.gumbel_softmax(m.query.expand(len(x), -1, -1)) * x[:, None]
    ),
    "a law of data": lambda m, x: law.Laplace(m.layer(x), 1.0).rsample(),
    "relaxed coins": lambda m, x: law.RelaxedBernoulli(
        torch.tensor(0.5), logits=m.layer(x)
    ).rsample(),
}
ADMISSIBLE = (
    *("one-hot classes", "a one-hot law"),
    *("slots", "a diffusion", "a generator", "masked", "masked by a weight", "masked, mostly"),
    *("classes", "classes by weights", "picks", "as many picks as classes", "picks of weights"),
)
WRONG: dict[str, Use] = {
    "one-hot classes, shifted": lambda m, x: (
        m.layer(x) * (one := one_hot_classes(len(x))) * one.flip(0)
    ),
    "as many classes as there are": lambda m, x: (
        m.layer(x) * F.one_hot(torch.randint(WIDTH, (len(x),))).sum(1, keepdim=True)
    ),
    "counts of one-hot classes": lambda m, x: (
        m.layer(x) * one_hot_classes(len(x)) * one_hot_classes(len(x)).sum(0)
    ),
    "picks, shifted": lambda m, x: shifted(m, x, chosen(len(x))),
    "classes, shifted": lambda m, x: shifted(m, x, classes(torch.zeros(3), len(x))),
    "picks of data": lambda m, x: (
        m.layer(x) * torch.multinomial(x.exp(), len(x), replacement=True)[0][:, None]
    ),
    "mixup": lambda m, x: m.layer(0.7 * x + 0.3 * x[torch.randperm(len(x))]),
    "exactly half": lambda m, x: x.index_add(
        0, torch.randperm(len(x))[:2], m.layer(x[torch.randperm(len(x))[:2]])
    ),
    "an order of places": lambda m, x: m.layer(x) * torch.randperm(len(x))[:, None],
    "choices of a batch": lambda m, x: (
        m.layer(x) * torch.multinomial(torch.ones(len(x)), len(x))[:, None]
    ),
    "shares of a batch": lambda m, x: (
        m.layer(x) * law.Dirichlet(torch.ones(len(x))).sample(())[:, None]
    ),
    "a generator, shifted": lambda m, x: generated(m, x) * m.layer(torch.rand_like(x)).flip(0),
}


@pytest.mark.parametrize("name", RIGHT)
def test_ordinary_draws_agree_with_a_loop(name: str) -> None:
    agrees(Queries(RIGHT[name]))


@pytest.mark.parametrize("name", [*ADMISSIBLE, *ADMITTED])
def test_ordinary_draws_are_admitted(name: str) -> None:
    assert is_admitted(Queries((RIGHT | ADMITTED)[name]))


@pytest.mark.parametrize("name", WRONG)
def test_mixtures_are_refused(name: str) -> None:
    model = Queries(WRONG[name])
    with pytest.raises(Refused):
        check(model, model, of(5, WIDTH))
