"""Local, shuffled, central: the same histogram at the same epsilon, by whom one must trust."""

from functools import lru_cache

import numpy as np

from discreet._budget import Limit
from discreet._html import down
from discreet._unit import Change, Unit
from discreet.accounting import ShuffledReports, calibrate
from discreet.errors import NoBound
from discreet.explore._page import (
    Control,
    ControlValues,
    Experiment,
    ExperimentOutcome,
    NoisyNumber,
    Page,
    Preset,
    View,
)
from discreet.explore.pages._texts import (
    ABOUT_EPSILON,
    WHICH_VALUE,
    about,
    meaning_of_both,
    program,
)
from discreet.local import RandomizedResponse
from discreet.mechanisms import Bounded, DiscreteLaplace, IntegerArray, release
from discreet.plots import Axis, Chart, Series

_DELTA = 1e-6
_FRUIT = ("apple", "pear", "plum", "cherry", "fig")
_SHARES = (0.4, 0.25, 0.2, 0.1, 0.05)
_PEOPLE = (100, 1000, 10_000, 100_000)
_PERSON = Unit("person", Change.REPLACE)
_MODELS = ("central", "shuffled", "local")

_CODE = """
import numpy as np
import discreet as dp
from discreet.accounting import ShuffledReports, calibrate
from discreet.errors import NoBound
from discreet.local import RandomizedResponse

# central: a trusted collector adds the noise
histogram = dp.Bounded(
    lambda: np.zeros(5, np.int64),
    sensitivity=2,
    unit=dp.Unit("person", dp.Change.REPLACE),
    name="fruit",
    shape=(5,),
)
central = dp.DiscreteLaplace.for_epsilon({epsilon}, histogram).error(0.95)

# local: each device adds the noise
local = {people} * RandomizedResponse({epsilon}, 5).error(0.95, {people})

# shuffled: noisier than nothing, less noisy than local; only the shuffler is trusted
try:
    own = float(
        calibrate(
            lambda own: ShuffledReports(own, {people}), epsilon={epsilon}, delta={delta}
        ).value
    )
except NoBound:
    own = {epsilon}
own = max(own, {epsilon})
shuffled = {people} * RandomizedResponse(own, 5).error(0.95, {people})
"""


def view(values: ControlValues) -> View:
    """The errors of the three ways."""
    epsilon, people = values["epsilon"], values["people"]
    own = _own_epsilon(epsilon, people)
    errors = dict(zip(_MODELS, _errors(epsilon, people), strict=True))
    worst = errors["local"] / errors["central"]
    return View(
        says=(
            f"At ε = {epsilon:g} and {people:,} people, 95 % of counts are off by at most "
            f"{about(errors['central'])} if one collector is trusted, by "
            f"{about(errors['shuffled'])} with a shuffler, and by {about(errors['local'])} if "
            f"nobody is trusted: {about(worst)} times as much."
        ),
        meaning=meaning_of_both(
            epsilon, _DELTA if values["model"] == "shuffled" else 0, guess=WHICH_VALUE
        ),
        charts=(_chart(errors, people),),
        heads=("who is trusted", "error of a count, at 95 %", "ε of one report"),
        rows=(
            ("central: the collector", f"± {about(errors['central'])}", "none: exact data"),
            ("shuffled: the shuffler", f"± {about(errors['shuffled'])}", down(own, 4)),
            ("local: nobody", f"± {about(errors['local'])}", f"{epsilon:g}"),
        ),
        figures={**errors, "own": own},
        code=program(_CODE, epsilon=epsilon, people=people, delta=_DELTA),
    )


def _chart(errors: dict[str, float], people: int) -> Chart:
    return Chart(
        "Error of one count",
        f"Logarithmic. The fruit that most people chose has {round(people * _SHARES[0]):,} people.",
        Axis("", categories=_MODELS),
        Axis("people", 0.1, 1_000_000, is_log=True),
        (Series("error at 95 %", "dots", tuple(errors.items()), 0),),
    )


