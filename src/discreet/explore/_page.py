"""The values that a page is made of. All are public, and all become JSON as they are."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any
from urllib.parse import quote

from discreet import _html
from discreet.errors import InvalidArgument
from discreet.plots import Chart, Series

ControlValue = float | int | str
ControlValues = Mapping[str, Any]  # Any: a number or a text, as the control of that name says
ControlPlaces = tuple[int, ...]  # for each control the place of its value, from 0
_MOST = 100  # of the questions of one price

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_of_ten(power: int) -> str:
    """The power as text, such as 10⁻⁶."""
    return f"10{str(power).translate(_SUPERSCRIPTS)}"


def shown(value: ControlValue) -> str:
    """The value of a control as text: 0.5, 10,000, or a power such as 10⁻⁶."""
    if isinstance(value, str):
        return value
    if 0 < value < 0.001:
        digits, _, power = f"{value:.0e}".partition("e")
        raised = power_of_ten(int(power))
        return raised if digits == "1" else f"{digits} · {raised}"
    return f"{value:,}" if value >= 1000 else f"{value:g}"


@dataclass(frozen=True, slots=True)
class Control:
    """A control with a few values. Numbers get a slider, texts get radio buttons.

    ``hint`` stands below the control. ``term`` explains the word of a slider's label, and is shown
    when the pointer or the focus rests on the question mark beside it.
    """

    name: str
    label: str
    values: tuple[ControlValue, ...]
    start: ControlValue
    hint: str = ""
    term: str = ""

    @property
    def is_slider(self) -> bool:
        """Whether the values are numbers."""
        return not isinstance(self.values[0], str)

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as the page shows them."""
        return tuple(map(shown, self.values))

    @property
    def place(self) -> int:
        """The place of the first value to show."""
        return self.values.index(self.start)


@dataclass(frozen=True, slots=True)
class Preset:
    """Values of some controls that are worth a look; the others stay as they stand."""

    label: str
    values: ControlValues


