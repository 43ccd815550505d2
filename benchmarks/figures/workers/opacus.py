"""Figures of Opacus' Renyi accountant."""

from opacus.accountants import RDPAccountant

from benchmarks.figures.workers.answering import Request, answer


def by_renyi(request: Request, delta: float) -> float:
    """Epsilon of sampled Gaussians, the only mechanism that Opacus supports."""
    accountant = RDPAccountant()
    for law, scale, rate, count, _ in request["accesses"]:
        if law != "gaussian":
            raise NotImplementedError(law)
        accountant.history.append((scale, rate, count))
    return float(accountant.get_epsilon(delta))


answer({"renyi": by_renyi})
