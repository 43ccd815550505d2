"""DP-SGD for one weight, step by step: gradients, clipped, their sum, noise, the weight."""

from discreet.train.examples import line

print(line.main(epsilon=5, delta=1e-5))
