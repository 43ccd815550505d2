"""Private training on features learned from public data, beside training on private data only."""

from discreet.train.examples import finetuning

print(finetuning.main(epsilon=1, delta=1e-5))
