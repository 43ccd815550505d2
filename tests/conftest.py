"""Settings of Hypothesis: no deadline, since a slow run on a busy machine is not a bug."""

from hypothesis import settings

settings.register_profile("discreet", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("discreet")
