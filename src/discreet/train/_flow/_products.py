"""How tags follow products of matrices."""

from typing import Any

import torch
from torch import Tensor

from discreet.train._calls._arguments import tensors_in
from discreet.train._flow._call import OVER_EXAMPLES, Call, ResultTags, of_all, sees_places
from discreet.train._flow._places import BY_PLACE, beside_constants, differs
from discreet.train._tags._by_tensor import Tags
from discreet.train._tags._tag import ExampleRows, Tag, UntrackedRows, merged

_OF_VECTORS = frozenset({torch.linalg.solve, torch.linalg.solve_ex})  # if the shapes agree


@sees_places
def multiplied(call: Call) -> ResultTags:
    """Products of matrices, batch by batch."""
    given = call.named("input other")
    right = _argument(given, "other mat2 vec tensor2")
    return _product_of(call.tags, given["input"], right, call.result)


@sees_places
def added_to_product(call: Call) -> ResultTags:
    """`addmm` and the like: a tensor plus a product of two others."""
    given = call.named("input mat1 mat2")
    if not isinstance(given["input"], Tensor):
        return UntrackedRows("an old form of a product")
    left, right = _argument(given, "mat1 batch1 mat"), _argument(given, "mat2 batch2 vec")
    tag = _product_of(call.tags, left, right, call.result)
    several = [(tag, call.result.dim()), (call.tags.of(given["input"]), given["input"].dim())]
    rank = call.result.dim()
    tag = merged([(one, own) for one, own in several if one is not None], rank)
    if _differs_in_product(call.tags, tag, left, right, rank=rank):
        return BY_PLACE
    return beside_constants(call.tags, tag, [given["input"]], rank)


def _argument(given: dict[str, Any], names: str) -> Tensor:
    """The argument that has one of these names."""
    found: Tensor = next(given[name] for name in names.split() if name in given)
    return found


def _product_of(tags: Tags, left: Tensor, right: Tensor, result: Tensor) -> Tag | None:
    found: list[tuple[Tag, int]] = []
    for which, one in enumerate((left, right)):
        tag = tags.of(one)
        if isinstance(tag, ExampleRows):
            back = tag.dim - one.dim()  # from the end
            contracted = -1 if which == 0 or one.dim() == 1 else -2
            if back == contracted:
                return OVER_EXAMPLES
            if left.dim() == 1 and back == -1:
                tag = tag.at(result.dim() - 1)
            elif min(left.dim(), right.dim()) > 1:
                tag = tag.at(result.dim() + back)  # others keep their places
            found.append((tag, result.dim()))
        elif tag is not None:
            found.append((tag, result.dim()))
    tag = merged(found, result.dim())
    return BY_PLACE if _differs_in_product(tags, tag, left, right, rank=result.dim()) else tag


def _differs_in_product(
    tags: Tags, tag: Tag | None, left: Tensor, right: Tensor, *, rank: int
) -> bool:
    """Whether a factor without a tag differs between the rows of a product of this rank."""
    if not isinstance(tag, ExampleRows):
        return False
    # 1. the result's last dimensions: rows of the left factor, then columns of the right one
    sides = [(one, dim) for one, dim in ((left, -2), (right, -1)) if one.dim() > 1]
    place = tag.dim - rank + len(sides)
    if place >= 0:
        one, dim = sides[place]
        return differs(tags, one, one.dim() + dim, tag.layout)
    # 2. dimensions before them are broadcast
    return any(
        differs(tags, one, one.dim() - 2 + place, tag.layout)
        for one in (left, right)
        if one.dim() - 2 + place >= 0
    )


