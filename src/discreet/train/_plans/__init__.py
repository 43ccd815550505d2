"""Plans of training runs: what a run does and costs, fixed before its first step.

Read `_plan`, then `_sampling` (how batches are drawn), `_noise` (kinds of noise, with their
losses), `_adaptive` (a clip norm that moves) and `_report`. `_clip` is the part of clipping that a
plan needs, without PyTorch.
"""
