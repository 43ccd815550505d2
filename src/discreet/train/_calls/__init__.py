"""Calls of PyTorch's functions: their arguments, what they change, and what they give away.

Start with `_arguments`, by name however they were given, `_lost_arguments` and `_in_place`.
`_values` and `_assertions` tell which values Python would read; `_objects` refuses objects with
methods of their own. `_graph` searches PyTorch's graph, and `_contexts` closes it to users'
functions. `_composed` has functions made of others. `_initializers`, `_eager` and `_precision` set
modes; `_modes` closes those that users leave open.
"""
