"""Queries as closed values: both SQL and Python calls become these.

Read `_aggregates` (one row for each aggregate function) and `_expressions` first, then `_query`,
and `_relation` for what stands in FROM. `_where` finds which keys and bounds a condition leaves.
`_inference` derives types and bounds, `_keys` and `_integer_images` the groups that can occur.
`_expression_text` writes values as SQL, with the words of `_sql_words`. From Python: `_frame`,
`_python_values` and `_aggregate_functions`; `_levels` names quantiles.
"""
