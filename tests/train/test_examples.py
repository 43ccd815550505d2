"""The examples report what they computed, and cost the epsilon that they state."""

import math

import pytest

from discreet.errors import InvalidArgument
from discreet.train.examples import clusters, finetuning, line
from discreet.train.examples.finetuning import PRIVATE, RINGS
from tests.bad_values import BadValue

EXAMPLES = {"clusters": clusters, "finetuning": finetuning, "line": line}


def test_clusters_are_told_apart_nearly_as_well_in_private(drawn: list[list[int]]) -> None:
    found = clusters.main(epsilon=1, delta=1e-5, records=400)
    assert len(drawn) == clusters.STEPS
    assert {len(places) for places in drawn} == {400}
    assert found.right(found.plain) > 0.9
    assert found.right(found.private) > found.right(found.plain) - 0.03
    assert found.private != found.plain
    assert 0.99 < found.report.epsilon <= 1
    assert f"private: {found.right(found.private):.1%} right, at epsilon = 1," in repr(found)


def test_less_privacy_less_noise(drawn: list[list[int]]) -> None:
    def slant(found: clusters.Clusters) -> float:
        private, plain = (math.atan2(*each.normal) for each in (found.private, found.plain))
        return abs(private - plain)

    assert slant(clusters.main(epsilon=20)) < 0.1 < slant(clusters.main(epsilon=0.02))


def test_a_line_is_learned_as_reported(drawn: list[list[int]]) -> None:
    """Each step begins where the last one ended, and adds up; noise is as large as is claimed."""
    found = line.main(epsilon=8, delta=1e-5)
    assert found.steps[0].weight == 0
    assert len(found.steps) == len(drawn) == line.STEPS
    scale, weight = float(found.plan.scale(found.plan.phases[0])), 0.0
    for step in found.steps:
        assert step.weight == weight
        assert step.gradients == tuple(
            (weight * x - y) * x for x, y in zip(line.X, line.Y, strict=True)
        )
        assert max(map(abs, step.clipped)) <= line.CLIP
        assert abs(step.noise) < 5 * scale
        moved = line.RATE * (sum(step.clipped) + step.noise) / len(line.X)
        assert step.after == pytest.approx(weight - moved, abs=1e-5)
        weight = step.after
    assert found.steps[0].gradients[-1] < -2 * line.CLIP == 2 * found.steps[0].clipped[-1]
    noise = [step.noise / scale for step in found.steps]
    assert 0.2 < math.sqrt(sum(each**2 for each in noise) / len(noise)) < 2.5
    assert repr(found).count("clipped   ") == line.STEPS
    assert "epsilon = 8 at delta = 1e-05" in repr(found)


def test_the_reported_plain_line_is_that_of_plain_steps() -> None:
    weight = 0.0
    for _ in range(100):
        gradients = [(weight * x - y) * x for x, y in zip(line.X, line.Y, strict=True)]
        weight -= 0.1 * sum(gradients) / len(gradients)
    assert line.least_squares() == pytest.approx(weight)
    assert repr(line.main(epsilon=8)).endswith(f"would go to {weight:+.3f}")


def test_public_features_are_worth_more_than_private_examples(drawn: list[list[int]]) -> None:
    found = finetuning.main(epsilon=1, delta=1e-5, records=1000)
    assert found.fine_tuned > 0.9
    assert found.fine_tuned > found.from_nothing + 0.1
    assert 0.99 < found.plan.epsilon <= 1
    assert f"{found.fine_tuned:.1%}" in repr(found)
    assert len(PRIVATE) == RINGS


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"epsilon": math.nan}, {"delta": 0}])
def test_bad_prices_are_refused(name: str, wrong: dict[str, BadValue]) -> None:
    with pytest.raises(InvalidArgument):
        EXAMPLES[name].main(**wrong)
