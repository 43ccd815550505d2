"""PyTorch's initializers as methods, so that modes follow one function instead of two."""

from torch import Tensor, nn

from discreet.train._calls._arguments import Args, Function, Keywords, named

_METHODS: dict[Function, tuple[Function, str]] = {  # and the names of its arguments
    nn.init.normal_: (Tensor.normal_, "mean std"),
    nn.init.uniform_: (Tensor.uniform_, "a b"),
    nn.init.constant_: (Tensor.fill_, "val"),
}
INITIALIZERS = frozenset(_METHODS)


def as_method(
    function: Function, args: Args, keywords: Keywords
) -> tuple[Function, Args, Keywords]:
    """The tensor's method that an initializer calls, or the function itself."""
    if function not in _METHODS:
        return function, args, keywords
    method, names = _METHODS[function]
    given = named(f"tensor {names} generator", args, keywords)
    rest = {"generator": given["generator"]} if given.get("generator") is not None else {}
    return method, tuple(given[name] for name in f"tensor {names}".split()), rest
