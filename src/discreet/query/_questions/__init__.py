"""A question from its check to its release.

Read `_question` first: price, compile, charge, compute, add noise. `_frame_after` adds
post-processing from Python, `_accuracy` finds the epsilon for an error, `_usefulness` warns of
answers that will tell nothing, `_admission` asks a ledger about several charges. `_diagnosis` and
`_null_share` are questions about what a declaration cuts off.
"""
