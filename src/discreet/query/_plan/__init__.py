"""Plans: the sums that a question needs, and their price.

Read `_plan` first: the sums of `_sums`, on the integer grids of `_sum_grids`, each with its
sensitivity. `_private_keys` and `_key_counts` are plans for groups that come from the rows.
`_price` shares the epsilon among the sums and chooses the noise of each.
"""
