"""Several tables in one question: joins, unions, rows of each unit, and keys of units.

Read `_derived` first, which derives the declaration of a relation, then `_related`, which computes
its rows, in this process or `_in_server`. `_per_unit` makes one row for each unit. `_linked` has
rows that reach their unit through a key, and `_beside` says which tables SQL and joins may name.
"""
