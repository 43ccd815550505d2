"""Tags: which rows of a tensor belong to which example.

Read `_layouts` (orders of examples), `_tag` (the kinds of tags) and `_by_tensor` (the tags of one
forward pass). `_indices` holds facts about tensors of indices, `_draws` about random numbers, and
`_earlier` remembers data of earlier passes. The rules by which tags follow are in `train._flow`.
"""
