"""Limits of floating point that several steps of a composition share."""

UNDERFLOW_GUARD = 1e-300  # above every underflow; avoids divisions by 0 and logarithms of 0
FINEST_STEP = 2.0**-36  # of the largest loss: indices stay far below 2^53
