"""Runs a plan: bounds the contribution of each unit, and adds up.

Read `_compiled_plan` first, which is the whole. `_compiling` turns closed values into expressions
of the engine, with `_stages` for intermediate values, and `_carriers`
finds sums that follow from others. `_numbering` numbers the groups, `_choice`
chooses those that a unit counts in, and `_bounding` clamps and adds up. `_cells`, `_cell_choice`
and `_cell_sums` give the same integers in NumPy, where public facts allow it.
"""
