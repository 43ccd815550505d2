"""A forward pass: each use of weights is recorded, and each tensor of data is tagged.

Read `_capture` first, then `_tagging` and `_uses`; `_arranged` moves rows to where a rule expects
them. `_shared` knows the tensors that depend on no data. Refused are calls that no tag can follow:
`_unfollowed`, `_unseen`, `_unintercepted` and `_backward`. `_input_gradients` tags gradients that
losses compute. `_zeroed_memory` serves other passes.
"""
