"""Without PyTorch the doctests of `discreet.train` are left out; its tests say how to get it."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/discreet/train/*"]
