"""Checks of a model and its losses, which compare the engine with a plain loop.

Read `_model_check` (how many examples are compared), `_checking` and `_made_up` (which ones), then
`_comparison`, `_bad_values` and `_caught_errors`. `_loss_identity` and `_microbatch` tell what was
compared; `_memory` estimates how many examples fit.
"""
