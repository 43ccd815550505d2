"""The terms a privacy loss is made of, one file each: what is known of it, and from where."""

from discreet.accounting.terms.approximate import Approximate
from discreet.accounting.terms.discrete_laplace import DiscreteLaplace
from discreet.accounting.terms.gaussian import Gaussian
from discreet.accounting.terms.pure import Pure
from discreet.accounting.terms.randomized_response import RandomizedResponse
from discreet.accounting.terms.zcdp import Zcdp

__all__ = ["Approximate", "DiscreteLaplace", "Gaussian", "Pure", "RandomizedResponse", "Zcdp"]