@sees_places
def einsum(call: Call) -> ResultTags:
    """`einsum`: each letter names a dimension."""
    equation, several = call.args[0], tensors_in(call.args[1:])
    if not isinstance(equation, str):
        return UntrackedRows("einsum without letters")
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow:  # the letters that stand once, in their order
        once = sorted(one for one in left if one.isalpha() and left.count(one) == 1)
        right = "".join(["..." * ("..." in left), *once])
    # 1. an ellipsis stands for leading dimensions, which get letters that no equation has
    given = left.split(",")
    more = [
        one.dim() - len(part.replace("...", "")) for one, part in zip(several, given, strict=True)
    ]
    leading = "".join(chr(n) for n in range(0x391, 0x391 + max(more)))  # Greek capitals
    given = [
        part.replace("...", leading[len(leading) - number :])
        for part, number in zip(given, more, strict=True)
    ]
    right = right.replace("...", leading)
    # 2. the letter of examples must stand once in an argument, and in the result
    found: Tag | None = None
    for one, letters in zip(several, given, strict=True):
        tag = call.tags.of(one)
        if isinstance(tag, ExampleRows):
            letter = letters[tag.dim]
            if letters.count(letter) > 1 or letter not in right:
                return OVER_EXAMPLES
            tag = tag.at(right.index(letter))
        found = merged([(each, 0) for each in (found, tag) if each is not None], 0)
    # 3. constants must be the same for each example
    if isinstance(found, ExampleRows):
        letter = right[found.dim]
        for one, letters in zip(several, given, strict=True):
            place = letters.find(letter)
            takes_diagonal = letters.count(letter) > 1 and not call.tags.indices.is_alike(one)
            if place >= 0 and (takes_diagonal or differs(call.tags, one, place, found.layout)):
                return UntrackedRows("einsum with a constant that differs by place in the batch")
    return found


@sees_places
def solved(call: Call) -> ResultTags:
    """Solutions of linear systems, one for each entry of the dimensions before the last two."""
    given = call.named("A B")
    separate = -1 if given.get("left", True) else -2
    return _solution_of(call, given["A"], given["B"], separate)


@sees_places
def solved_by_factor(call: Call) -> ResultTags:
    """Solutions of systems by their Cholesky factors: the right sides come first."""
    given = call.named("input input2")
    return _solution_of(call, _argument(given, "input2 L"), _argument(given, "input B"), -1)


def _solution_of(call: Call, left: Tensor, right: Tensor, separate: int) -> ResultTags:
    """The tags of solutions whose right sides are entries of this dimension, from the end."""
    # 1. vectors as right sides stand for matrices of one column
    solution: Tensor = call.result if isinstance(call.result, Tensor) else call.result[0]
    is_of_vectors = right.dim() == 1 or (
        call.function in _OF_VECTORS and right.shape == left.shape[:-1]
    )
    rank = solution.dim() + is_of_vectors
    sides = [(left, left.dim()), (right, right.dim() + is_of_vectors)]  # with their ranks
    # 2. examples lie before the last two dimensions, or are separate right sides
    found = list[tuple[Tag, int]]()
    for number, (one, own) in enumerate(sides):
        tag = call.tags.of(one)
        if isinstance(tag, ExampleRows):
            back = tag.dim - own  # from the end
            is_separate = number == 1 and back == separate and not is_of_vectors
            if back >= -2 and not is_separate:
                return OVER_EXAMPLES
            tag = tag.at(rank + back)
        found += [] if tag is None else [(tag, rank)]
    tag = merged(found, rank)
    # 3. what no data made must be the same for each example
    if isinstance(tag, ExampleRows) and tag.dim < rank - 2:
        for one, own in sides:
            dim = own - rank + tag.dim
            if dim >= 0 and differs(call.tags, one, dim, tag.layout):
                return BY_PLACE
    return tag


@sees_places
def distances(call: Call) -> ResultTags:
    """`cdist`: the distance of each row of one tensor to each row of another one."""
    given = call.named("x1 x2")
    rank, found = call.result.dim(), list[tuple[Tag, int]]()
    sides = ((given["x1"], rank - 2), (given["x2"], rank - 1))  # and the place of their rows
    for one, place in sides:
        tag = call.tags.of(one)
        if isinstance(tag, ExampleRows):
            back = tag.dim - one.dim()  # from the end
            if back == -1:
                return OVER_EXAMPLES
            tag = tag.at(place if back == -2 else rank + back)
        found += [] if tag is None else [(tag, rank)]
    tag = merged(found, rank)
    if not isinstance(tag, ExampleRows):
        return tag
    for one, place in sides:
        dim = one.dim() - 2 if tag.dim == place else one.dim() - rank + tag.dim
        if (
            (tag.dim == place or tag.dim < rank - 2)
            and dim >= 0
            and differs(call.tags, one, dim, tag.layout)
        ):
            return BY_PLACE
    return tag


@sees_places
def attended(call: Call) -> ResultTags:
    """Attention: queries, keys and values have two dimensions after those of the batch."""
    some = tensors_in((call.args, call.keywords))
    for one in some:
        tag = call.tags.of(one)
        if isinstance(tag, ExampleRows) and tag.dim >= one.dim() - 2:
            return OVER_EXAMPLES
    return of_all(call.tags, (call.args, call.keywords), call.result.dim())
