"""Privacy loss distributions: certified bounds on delta from the law of a sum of losses on a grid.

Read in this order:

- `_dominating_pairs`: what is composed, as atoms and smooth pieces, and a single loss;
  `_continuous`: the pieces, and limits of floating point,
- `_discretize`: a pair on a grid, from above and from below,
- `_tilted_sum`, `_composition` and `_convolution`: sums of tilted laws on a window, and sums of few
  short laws,
- `_tilt` and `_grid`: which tilt and which grid to take, by coarse estimates,
- `_composed_pair`: one pair for a whole sum, precise at all losses,
- `_distribution`: epsilon at a delta, and delta at one epsilon or at all.
"""