@lru_cache(maxsize=64)
def _errors(epsilon: float, people: int) -> tuple[float, float, float]:
    """The errors of one count at 95 %: central, shuffled, local."""
    central = DiscreteLaplace.for_epsilon(epsilon, _histogram(np.zeros(5, np.int64))).error(0.95)
    own = _own_epsilon(epsilon, people)
    shuffled, local = (
        people * RandomizedResponse(one, len(_FRUIT)).error(0.95, people) for one in (own, epsilon)
    )
    return central, shuffled, local


@lru_cache(maxsize=64)
def _own_epsilon(epsilon: float, people: int) -> float:
    """The epsilon of each device whose shuffled reports cost at most this epsilon."""
    try:
        found = calibrate(
            lambda own: ShuffledReports(own, people), epsilon=epsilon, delta=_DELTA
        ).value
    except NoBound:
        return epsilon
    return max(float(found), epsilon)


def _histogram(counts: IntegerArray) -> Bounded[IntegerArray]:
    return Bounded(lambda: counts, sensitivity=2, unit=_PERSON, name="fruit", shape=(len(_FRUIT),))


# One histogram each way


def count(values: ControlValues) -> ExperimentOutcome:
    """One histogram, in the chosen way."""
    epsilon, people, model = values["epsilon"], values["people"], values["model"]
    truth = [round(people * share) for share in _SHARES]
    error = dict(zip(_MODELS, _errors(epsilon, people), strict=True))[model]
    if model == "central":
        from discreet.ledger import Ledger  # it loads a database

        ledger = Ledger.in_memory(unit=_PERSON, limit=Limit(epsilon=epsilon))
        asked = _histogram(np.array(truth))
        found = release(asked, DiscreteLaplace.for_epsilon(epsilon, asked), ledger).value.tolist()
    else:
        own = epsilon if model == "local" else _own_epsilon(epsilon, people)
        devices = RandomizedResponse(own, len(_FRUIT))
        reports = devices.randomize(np.repeat(np.arange(len(_FRUIT)), truth))
        found = [people * share for share in devices.estimate(reports).values.tolist()]
    points = tuple(
        NoisyNumber(name, float(one), one - error, one + error, true)
        for name, one, true in zip(_FRUIT, found, truth, strict=True)
    )
    said = ", ".join(f"{one.label} {one.value:,.0f}" for one in points)
    return ExperimentOutcome(f"{model}: {said}", points)


PAGE = Page(
    name="trust",
    title="Whom to trust",
    lead=(
        "The same histogram at the same epsilon is right to within a few people, or off by "
        "hundreds: it depends on whom the people must trust."
    ),
    question="What does it cost to trust nobody?",
    answer=(
        "Each device must add noise of its own, and all of it adds up: the error of a count "
        "grows with the root of the number of people, while a trusted collector’s error "
        "stays."
    ),
    notes=(
        (
            "Central: everyone hands over the truth, and one collector adds noise once. Local:"
            " each device adds its own noise, so nobody needs to be trusted, and the noise of "
            "all devices adds up. Shuffled: devices add less noise, and a shuffler hides who "
            "sent which report; the protection counts only if the shuffler does its work."
        ),
        (
            "The local error grows with the square root of the number of people; the central "
            "one does not grow at all. So large crowds can afford the local way: as a share of"
            " the crowd the error shrinks."
        ),
    ),
    controls=(
        Control("epsilon", "epsilon (ε)", (0.25, 0.5, 1, 2, 4), 1, term=ABOUT_EPSILON),
        Control(
            "people",
            "people",
            _PEOPLE,
            10_000,
            term="How many people are counted, each under one of five fruits.",
        ),
        Control("model", "count a histogram", _MODELS, "local"),
    ),
    presets=(
        Preset("trust a shuffler", {"model": "shuffled"}),
        Preset("a large crowd", {"people": 100_000}),
    ),
    compute=view,
    experiments=(
        Experiment(
            "count", "Count", "histograms", ("epsilon", "people", "model"), count, unit="people"
        ),
    ),
)
