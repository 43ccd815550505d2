"""The pages on training show real runs at the price they name, and need PyTorch only for these."""

import math
import subprocess
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Unit, explore
from discreet.accounting import BoundedRange, PrivacyLoss
from discreet.errors import InvalidArgument
from discreet.explore import pages
from discreet.explore._page import ExperimentOutcome
from discreet.explore.pages import _clusters, _example, _temperature, _training
from discreet.explore.pages._clusters import (
    ClusterPoints,
    ClusterSides,
    RunSettings,
    SeparatingLine,
)
from discreet.explore.pages._texts import at_most, at_most_percent, percent
from discreet.mechanisms import Bounded, Sensitivity
from discreet.mechanisms.selection import ExponentialMechanism, Moves
from discreet.train import plan

PAGES = ("training", "example", "temperature")


@pytest.mark.parametrize(
    ("noise", "batch", "records", "steps"), [(0.5, 20, 200, 30), (8, 100, 200, 30), (4, 60, 60, 15)]
)
def test_the_price_shown_is_that_of_the_plan_that_runs(
    noise: float, batch: int, records: int, steps: int
) -> None:
    made = plan(multiplier=noise, delta=1e-5, records=records, batch=batch, steps=steps)
    shown = _clusters.run_loss(noise, batch / records, steps).epsilon(_clusters.DELTA)
    assert shown == pytest.approx(made.epsilon, rel=1e-9)


def check_overlays(name: str, outcome: ExperimentOutcome) -> None:
    """The page has the axes on which an outcome draws."""
    page = pages.page(name)
    charts = pages.view(name, page.start).charts
    for overlay in outcome.overlays:
        chart = charts[overlay.chart]
        assert overlay.series.points
        for x, y in overlay.series.points:
            assert chart.x.low <= float(x) <= chart.x.high
            assert chart.y.low <= float(y) <= chart.y.high


@pytest.mark.parametrize("name", PAGES)
def test_private_runs_differ_and_are_drawn_on_the_axes(name: str) -> None:
    page = pages.page(name)
    first = page.experiments[0]
    assert first.is_immediate
    drawn = [first.run(page.values(page.start)) for _ in range(2)]
    assert drawn[0].overlays
    assert drawn[0].overlays != drawn[1].overlays
    for outcome in drawn:
        check_overlays(name, outcome)


def test_an_outcome_in_python_lies_on_the_charts_of_its_view() -> None:
    shown = explore.view("training", {"noise": 8})
    drawn = explore.outcome("training", "train", {"noise": 8})
    added = [
        series.label
        for before, after in zip(shown.charts, drawn.charts, strict=True)
        for series in after.series[len(before.series) :]
    ]
    assert added[-1] == "private"
    assert drawn.says != shown.says
    assert drawn.figures == shown.figures
    with pytest.raises(InvalidArgument, match="no experiment"):
        explore.outcome("training", "guess")


def test_each_step_of_a_run_has_the_librarys_numbers() -> None:
    """The sentences of two runs whose lines are known, and their lines on the maps."""
    settings = RunSettings(clip=0.5, noise=2, batch=50, rate=5)
    data = _clusters.clusters(200, 1)
    plain = _clusters.plain_lines(*data, rate=5, steps=20)
    private = tuple(SeparatingLine(math.cos(n), math.sin(n), 0.1) for n in range(20))
    played = _training._outcome(settings, private)
    for number, (text, one, two) in enumerate(
        zip(played.steps, private, plain, strict=True), start=1
    ):
        epsilon = _clusters.run_loss(2, 50 / 200, number).epsilon(_clusters.DELTA)
        assert f"Step {number} of 20: ε = {at_most(epsilon)};" in text
        shares = [percent(line.right(*data)) for line in (one, two)]
        assert f"right answers: private {shares[0]}, plain {shares[1]}." in text
    on_plain, on_private = played.frames
    assert on_plain.points == tuple(line.within(4.2) for line in plain)
    assert on_private.points == tuple(line.within(4.2) for line in private)
    charts = pages.view("training", pages.page("training").start).charts
    assert charts[on_plain.chart].series[-1].label == on_plain.label
    assert played.overlays[0].chart == on_private.chart
    assert played.overlays[0].series.label == on_private.label
    assert on_private.points[-1] == played.overlays[0].series.points


def test_runs_of_one_plan_are_those_of_their_own_settings() -> None:
    """With hardly any noise and all examples in a step, each run gives the line of the same steps
    without noise, from the untrained model on."""
    data = _clusters.clusters(100, 1)
    settings = [RunSettings(clip, 0.01, 100, rate) for clip, rate in ((0.1, 1), (2, 5), (0.1, 1))]
    runs = list(_clusters.private_lines(*data, settings, records=100, steps=3))
    for one, lines in zip(settings, runs, strict=True):
        [expected] = _clusters.simulated(
            *data,
            clip=one.clip,
            noise=0,
            batch=100,
            records=100,
            rate=one.rate,
            steps=3,
            chance=np.random.default_rng(1),
            runs=1,
        )
        found = lines[-1].across, lines[-1].up, lines[-1].offset
        assert found == pytest.approx(expected, abs=0.01 * one.rate * one.clip)
        assert len(lines) == 3


