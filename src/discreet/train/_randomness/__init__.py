"""Random numbers inside a model: secret in a step, and held in a check.

Read `_secret_draws` first. `_held_draws` and `_deterministic` give all examples the same numbers in
a check, `_undisturbed` sets its state. `_drawn_in_common` and `_drawn_unrecorded` find numbers that
no rule records. `_own_generators` refuses data sets with generators of their own.
"""
