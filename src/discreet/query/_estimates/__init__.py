"""Numbers with noise: estimates, and the intervals that the law of the noise gives them.

Read `_estimates` first. The numbers lie on a `_grid`, totals have a `_summed_noise`, `_intervals`
follow from it. `_second_moments` has variances, `_correlation` builds on them, and `_enclosed`
computes with numbers that lie in intervals.
"""
