"""Features learned from public data, and what they mean privately: beside all from private data."""

from discreet.train.examples import finetuning

print(finetuning.main(epsilon=1, delta=1e-5))