@pytest.mark.parametrize(
    ("name", "experiment", "runs"),
    [("training", "train", 360), ("example", "train", 160 + 32), ("temperature", "fit", 8)],
)
def test_recorded_outcomes_at_the_same_values_share_no_run(
    name: str, experiment: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at each value. Runs that do not depend on a control are shared among its values."""
    made = list[SeparatingLine]()

    def one_after_another(
        points: ClusterPoints,
        labels: ClusterSides,
        settings: Sequence[RunSettings],
        *,
        records: int,
        steps: int,
    ) -> Iterator[tuple[SeparatingLine, ...]]:
        assert records in (100, 200)
        for _each in settings:
            made.append(SeparatingLine(math.cos(len(made)), math.sin(len(made)), 0))
            yield (made[-1],) * steps

    monkeypatch.setattr(_clusters, "private_lines", one_after_another)
    page = pages.page(name)
    one = page.experiment(experiment)
    values = [page.values(places) for places in page.own_places(one) for _ in range(2)]
    drawn = list(one.outcomes(values))
    assert len(drawn) == len(values)
    assert len(made) == runs
    for first, second in zip(drawn[::2], drawn[1::2], strict=True):
        assert first.overlays[0].series.points != second.overlays[0].series.points
        assert first.overlays[-1].series.points != second.overlays[-1].series.points or (
            name == "training"  # a share of right answers
        )


def test_recorded_guesses_at_the_same_values_share_no_run() -> None:
    page = pages.page("example")
    places = page.own_places(page.experiment("guess"))
    keys = _example._run_keys([page.values(each) for each in places for _ in range(3)])
    assert len(keys) == len({*keys}) == 240
    assert len({_example._without(key) for key in keys}) == 48


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_every_run_is_drawn_on_the_axes(name: str) -> None:
    page = pages.page(name)
    for experiment in page.experiments:
        for places in page.own_places(experiment):
            check_overlays(name, experiment.run(page.values(places)))


def test_without_pytorch_the_pages_name_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from discreet.explore import pages\n"
        f"for name in {PAGES}:\n"
        "    page = pages.page(name)\n"
        "    assert pages.view(name, page.start).rows\n"
        "    for one in page.experiments:\n"
        "        first, second = one.outcomes([page.values(page.start)] * 2)\n"
        "        print(first.says)\n"
        "        assert bool(first.overlays) == bool(second.overlays)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = ran.stdout.splitlines()
    assert len(said) == 5
    assert "100 simulated private models" in said.pop(3)  # it needs no PyTorch
    assert set(said) == {_clusters.NEEDS}
    assert "pip install 'discreet[torch]'" in said[0]


@given(*[st.floats(-5, 5)] * 3, st.floats(0.5, 20))
def test_a_line_is_cut_to_its_square(across: float, up: float, offset: float, reach: float) -> None:
    """Both ends are on the line and in the square; none means that the line misses the square."""
    line = SeparatingLine(across, up, offset)
    ends = line.within(reach)
    scores = line.margins(reach * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]))
    length = float(np.hypot(across, up))
    if not ends:
        assert length < 1e-8 or np.all(scores >= -1e-6) or np.all(scores <= 1e-6)
    for x, y in ends:
        assert max(abs(x), abs(y)) <= reach + 5e-4
        assert abs(across * x + up * y + offset) <= 2e-3 * length + 1e-9


def test_the_plain_line_is_that_of_pytorch() -> None:
    """The page's gradient descent gives the line of `discreet.train.examples.clusters`."""
    import torch

    from discreet.train.examples import clusters

    points, labels = clusters.made_up(100)
    x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)
    expected = clusters.trained_plainly(x, y)
    found = _clusters.plain_lines(points, labels, rate=clusters.RATE, steps=clusters.STEPS)[-1]
    assert (found.across, found.up) == pytest.approx(expected.normal, rel=1e-3)
    assert found.offset == pytest.approx(expected.offset, abs=1e-3)


def test_an_example_far_away_moves_the_plain_line_and_hardly_the_clipped_one() -> None:
    """Before any noise; the noise moves the private line more than this."""
    moved = [_example._plain(None).angle(_example._plain(far)) for far in (1, 4, 8)]
    assert moved == sorted(moved)
    assert moved[-1] > 15
    clipped = [_example._clipped(_example._data(far), 0.5) for far in (None, 8)]
    assert clipped[0].angle(clipped[1]) < 2


