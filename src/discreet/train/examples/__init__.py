"""Small training runs on made-up data, to read and to try: each module has a ``main``.

`line` shows one weight step by step, `clusters` private training beside plain, and `finetuning`
features from public data. `_boundaries` has the boundary after each step.
"""
