"""State outside of weights: a run refuses models, losses and optimizers that store data in it.

Read `_buffers` and `_attributes` (of models), then `_parametrizations`. `_optimizer_writes` and
`_trainer_writes` watch what losses and trainers write, `_trials` tries optimizers on stand-ins,
`_hooks` calls before and after their steps, `_reachable` finds what a data set can reach, and
`_checksums` and `_tensor_bits` compare bits.
"""
