"""Every mechanism by every question about its privacy loss, for units that come and go and for
units that are replaced."""

from collections.abc import Callable
from functools import partial

import pytest

from discreet._unit import Change, Unit
from discreet.accounting import PrivacyLoss
from discreet.errors import NoBound
from tests.mechanisms.cases import price
from tests.mechanisms.computations import UNITS
from tests.mechanisms.registry import CASES
from tests.tables import one_in

PRICES: dict[str, Callable[[Unit], PrivacyLoss]] = {
    **{name: case.price for name, case in CASES.items()},
    **{
        f"{name}, {variant}": partial(price, *of)
        for name, case in CASES.items()
        for variant, of in case.variants.items()
    },
}

QUESTIONS: dict[str, Callable[[PrivacyLoss], object]] = {
    "epsilon": lambda loss: loss.epsilon(delta=1e-5),
    "delta": lambda loss: loss.delta(epsilon=1),
    "interval": lambda loss: loss.interval(delta=1e-5),
    "explain": lambda loss: loss.explain(delta=1e-5),
    "renyi": lambda loss: loss.renyi(order=2),
    "zcdp": lambda loss: loss.zcdp(),
    "advantage": lambda loss: loss.advantage(),
    "profile": lambda loss: loss.profile().delta(1),
    "trade_off": lambda loss: loss.trade_off().type_two(0.1),
    "for_group": lambda loss: loss.for_group(2).epsilon(delta=1e-4),
    "ten times": lambda loss: (10 * loss).epsilon(delta=1e-4),
}


def is_answered(name: str, question: str) -> bool:
    kind, _, variant = name.partition(", ")
    asked = f"{variant}, {question}" if variant else question
    return asked not in CASES[kind].unanswered


@pytest.mark.parametrize("change", one_in(2, Change), ids=lambda change: change.value)
@pytest.mark.parametrize("name", PRICES)
def test_every_question_has_an_answer(name: str, change: Change) -> None:
    loss = PRICES[name](UNITS[change])
    assert loss.unit == UNITS[change]
    assert PrivacyLoss.from_json(loss.to_json()) == loss
    for question, ask in QUESTIONS.items():
        if is_answered(name, question):
            assert ask(loss) is not None, question
        else:
            with pytest.raises(NoBound):
                ask(loss)


@pytest.mark.parametrize("name", PRICES)
def test_a_unit_that_is_replaced_is_charged_no_less(name: str) -> None:
    """Where the same mechanism takes both: its sensitivities say how much more."""
    come, exchanged = (PRICES[name](UNITS[change]) for change in Change)
    assert come.epsilon(delta=1e-3) <= exchanged.epsilon(delta=1e-3) * 1.01 + 1e-9
