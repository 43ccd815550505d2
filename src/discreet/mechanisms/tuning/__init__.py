"""Choosing among many runs at the price of few: private tuning."""

from discreet.mechanisms.tuning._runs import NegativeBinomialRuns, PoissonRuns, RunsLaw
from discreet.mechanisms.tuning._scored import Scored
from discreet.mechanisms.tuning._tuning import Tuning

__all__ = ["NegativeBinomialRuns", "PoissonRuns", "RunsLaw", "Scored", "Tuning"]
