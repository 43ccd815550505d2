"""The models whose steps are timed, each with a made-up batch."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  as PyTorch's own code has it
from torch import Tensor, nn


@dataclass(frozen=True)
class Task:
    """A model, its batch and the loss of each example."""

    model: nn.Module
    data: Tensor
    labels: Tensor

    @property
    def examples(self) -> int:
        """The number of examples."""
        return len(self.data)

    def losses(self) -> Tensor:
        """Per-example losses, shape (example,)."""
        return self.cross_entropies(self.model(self.data), self.labels)

    @staticmethod
    def cross_entropies(scores: Tensor, labels: Tensor) -> Tensor:
        """Per-example losses from scores of shape (example, class); for scores of shape (example,
        time, class), the mean over time."""
        if scores.dim() == 2:
            return F.cross_entropy(scores, labels, reduction="none")
        flat = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none")
        return flat.view(labels.shape).mean(1)


class Block(nn.Module):
    """Causal attention and two linear maps, each after a normalisation."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, data: Tensor) -> Tensor:
        """Map (example, time, width) to the same shape."""
        examples, time, width = data.shape
        split = self.inward(self.norm(data)).view(examples, time, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        data = data + self.outward(found.transpose(1, 2).reshape(examples, time, width))
        result: Tensor = data + self.down(F.gelu(self.up(self.second_norm(data))))
        return result


class Gpt(nn.Module):
    """A small language model."""

    def __init__(
        self, vocabulary: int, width: int, time: int, layers: int, *, heads: int = 4
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(time, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def placed(self, words: Tensor) -> Tensor:
        """The positional embedding, shape (time, width)."""
        found: Tensor = self.places(torch.arange(words.shape[1], device=words.device))
        return found

    def forward(self, words: Tensor) -> Tensor:
        """Map words (example, time) to scores (example, time, vocabulary)."""
        data = self.words(words) + self.placed(words)
        result: Tensor = self.head(self.norm(self.blocks(data)))
        return result


class Adapted(nn.Module):
    """A frozen linear map plus a trained map of low rank."""

    def __init__(self, inner: nn.Linear, rank: int) -> None:
        super().__init__()
        self.inner = inner
        self.down = nn.Linear(inner.in_features, rank, bias=False)
        self.up = nn.Linear(rank, inner.out_features, bias=False)

    def forward(self, data: Tensor) -> Tensor:
        """The sum of the two maps."""
        result: Tensor = self.inner(data) + self.up(self.down(data))
        return result


class Classifier(nn.Module):
    """An LSTM over words, and a linear map from its last state to classes."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.last = nn.Embedding(1000, 64), nn.Linear(128, 2)
        self.inner = nn.LSTM(64, 128, batch_first=True)

    def forward(self, words: Tensor) -> Tensor:
        """Map words (example, time) to scores (example, class)."""
        result: Tensor = self.last(self.inner(self.words(words))[0][:, -1])
        return result


def mlp() -> Task:
    """784-256-256-10, batch 256."""
    layers = [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return Task(nn.Sequential(*layers), torch.randn(256, 784), torch.randint(10, (256,)))


def cnn() -> Task:
    """Three convolutions with group norms on 3 x 32 x 32, batch 128."""
    layers: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if after != before else [nn.AdaptiveAvgPool2d(1)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, 10))
    return Task(model, torch.randn(128, 3, 32, 32), torch.randint(10, (128,)))


def gpt() -> Task:
    """4 layers of width 256, 8 192 words, 16 sequences of 128."""
    words = torch.randint(8192, (16, 128))
    return Task(Gpt(8192, 256, 128, 4), words, words.roll(-1, 1))


def large_gpt() -> Task:
    """12 layers of width 1 024, 8 192 words, 32 sequences of 512: for a GPU."""
    words = torch.randint(8192, (32, 512))
    return Task(Gpt(8192, 1024, 512, 12, heads=16), words, words.roll(-1, 1))


def lora() -> Task:
    """The model of `gpt`, with only adapters of rank 8 trained."""
    task = gpt()
    task.model.requires_grad_(requires_grad=False)
    for block in task.model.modules():
        if isinstance(block, Block):
            for name in ("inward", "outward", "up", "down"):
                setattr(block, name, Adapted(getattr(block, name), 8))
    return task


def lstm() -> Task:
    """64 sequences of 64 words."""
    return Task(Classifier(), torch.randint(1000, (64, 64)), torch.randint(2, (64,)))


MODELS: dict[str, Callable[[], Task]] = {
    "MLP": mlp,
    "CNN": cnn,
    "GPT": gpt,
    "LoRA": lora,
    "LSTM": lstm,
}
