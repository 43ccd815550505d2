"""DP-SGD for one weight, step by step: clipped gradients, their sum, noise, the new weight."""

from discreet.train.examples import line

print(line.main(epsilon=5, delta=1e-5))