@pytest.mark.parametrize("distance", [None, 8])
def test_every_step_takes_all_examples_whether_or_not_the_one_is_there(
    distance: float | None,
) -> None:
    """The sampling rate must not tell. The tolerance is ten standard deviations of the noise, and a
    third of what one example that is left out of one step can change."""
    key = distance, 0.5, 0.01, 0
    found = _example._private([key])[key]
    expected = _example._clipped(_example._data(distance), 0.5)
    assert (found.across, found.up, found.offset) == pytest.approx(
        (expected.across, expected.up, expected.offset), abs=5e-3
    )


def test_a_pair_of_runs_says_how_much_the_example_does() -> None:
    """Beside the angle, which is mostly that of two runs' noise."""
    page = pages.page("example")
    values = page.values(page.start)
    turned = _example._turned(values["distance"], values["clip"])
    assert turned < 2
    said = f"Without noise it would be {turned:.1f}°, by the example alone"
    assert said in page.experiment("train").run(values).says


@pytest.mark.parametrize("clip", [0.5, 8])
def test_the_spread_of_runs_stands_beside_the_part_of_the_example(clip: float) -> None:
    """In words and in grey. Half of the pairs of runs without the example lie further apart."""
    view = explore.view("example", {"clip": clip})
    [grey] = [
        [one for one in chart.series if one.kind == "line"]
        for chart in view.charts
        if chart.title == "Private training"
    ]
    assert len(grey) == 8
    assert "8 simulated ones" in view.charts[1].about
    runs, apart = _example._runs_without(clip, 8), _example._apart(clip, 8)
    pairs = [one.angle(other) for one, other in zip(runs[::2], runs[1::2], strict=True)]
    assert sum(one > apart for one in pairs) == len(pairs) / 2
    assert apart > 2 * _example._turned(8, clip)
    assert f"without it differ by {apart:.0f}° in the median" in view.says


def test_clipped_training_without_limit_is_plain() -> None:
    free, plain = _example._clipped(_example._data(None), 1e9), _example._plain(None)
    assert free.margins(np.eye(2)) == pytest.approx(plain.margins(np.eye(2)))


def test_a_guess_names_the_truth_and_the_plain_model_gives_it_away() -> None:
    page = pages.page("example")
    outcome = page.experiment("guess").run(page.values(page.start))
    plain, private = outcome.guesses
    assert private.bound
    assert plain.is_right
    assert outcome.says.endswith("right" if private.is_right else "wrong")


@given(st.lists(st.floats(0, 50), min_size=len(_temperature._TEMPERATURES), max_size=9))
def test_one_point_moves_the_scores_by_at_most_their_sensitivity(losses: list[float]) -> None:
    """All in the same direction, as `Moves.TOGETHER` says."""
    fine, longest = _temperature._FINE, _temperature._LONGEST
    units = np.rint(fine * np.minimum(losses, longest))
    assert np.all(units >= 0)
    assert np.all(units <= fine * longest)


@pytest.mark.parametrize("choice", [0.1, 1, 3])
def test_the_choice_costs_what_the_page_adds(choice: float) -> None:
    count = len(_temperature._TEMPERATURES)
    asked = Bounded(
        lambda: np.zeros(count, np.int64),
        sensitivity=Sensitivity(linf=150, length=count),
        unit=Unit.ROW,
        name="scores",
        shape=(count,),
    )
    mechanism = ExponentialMechanism.for_epsilon(
        choice, asked, list(range(count)), moves=Moves.TOGETHER
    )
    loss = mechanism.privacy_loss(asked)
    assert loss.epsilon() == choice
    assert loss.epsilon(1e-5) == PrivacyLoss.of(BoundedRange(choice)).epsilon(1e-5)


@pytest.mark.parametrize("data", [_temperature.PUBLIC, _temperature.PRIVATE_POINTS])
def test_curves_lie_on_the_points_that_the_caption_names(data: str) -> None:
    chart = explore.outcome("temperature", "fit", {"data": data}).charts[0]
    plain, private = (one for one in chart.series if one.kind == "line")
    is_public = data == _temperature.PUBLIC
    assert (plain.label, private.label) == ("plain model", "private model")
    assert f"on the {data}" in chart.about
    expected = _temperature._curve("", _temperature._plain(), 0, is_public=is_public)
    assert plain.points == expected.points
    elsewhere = _temperature._curve("", _temperature._plain(), 0, is_public=not is_public)
    assert plain.points != elsewhere.points


