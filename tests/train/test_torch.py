"""Whether those are here whom the tests beside this one need."""

from importlib.util import find_spec

import pytest


@pytest.mark.parametrize("guest", ["torch", "accelerate", "lightning", "peft", "transformers"])
def test_it_is_here(guest: str) -> None:
    if find_spec(guest) is None:
        pytest.skip(f"{guest} is not here: make torch")
