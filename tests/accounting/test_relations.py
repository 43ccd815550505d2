"""Functions from losses to losses preserve the relation of neighbours, and the unit."""

import json

import pytest

from discreet._unit import Change, Unit
from discreet.accounting import Gaussian, LossDistribution, PrivacyLoss, ProfileCurve, Term, parse
from discreet.accounting._bounds import Unknown
from discreet.errors import InvalidArgument, NoBound, WrongUnit
from tests.accounting.examples import ALL_TERMS

BOUND = [term for term in ALL_TERMS if term.change is not None]
ONE_OF_A_KIND = list({type(term): term for term in ALL_TERMS}.values())


def other(change: Change) -> Change:
    return Change.REPLACE if change is Change.ADD_REMOVE else Change.ADD_REMOVE


def refuses_the_other_relation(loss: PrivacyLoss | Term, change: Change) -> bool:
    with pytest.raises(WrongUnit):
        (PrivacyLoss() + loss).for_unit(Unit.ROW.with_change(other(change)))
    return True


def test_the_terms_for_one_relation_are_many() -> None:
    assert len({type(term) for term in BOUND}) >= 7


class TestExport:
    @pytest.mark.parametrize("term", ONE_OF_A_KIND, ids=repr)
    def test_a_distribution_has_the_relation_of_the_loss(self, term: Term) -> None:
        try:
            exported = LossDistribution.of(term)
        except NoBound:  # its delta is 1 everywhere
            assert (1 * term).delta(400) == 1
            return
        assert exported.change is term.change
        if term.change is not None:
            assert refuses_the_other_relation(exported, term.change)
        assert PrivacyLoss.from_json((2 * exported).to_json()) == 2 * exported

    @pytest.mark.parametrize("change", [None, *Change], ids=str)
    def test_the_relation_is_written_and_read(self, change: Change | None) -> None:
        loss = 3 * LossDistribution({1: 0.731, -1: 0.2689}, change)
        assert PrivacyLoss.from_json(loss.to_json()) == parse(repr(loss)) == loss
        assert loss.terms[0][0].change is change
        assert ("change" in json.loads(loss.to_json())["terms"][0]) == (change is not None)

    def test_a_unit_is_refused(self) -> None:
        with pytest.raises(WrongUnit):
            LossDistribution.of(PrivacyLoss.of(Gaussian(1), unit=Unit.ROW))

    def test_a_loss_that_reveals_everything_is_refused(self) -> None:
        with pytest.raises(NoBound):
            LossDistribution.of(1 * ProfileCurve({0: 1}))

    @pytest.mark.parametrize("change", ["replace", 1, True], ids=repr)
    def test_a_relation_is_a_change(self, change: object) -> None:
        with pytest.raises(InvalidArgument):
            LossDistribution({0: 1}, change)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("term", BOUND, ids=repr)
def test_a_group_has_the_relation_of_its_units(term: Term, size: int) -> None:
    group = term.for_group(size)
    assert isinstance(group, Unknown) or group.change is term.change
