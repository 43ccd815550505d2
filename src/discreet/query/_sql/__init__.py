"""Reads an SQL text as a `Query`.

Read `_statement` first. The text goes through `_tokens` and `_text` to sqlglot; then each clause
has a reader: `_from` with `_per_unit`, `_grouping`, `_aggregates`, `_after`; `_values` and
`_leaves` read the expressions in them. `_hints` explains the slips that people make most often.
"""
