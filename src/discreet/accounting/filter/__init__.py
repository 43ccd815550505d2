"""The privacy filter: whether a charge that is chosen adaptively still fits under a limit.

Read in this order: `_filter` decides; `_sums` has what it adds up, in whole numbers,
and the shares of delta for the sums; `_domination` finds the Gaussian that dominates a privacy
loss.
"""