@dataclass(frozen=True, slots=True)
class View:
    """The page at one value of each control.

    ``meaning`` says what the epsilon of this view means. ``code`` is Python that gives the same
    numbers: each name of ``figures`` is one of its variables. ``is_refused`` says that a ledger
    refused the last question. The controls in ``idle`` change nothing here. ``step`` is the next
    question of a page that asks one after another.
    """

    says: str
    meaning: str
    charts: tuple[Chart, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figures: Mapping[str, float]
    code: str
    is_refused: bool = False
    idle: tuple[str, ...] = ()
    step: "QuestionStep | None" = None

    def _repr_html_(self) -> str:
        return _html.table(self.says, self.heads, self.rows) + _html.notes([self.meaning])


@dataclass(frozen=True, slots=True)
class NoisyNumber:
    """One number of an outcome: the noisy value, its interval, and the value without noise."""

    label: str
    value: float
    low: float
    high: float
    truth: float


@dataclass(frozen=True, slots=True)
class Overlay:
    """A series of an outcome, drawn over the chart at this place of the view."""

    chart: int
    series: Series


@dataclass(frozen=True, slots=True)
class QuestionStep:
    """The additions of one more question to a view: points on its charts, a row of its table, its
    price in the list ``asked = []`` of its code. ``refusal`` says why it is refused, in words and
    in the ledger's own; a question that is refused adds no row.
    """

    price: str
    overlays: tuple[Overlay, ...]
    row: tuple[str, ...] = ()
    refusal: str = ""
    ledger_words: str = ""


@dataclass(frozen=True, slots=True)
class Guess:
    """Whether a guess of an outcome was right; the page counts the guesses of the same label.

    ``bound`` says in words how often such a guess can be right.
    """

    label: str
    is_right: bool
    bound: str = ""


@dataclass(frozen=True, slots=True)
class StepPoints:
    """The points of the series of this label after each step, on the chart at this place."""

    chart: int
    label: str
    points: tuple[tuple[tuple[float, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class ExperimentOutcome:
    """One random outcome of an experiment, in words, as points, or over the view's charts.

    An outcome that can be played has a sentence for each of its ``steps``.
    """

    says: str
    points: tuple[NoisyNumber, ...] = ()
    overlays: tuple[Overlay, ...] = ()
    guesses: tuple[Guess, ...] = ()
    steps: tuple[str, ...] = ()
    frames: tuple[StepPoints, ...] = ()


RecordOutcomes = Callable[[Sequence[ControlValues]], Iterator[ExperimentOutcome]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A button that draws a random outcome.

    ``controls`` names the controls that the outcome depends on. One that is charged takes the
    view's step first. An immediate experiment runs by itself whenever one of its
    controls has moved. An export records at most ``recorded`` outcomes, by ``record`` if many
    together take less time; outcomes for the same values must be independent of one another.
    ``unit`` labels the axis of the outcome's numbers; ``busy`` stands in the box while the outcome
    is computed. ``timelines`` are the places of the charts whose first axis counts the steps of an
    outcome; an experiment that has some can be played step by step.
    """

    name: str
    button: str
    label: str
    controls: tuple[str, ...]
    run: Callable[[ControlValues], ExperimentOutcome]
    is_charged: bool = False
    is_immediate: bool = False
    recorded: int = 8
    unit: str = "value"
    busy: str = ""
    record: RecordOutcomes | None = None
    timelines: tuple[int, ...] = ()

    def outcomes(self, values: Sequence[ControlValues]) -> Iterator[ExperimentOutcome]:
        """An outcome for each of these values, in order."""
        return map(self.run, values) if self.record is None else self.record(values)


@dataclass(frozen=True, slots=True)
class History:
    """The questions that were asked on a page, one after another, each at its own price.

    The control ``price`` holds the price of the next one, and the control ``topic`` names it. The
    controls ``fixed`` rest after the first question. A view depends on how many questions were
    asked at each price, not on their order: these counts follow the places of the controls, and
    ``values["asked"]`` lists the prices, lower ones first.
    """

    price: str
    topic: str
    fixed: tuple[str, ...]
    admits: Callable[[ControlValues], bool]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: one sentence, a question with its answer, controls, and a view for their values."""

    name: str
    title: str
    lead: str
    question: str
    answer: str
    notes: tuple[str, ...]
    controls: tuple[Control, ...]
    presets: tuple[Preset, ...]
    compute: Callable[[ControlValues], View]
    experiments: tuple[Experiment, ...] = ()
    history: History | None = None

    @property
    def start(self) -> ControlPlaces:
        """The places of the first view."""
        return (*(control.place for control in self.controls), *self.none_asked)

    @property
    def none_asked(self) -> tuple[int, ...]:
        """The counts of questions before the first one."""
        return (0,) * len(self.prices)

    @property
    def prices(self) -> tuple[ControlValue, ...]:
        """The prices that a question can have, if the page remembers questions."""
        if self.history is None:
            return ()
        return self.controls[self.place_of(self.history.price)].values

    def address(self, preset: Preset) -> str:
        """The end of an address that sets the controls so, as the page's script reads it."""
        texts = ((name, shown(value)) for name, value in preset.values.items())
        return "&".join(f"{name}={quote(text, safe='')}" for name, text in texts)

    @property
    def is_playable(self) -> bool:
        """Whether an outcome can be played step by step."""
        return any(one.timelines for one in self.experiments)

    def place_of(self, name: str) -> int:
        """The place of the control of this name."""
        return [control.name for control in self.controls].index(name)

    def values(self, places: ControlPlaces) -> dict[str, Any]:  # Any: as in `ControlValues`
        """The value of each control; `InvalidArgument` for places that no control has."""
        sizes = [*(len(control.values) for control in self.controls), *(_MOST for _ in self.prices)]
        if len(places) != len(sizes) or any(
            not 0 <= place < size for place, size in zip(places, sizes, strict=True)
        ):
            raise self._no_view(places)
        found: dict[str, Any] = {
            control.name: control.values[place]
            for control, place in zip(self.controls, places, strict=False)
        }
        if self.history is not None:
            counts = zip(self.prices, places[len(self.controls) :], strict=True)
            found["asked"] = tuple(price for price, count in counts for _ in range(count))
            if not self.history.admits(found):
                raise self._no_view(places)
        return found

    def _no_view(self, places: ControlPlaces) -> InvalidArgument:
        return InvalidArgument(f"places = {places}: {self.name} has no such view")

    def view(self, places: ControlPlaces) -> View:
        """The view at these places."""
        return self.compute(self.values(places))

    def all_places(self) -> Iterator[ControlPlaces]:
        """The places of every view, in order."""
        for places in product(*(range(len(control.values)) for control in self.controls)):
            for counts in self._admitted(places, self.none_asked):
                yield (*places, *counts)

    def _admitted(self, places: ControlPlaces, counts: ControlPlaces) -> Iterator[ControlPlaces]:
        """These counts, and all that more questions lead to while they are admitted."""
        yield counts
        last = max((place for place, count in enumerate(counts) if count), default=0)
        for place in range(last, len(counts)):
            more = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
            try:
                self.values((*places, *more))
            except InvalidArgument:
                continue
            yield from self._admitted(places, more)

    def experiment(self, name: str) -> Experiment:
        """The experiment of this name."""
        for one in self.experiments:
            if one.name == name:
                return one
        raise InvalidArgument(f"{self.name} has no experiment {name!r}")

    def own_places(self, experiment: Experiment) -> Iterator[ControlPlaces]:
        """Places that differ in the experiment's own controls only; the others stand at 0."""
        return product(
            *(
                range(len(control.values)) if control.name in experiment.controls else (0,)
                for control in self.controls
            ),
            *((0,) for _ in self.prices),
        )


def written(places: Sequence[int]) -> str:
    """The places as text, such as 3-0-12."""
    return "-".join(map(str, places))


def read(text: str) -> ControlPlaces:
    """The places that `written` wrote."""
    parts = text.split("-")
    if len(text) > 40 or not all(part.isascii() and part.isdigit() for part in parts):
        raise InvalidArgument("places: give whole numbers with - between them")
    return tuple(map(int, parts))


def to_json(value: View | ExperimentOutcome) -> str:
    """The value as JSON in one line."""
    return json.dumps(asdict(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
