"""A training run on another machine charges the ledger of a service once, and resumes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet import Unit, connect
from discreet.errors import BudgetExceeded
from discreet.ledger import Kind, check_receipt
from discreet.train import fit
from tests.service import kit
from tests.train.steps import linear, losses_of, of_persons, sgd, short

PLAN = {"multiplier": 4, "delta": 1e-6, "records": 12, "batch": 3, "steps": 20}


class Cut(Exception):
    """The machine that trains stops."""


@pytest.mark.long  # a whole service starts
def test_a_run_elsewhere_pays_by_the_service_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_delta = kit.TEXT.replace("epsilon = 20", "epsilon = 20, delta = 1e-4")
    monkeypatch.setattr(kit, "TEXT", with_delta)
    plan, kept = short(**PLAN, unit=Unit("person")), tmp_path / "run.pt"
    calls = [0]

    def losses(model: nn.Module, part: Any) -> Tensor:
        calls[0] += 1
        if calls[0] == 40:
            raise Cut
        found: Tensor = losses_of(model)(part)
        return found

    with kit.service(tmp_path, "--workers", "1") as running:
        token = running.token("ana")
        share = {"epsilon": plan.epsilon * 1.25, "delta": 1e-5}
        assert running.send("PUT", "/v1/tables/wages/shares/ana", share).status == 200
        model, payer = linear(), connect(running.url, token)["wages"].ledger
        facts: dict[str, Any] = {"losses": losses, "payer": payer, "keep": kept}
        with pytest.raises(Cut):
            fit(model, sgd(model), of_persons(), plan, **facts)
        first = [e for e in running.ledger.history() if e.kind is Kind.CHARGE]
        assert [(e.by, e.share, e.loss) for e in first] == [("ana", "ana", plan.privacy_loss)]
        # the rest of the run is free, and no step is taken twice
        report = fit(model, sgd(model), of_persons(), plan, **facts, resume=torch.load(kept))
        assert [e for e in running.ledger.history() if e.kind is Kind.CHARGE] == first
        assert report.taken == 20
        assert 0 < report.done < 20
        assert payer.reserved(report.receipt) == 20
        # the receipt of the whole run is the ledger's; another run does not fit the share
        model = linear()
        with pytest.raises(BudgetExceeded):
            fit(model, sgd(model), of_persons(), plan, losses=losses, payer=payer)
        assert not running.ledger.is_locked
        stored = connect(running.url, token).receipt(first[0].request or "")
        assert check_receipt(stored, running.ledger).privacy_loss == plan.privacy_loss
