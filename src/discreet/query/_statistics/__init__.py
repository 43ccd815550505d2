"""Questions whose answers have shapes of their own, by the mechanisms of `discreet.mechanisms`.

Read `_statistic` first, then `_hand_over`, which hands bounded rows to a mechanism, and
`_statistics`. `_histogram`, `_correlations`, `_contingency` and `_most_frequent` shape answers;
`_suggestion` and `_suggestion_search` find caps, bounds and keys for a declaration, with bounds
that `_round_numbers` makes round.
"""
