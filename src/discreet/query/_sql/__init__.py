"""Reads an SQL text as a `Query`.

Read `_statement` first. The text goes through `_tokens` and `_text` to sqlglot; then each clause
has a reader: `_from` with `_per_unit`, `_grouping`, `_aggregates`, `_after`. The expressions in
them are read by `_tree_reader`, which finds each node's rule in the closed list of `_rules`; the
rules call `_calls`, `_conditions` and `_leaves`. `_hints` explains the slips that people make
most often.
"""