@pytest.mark.parametrize("is_public", [False, True])
def test_the_best_temperature_lies_inside_the_grid(is_public: bool) -> None:
    """For clipped training without noise, whose scores are the most timid."""
    x, labels = _temperature._PRIVATE_POINTS
    x, weights = np.column_stack([x, np.ones(len(x))]), np.zeros(3)
    for _ in range(_temperature._STEPS):
        gradients = (1 / (1 + np.exp(-(x @ weights))) - labels)[:, None] * x
        length = np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), _temperature._CLIP)
        weights -= _temperature._RATE * (_temperature._CLIP * gradients / length).mean(axis=0)
    line = SeparatingLine(*map(float, weights))
    best = int(_temperature._losses(line, is_public=is_public).mean(axis=0).argmin())
    assert 1 < best < len(_temperature._TEMPERATURES) - 2


def test_the_example_has_the_mark_of_its_cluster() -> None:
    """A page marks styles by turns: even ones by circles, odd ones by triangles."""
    series = pages.view("example", pages.page("example").start).charts[0].series
    [example] = [one for one in series if one.label == "the example"]
    assert example.style == _clusters.RIGHT
    assert example.style % 2 == 1


@pytest.mark.parametrize("distance", [None, 1, 8])
@pytest.mark.parametrize("clip", [0.1, 2])
def test_simulated_runs_without_noise_are_clipped_training(
    distance: float | None, clip: float
) -> None:
    """Beside steps that clip each gradient by its length."""
    points, labels = _example._data(distance)
    x, expected = np.column_stack([points, np.ones(len(points))]), np.zeros(3)
    for _ in range(_example._STEPS):
        gradients = (1 / (1 + np.exp(-(x @ expected))) - labels)[:, None] * x
        length = np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True) / clip, 1)
        expected = expected - _example._RATE * (gradients / length).sum(axis=0) / _example._RECORDS
    chance = np.random.default_rng(1)
    for found in _example._simulated((points, labels), clip, 0, chance, runs=3):
        assert found == pytest.approx(expected)


def test_simulated_noise_is_that_of_the_steps() -> None:
    """One step from 0; with a fixed seed, a standard deviation off by 3 % is found."""
    data, chance = _example._data(None), np.random.default_rng(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_example, "_STEPS", 1)
        found = _example._simulated(data, 0.5, 4, chance, runs=20_000)
    stddev = _example._RATE * 4 * 0.5 / _example._RECORDS
    assert found.std(axis=0) == pytest.approx([stddev] * 3, rel=0.03)


def test_simulated_batches_are_drawn_as_those_of_the_steps() -> None:
    """One step from 0, without noise: on average that of all examples, though batches differ."""
    points, labels = _clusters.clusters(200, 1)
    found = _clusters.simulated(
        points,
        labels,
        clip=0.5,
        noise=0,
        batch=20,
        records=200,
        rate=1,
        steps=1,
        chance=np.random.default_rng(1),
        runs=5_000,
    )
    x = np.column_stack([points, np.ones(200)])
    gradients = (0.5 - labels)[:, None] * x
    length = np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True) / 0.5, 1)
    clipped = gradients / length
    assert found.mean(axis=0) == pytest.approx(-clipped.mean(axis=0), abs=0.01)
    # each example is drawn by itself, with probability 0.1
    expected = ((clipped**2).sum(axis=0) * 0.1 * 0.9) ** 0.5 / 20
    assert found.std(axis=0) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", ["clip", "noise", "batch", "rate"])
def test_each_control_of_training_moves_its_pictures(name: str) -> None:
    """The lowest and the highest value show other pictures, on the same axes."""
    page = pages.page("training")
    [control] = [one for one in page.controls if one.name == name]
    low, high = (
        explore.view("training", {name: one}) for one in (control.values[0], control.values[-1])
    )
    assert [one.x for one in low.charts] == [one.x for one in high.charts]
    assert [one.y for one in low.charts] == [one.y for one in high.charts]
    assert low.charts[1].series != high.charts[1].series
    moves_price = low.charts[2].series != high.charts[2].series
    assert moves_price == (name in ("noise", "batch"))


@pytest.mark.parametrize("noise", [2, 16])
def test_many_guesses_keep_the_bound_that_is_named(noise: float) -> None:
    """5,000 guesses: a share so far above its bound has a probability below 1e-9."""
    page = pages.page("example")
    asked = {**page.values(page.start), "noise": noise}
    right, bound = 0, page.compute(asked).figures["bound"]
    for _ in range(50):
        outcome = page.experiment("often").run(asked)
        guesses = [one for one in outcome.guesses if one.label == "private model"]
        assert len(guesses) == 100
        assert {one.bound for one in guesses} == {f"at most {at_most_percent(bound)}"}
        found = sum(one.is_right for one in guesses)
        assert f"{found} guesses are right" in outcome.says
        right += found
    assert right <= 5000 * bound + 6.2 * (5000 * bound * (1 - bound)) ** 0.5
