"""Privacy loss distributions: proven bounds on delta from the law of a sum of losses on a grid.

Read `_dominating_pairs` first (what is composed), then `_continuous` (smooth components),
`_discretize` (onto a grid, from above and below), `_tilt` and `_composition` (Fourier transforms
of tilted laws), and `_distribution` last (which grid to take, and the bounds that follow).
"""
