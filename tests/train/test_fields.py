"""Fields and models that can't be trained are refused by name, before anything is read."""

import numpy as np
import pytest
import torch
from torch import nn

from discreet.errors import InvalidArgument
from discreet.train._batches import _data
from discreet.train._refusals import _check_model


@pytest.mark.parametrize("dtype", [">f4", ">i8", "longdouble", "clongdouble"])
def test_arrays_that_no_tensor_can_hold_are_refused_by_name(dtype: str) -> None:
    with pytest.raises(InvalidArgument, match=r"'x' has dtype .*: convert it"):
        _data.check_data({"x": np.zeros((3, 2), dtype), "y": np.zeros(3)})


def test_models_made_in_inference_mode_are_refused_by_name() -> None:
    with torch.inference_mode():
        model = nn.Linear(2, 2)
    with pytest.raises(InvalidArgument, match=r"'weight' was made in torch\.inference_mode"):
        _check_model(model)
