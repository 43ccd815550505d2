"""Data of a run: tensors and arrays by name, or items by number, and the units of their rows.

Read `_data`, then `_collated` (items that the user's function collates) and `_units`.
"""
