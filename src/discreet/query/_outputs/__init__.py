"""Computes with an answer's noisy numbers, as HAVING, ORDER BY and arithmetic do.

Read `_post_processing` first, which checks it, with the types of `_output_types`. `_outputs` has
linear forms and `_evaluation` the others, by the images of `_output_functions`. `_chosen_rows`
chooses and sorts rows, and `_quantile_order` keeps quantiles in the order of their levels.
"""
