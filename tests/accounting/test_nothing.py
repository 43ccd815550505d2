"""Terms with the parameter 0, and sums of them, through all that is asked of a privacy loss."""

import inspect
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from discreet.accounting import (
    Approximate,
    Gaussian,
    LossDistribution,
    PoissonSampled,
    PrivacyLoss,
    ProfileCurve,
    Pure,
    Zcdp,
    parse,
)
from discreet.errors import NoBound
from tests.accounting.examples import KINDS, made, values_of

ZERO = 1 * Pure(0)


def at_zero() -> Iterator[PrivacyLoss]:
    """Each kind of term with 0 for one of its parameters, or for all that may be 0; a privacy loss
    inside of a term costs nothing."""
    for kind in KINDS:
        parameters = {
            name: parameter
            for name, parameter in inspect.signature(kind).parameters.items()
            if parameter.default is inspect.Parameter.empty
        }
        choices = [
            [ZERO, values_of(one)[0]]
            if "PrivacyLoss" in str(one.annotation)
            else [0, values_of(one)[-1]]
            if "Mapping" not in str(one.annotation)
            else [{0: 0.3}, {0: 0}, {2: 0}, {0: 1}]
            for one in parameters.values()
        ]
        for mixture in product(*choices):
            term = made(kind, dict(zip(parameters, mixture, strict=True)))
            if term is not None and any(
                one in (0, ZERO) or isinstance(one, dict) for one in mixture
            ):
                yield 1 * term


LOSSES = [
    PrivacyLoss(),
    *at_zero(),
    Pure(0) + Zcdp(0),
    Pure(0) + Gaussian(2),
    Zcdp(0) + Pure(1),
    2 * PoissonSampled(Gaussian(1), 0) + Approximate(0, 1e-6),
    2 * ProfileCurve({0: 0.3}) + Zcdp(0),
]
QUESTIONS: dict[str, Callable[[PrivacyLoss], object]] = {
    "epsilon": lambda loss: loss.epsilon(1e-5),
    "epsilon at 0": lambda loss: loss.epsilon(),
    "delta": lambda loss: loss.delta(0.1),
    "delta at 0": lambda loss: loss.delta(0),
    "interval": lambda loss: loss.interval(1e-5),
    "interval at 0": lambda loss: loss.interval(),
    "explain": lambda loss: str(loss.explain(1e-5)),
    "profile": lambda loss: str(loss.profile()),
    "trade-off": lambda loss: loss.trade_off().type_two(0.1),
    "Renyi": lambda loss: loss.renyi(2),
    "zCDP": lambda loss: loss.zcdp(),
    "group": lambda loss: loss.for_group(2),
    "export": LossDistribution.of,
    "text": lambda loss: parse(repr(loss)),
    "JSON": lambda loss: PrivacyLoss.from_json(loss.to_json()),
}

SLOW = ("profile", "trade-off", "export")


def test_the_list_has_fifteen_terms() -> None:
    assert len({type(term) for loss in LOSSES for term, _ in loss.terms}) >= 15


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_an_answer_or_none(question: str) -> None:
    for loss in LOSSES:
        for times in (1,) if question in SLOW else (1, 2):
            try:
                QUESTIONS[question](times * loss)
            except NoBound:
                assert question in ("Renyi", "zCDP", "group", "export", "profile", "trade-off")
