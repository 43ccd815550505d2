"""The GPU's benchmark takes turns, counts as it says, and measures nothing where there is none."""

import re
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from benchmarks.train_gpu import LARGER, Cuda, Kind, Mixed, Row, main, measured, print_report
from benchmarks.train_models import Gpt, Task
from benchmarks.train_steps import Step


class Scripted:
    """Runs each step, and reports the figures that were given for it."""

    def __init__(self, seconds: Iterator[float]) -> None:
        self.told = seconds
        self.runs = 0

    def seconds(self, run: Step) -> float:
        run()
        self.runs += 1
        return next(self.told)

    def peak(self, run: Step) -> float:
        run()
        return next(self.told)


def small(device: str = "cpu") -> Mixed:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    return Mixed.on(torch.device(device), Task(model, torch.randn(6, 4), torch.randint(2, (6,))))


def test_steps_take_turns_and_the_median_of_ratios_counts() -> None:
    seconds = [50.0, 90.0, *(2.0, 6.0), *(4.0, 8.0), *(20.0, 50.0)]  # the first two warm up
    meter = Scripted(iter([*seconds, 700.0, 900.0]))
    row = measured(small(), meter, rounds=3, at_once=2)
    assert meter.runs == 8
    assert row.plain == Kind([1, 2, 10], 700)
    assert row.private == Kind([3, 4, 25], 900)
    assert row.ratio == 2.5
    assert row.rate(row.plain) == 3
    assert row.rate(row.private) == 6 / 4


def test_each_kind_of_step_trains_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    task, seen = small(), set[torch.dtype]()
    first = task.model.get_submodule("0")
    first.register_forward_hook(lambda _, __, result: seen.add(result.dtype))
    moved = []

    class Watching(Scripted):
        def seconds(self, run: Step) -> float:
            before = [parameter.detach().clone() for parameter in task.model.parameters()]
            run()
            pairs = zip(before, task.model.parameters(), strict=True)
            moved.append(any(not torch.equal(*pair) for pair in pairs))
            return 1.0

    measured(task, Watching(iter([1.0, 1.0])), rounds=1, at_once=1)
    assert moved == [True] * 4
    assert seen == {torch.bfloat16}


def test_the_printed_report(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {
        "one": Row(10, Kind([0.001] * 3, 2.0**30), Kind([0.002] * 3, 3 * 2.0**29)),
        "other": Row(10, Kind([0.001] * 3, 2.0**30), Kind([0.0013] * 3, 2.0**30)),
    }
    print_report(rows, "NVIDIA X")
    shown = capsys.readouterr().out
    assert re.search(r"one +1\.00 ms +2\.00 +10,000 +5,000 +1\.00 GiB +1\.50 GiB +1\.50", shown)
    last = r"train_gpu: worst ratio = 2\.00, NVIDIA X, torch \S+, \d{4}-\d\d-\d\d"
    assert re.fullmatch(last, shown.splitlines()[-1])


def test_the_larger_model_has_its_size() -> None:
    with torch.device("meta"):
        task = LARGER["GPT 1024"]()
    assert isinstance(task.model, Gpt)
    blocks = 12 * (12 * 1024**2 + 13 * 1024)  # weights, biases and norms of each
    around = 2 * 8192 * 1024 + 512 * 1024 + 2 * 1024
    assert sum(parameter.numel() for parameter in task.model.parameters()) == blocks + around
    assert task.data.shape == (32, 512)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_without_cuda_nothing_is_measured() -> None:
    with pytest.raises(SystemExit, match="no CUDA device is here, so nothing was measured"):
        main()


@pytest.mark.skipif(
    not torch.cuda.is_available(),
    reason="no CUDA device is here; where one is: python -m pytest tests/train -k gpu_benchmark",
)
def test_a_gpu_s_time_and_memory_are_measured() -> None:
    row = measured(small("cuda"), Cuda(), rounds=2, at_once=2)
    assert min(row.plain.seconds + row.private.seconds) > 0
    assert row.private.peak > 0
