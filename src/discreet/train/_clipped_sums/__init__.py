"""Sums of clipped gradients of single examples or units.

Read `_engine`, then `_clipping` (the factors) and `_unit_of_example` (units of several examples).
`_plain_loop` computes the same slowly, to compare with.
"""
