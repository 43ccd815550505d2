"""ModelCheck see something: values, many examples, and all of it before anything is paid."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from discreet._unit import Unit
from discreet.errors import InvalidArgument, Refused
from discreet.train import Collated, Units, check, fit
from discreet.train._run import run
from tests.bad_values import BadValue
from tests.mechanisms.kit import FakePayer
from tests.train.steps import Replaceable, known, linear, sgd, short, weights

ROWS = 200


def positive(rows: int = ROWS) -> dict[str, Tensor]:
    """Public or private examples: numbers between 1 and 2, and labels from 1 to 3."""
    generator = torch.Generator().manual_seed(rows)
    x = 1 + torch.rand(rows, 3, generator=generator)
    return {"x": x, "y": 1 + torch.arange(rows) % 3}


def of_logs(model: nn.Module, part: Any) -> BadValue:
    """NaN unless all is positive."""
    return model(part.x.log()).square().sum(1)


def of_roots(model: nn.Module, part: Any) -> BadValue:
    return model((part.x - 0.99).clamp(max=1).sqrt().log()).square().sum(1)


def of_thresholds(model: nn.Module, part: Any) -> BadValue:
    return model((part.x > 50).float()).sum(1) * 0 + model(F.relu(part.x - 90)).sum(1) * 0


def without(model: nn.Module, part: Any) -> BadValue:
    return 0 * model(part.x).sum(1)


def infinite(model: nn.Module, part: Any) -> BadValue:
    return model(part.x).sum(1) / 0


VACUOUS = [of_logs, of_roots, of_thresholds, without, infinite]


@pytest.mark.parametrize("losses", VACUOUS)
def test_comparisons_of_nothing_are_refused_before_they_are_paid(
    losses: Callable[[nn.Module, Any], Tensor],
) -> None:
    """Even those that mix examples would pass."""

    def mixing(model: nn.Module, part: Any) -> BadValue:
        return losses(model, part) * part.x.sum()

    for each in (losses, mixing):
        payer, model = FakePayer(), linear()
        with pytest.raises(Refused, match=r"all gradients are 0 or .*give like=|depends on others"):
            fit(model, sgd(model), positive(), short(records=ROWS), losses=each, payer=payer)
        assert not payer.events


def labelled(model: nn.Module, part: Any) -> BadValue:
    """Of labels from 1 on, which zeros and ones are not."""
    return F.cross_entropy(model(part.x.log()), part.y - 1, reduction="none")


def picking(model: nn.Module, part: Any) -> BadValue:
    """Fails for numbers that are not in [0, 1]."""
    return F.binary_cross_entropy(model(part.x).sigmoid()[:, 0], part.x[:, 0] - 1, reduction="none")


def asserting(model: nn.Module, part: Any) -> BadValue:
    torch._assert_async((part.x > 0).all())
    return model(part.x).square().sum(1)


def three() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 3)


NARROW = [labelled, picking, asserting, of_logs]
FORMS: dict[str, Callable[[dict[str, Tensor]], BadValue]] = {
    "by name": lambda fields: fields,
    "a tuple": lambda fields: tuple(fields.values()),
    "persons": lambda fields: Units(fields, [*range(len(fields["x"]))], "person", 2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("losses", NARROW)
def test_losses_of_narrow_domains_train_with_examples_like_them(
    losses: Callable[[nn.Module, Any], Tensor], form: str
) -> None:
    facts: dict[str, BadValue] = {"losses": losses, "payer": FakePayer()}
    more = {"unit": Unit("person")} if form == "persons" else {}
    made, model = short(records=ROWS, steps=2, **more), three()
    given = FORMS[form](positive())
    with pytest.raises(Refused, match="give like="):
        fit(model, sgd(model, 0.1), given, made, **facts)
    assert not facts["payer"].events
    before = weights(model)
    report = fit(model, sgd(model, 0.1), given, made, like=FORMS[form](positive(7)), **facts)
    assert report.done == 2
    assert not torch.equal(before, weights(model))


@pytest.mark.parametrize("losses", NARROW)
def test_mixing_is_seen_among_examples_of_narrow_domains(
    losses: Callable[[nn.Module, Any], Tensor],
) -> None:
    def mean_free(model: nn.Module, part: Any) -> BadValue:
        found = losses(model, part)
        return found * part.x.mean()

    def by_label(model: nn.Module, part: Any) -> BadValue:
        return losses(model, part) / (part.y == part.y[:1]).sum()

    for mixing in (mean_free, by_label):
        payer, model = FakePayer(), three()
        with pytest.raises(Refused, match="depends on others"):
            fit(
                model,
                sgd(model),
                positive(),
                short(records=ROWS),
                losses=mixing,
                payer=payer,
                like=positive(7),
            )
        assert not payer.events


def test_a_run_by_hand_is_looked_at_before_it_is_paid() -> None:
    model, payer = three(), FakePayer()
    facts: dict[str, BadValue] = {"payer": payer, "losses": lambda part: labelled(model, part)}
    made = short(records=ROWS, steps=1)
    with (
        pytest.raises(Refused, match="give like="),
        run(model, sgd(model), positive(), made, **facts),
    ):
        raise AssertionError
    assert not payer.events
    with run(model, sgd(model), positive(), made, like=positive(7), **facts) as training:
        training.step(next(training.batches()))


@pytest.mark.parametrize(
    ("like", "told"),
    [
        (5, "like: give public examples in the form"),
        (iter([1]), "like: give public examples in the form"),
        (positive(1), "two public examples"),
        (
            {
                name: field[:1].repeat(4, *[1] * (field.dim() - 1))
                for name, field in positive().items()
            },
            "the same",
        ),
    ],
)
def test_unlike_examples_are_refused_before_payment(like: BadValue, told: str) -> None:
    payer, model = FakePayer(), three()
    with pytest.raises(InvalidArgument, match=told):
        fit(
            model,
            sgd(model),
            positive(),
            short(records=ROWS),
            losses=labelled,
            payer=payer,
            like=like,
        )
    assert not payer.events


def limited(model: nn.Module, part: Any, most: int) -> BadValue:
    """Two experts, each of which takes this many examples, in order."""
    found = model(part.x)
    expert = (part.x.sum(1) > 0).long()
    taken = F.one_hot(expert, 2).cumsum(0).gather(1, expert[:, None])[:, 0] <= most
    return found.gather(1, expert[:, None])[:, 0].square() * taken


@pytest.mark.parametrize("most", [2, 10, 64, 90])
@pytest.mark.parametrize("is_first", [True, False])
def test_mixing_that_needs_many_examples_is_seen(most: int, is_first: bool) -> None:
    payer, model = FakePayer(), three()

    def losses(model: nn.Module, part: Any) -> BadValue:
        if is_first:
            return limited(model, part, most)
        backwards = type(part)(*(field.flip(0) for field in part))
        return limited(model, backwards, most).flip(0)

    made = short(records=1000, batch=100)
    given = positive(1000)
    given["x"] -= 1.5
    with pytest.raises(
        Refused, match=r"depends on others|may depend on the number of examples|flip over examples"
    ):
        fit(model, sgd(model), given, made, losses=losses, payer=payer)
    assert not payer.events


def test_examples_that_never_meet_are_refused_all_the_same() -> None:
    """An expert that accepts 8 rows drops none if at most 8 are computed at once.

    The structure of the model does not show this limit.
    """
    model, given = three(), positive()
    made, payer = short(records=ROWS, batch=50, steps=1), FakePayer()
    with pytest.raises(Refused, match="depends on others"):
        fit(
            model,
            sgd(model),
            given,
            made,
            losses=lambda m, part: limited(m, part, 8),
            payer=payer,
            at_once=8,
        )


def test_items_are_looked_at_through_examples_like_them() -> None:
    """Of items, nothing is read before they are paid: public ones can be."""

    def collate(items: list[Any]) -> dict[str, Tensor]:
        return {"x": torch.stack([x for x, _ in items]), "y": torch.stack([y for _, y in items])}

    class Items:
        def __init__(self, rows: int) -> None:
            self.inner = TensorDataset(*positive(rows).values())

        def __len__(self) -> int:
            return len(self.inner)

        def __getitem__(self, place: int) -> BadValue:
            return self.inner[place]

    def losses(model: nn.Module, part: Any) -> BadValue:
        return F.cross_entropy(model(part["x"]), part["y"] - 1, reduction="none") * part["x"].mean()

    payer, model = FakePayer(), three()
    with pytest.raises(Refused, match="depends on others"):
        fit(
            model,
            sgd(model),
            Collated(Items(ROWS), collate),
            short(records=ROWS),
            losses=losses,
            payer=payer,
            like=Items(7),
        )
    assert not payer.events


def test_check_takes_values_if_it_is_asked_to() -> None:
    model, given = three(), positive(6)

    def losses(part: Any) -> BadValue:
        return F.cross_entropy(model(part["x"]), part["y"] - 1, reduction="none")

    with pytest.raises(Refused, match=r"can't be computed on made-up examples: .*; if"):
        check(model, losses, given)
    check(model, losses, given, uses_values=True)
    with pytest.raises(Refused, match="depends on others"):
        check(model, lambda part: losses(part) / part["y"].sum(), given, uses_values=True)


def test_a_failure_in_mid_run_says_no_value() -> None:
    """Not even the text of the loss's own error, which may have a length."""

    class Items:
        def __len__(self) -> int:
            return 60

        def __getitem__(self, place: int) -> Tensor:
            return torch.ones(37)

    model = nn.Linear(1, 1)
    losses = Replaceable(lambda part: model(part[:, :1])[:, 0])

    def failing(part: Tensor) -> Tensor:
        raise ValueError(f"{len(part[0])} numbers")

    like: BadValue = [torch.full((2,), float(number)) for number in range(5)]
    with (
        known(model, Items(), short(), losses=losses, like=like) as training,
        pytest.raises(Refused, match="in like: ValueError;") as caught,
    ):
        losses.step(training, failing)
    assert "37" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_failure_of_shortened_examples_says_no_length() -> None:
    """Where padding is checked, examples end halfway."""
    items = [torch.ones(37, 3) for _ in range(60)]
    given = Collated(items, lambda some: {"x": torch.stack([*some])}, {"x": 0})
    model = nn.Linear(3, 1)

    losses = Replaceable(lambda part: (part["x"] @ model.weight.T).sum((1, 2)))

    def failing(part: BadValue) -> Tensor:
        if part["x"].shape[1] != 37:
            raise ValueError(f"{part['x'].shape[1]} rows")
        return model(part["x"]).sum((1, 2))  # type: ignore[no-any-return]

    like: BadValue = [torch.full((37, 3), float(number)) for number in range(5)]
    with (
        known(model, given, short(), losses=losses, like=like) as training,
        pytest.raises(Refused, match="in like: ValueError;") as caught,
    ):
        losses.step(training, failing)
    assert "19" not in str(caught.value)
