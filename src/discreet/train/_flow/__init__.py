"""How tags follow data through PyTorch's functions: one rule for each function.

A rule takes a `Call`: the function's arguments with their tags, and its result. It returns the tag
of the result, or one tag for each of its tensors if they differ. After a function without a rule,
rows are untracked. Read `_call`, then `_follow`, which applies the rules, `_table` for the
functions and their rules, then the files by kind of function: `_shapes`, `_dims`, `_products`,
`_parts`, `_indexing`, `_picks`, `_row_numbers`, `_groups`, `_layers`, `_losses`, `_random`, and
`_writing` in place. `_parsed_index` reads an index, `_places` is for rows by their place,
`_omitted` for arguments that rules leave out. `_counts` follows indices 0, 1, 2, ..., which depend
on no data.
"""

from discreet.train._flow._call import LIKE_OTHERS, Call, name_of
from discreet.train._flow._counts import count_on
from discreet.train._flow._follow import (
    follow,
    gives_sizes,
    has_own_draws,
    has_public_shapes,
    is_known,
    parts_of,
    sets_first,
    shared_now,
)
from discreet.train._flow._random import draws, has_own_numbers, is_even, is_random

__all__ = [
    "LIKE_OTHERS",
    "Call",
    "count_on",
    "draws",
    "follow",
    "gives_sizes",
    "has_own_draws",
    "has_own_numbers",
    "has_public_shapes",
    "is_even",
    "is_known",
    "is_random",
    "name_of",
    "parts_of",
    "sets_first",
    "shared_now",
]
