"""The scalar functions: one row for each, with its names, types, bounds, keys and meaning.

Read `_scalar_rules` first, the form of a row; then `_number_functions`, `_text_functions` and
`_date_functions`. `_functions` joins them into one table.
"""
