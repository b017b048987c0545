"""GET /changes/{id}/convergence: how a change spread."""

import pytest

from controlplane.accounts.principal import Role, Scope
from controlplane.database.aliases import READER
from tests.api.conftest import Caller, assert_problem, caller
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def test_convergence__taken_by_some__says_how_many_when_and_who_is_left(api: Caller) -> None:
    fleet = Fleet(3)
    change = publish(cluster("pay"))
    fleet.accept(held("pay", 1), who=slice(0, 2))

    found = api.get(f"changes/{change}/convergence").json

    assert (found["known"], found["took"], found["of"], found["waiting"]) == (True, 2, 3, 1)
    assert found["p50_s"] == found["last_s"] == found["steps"][-1]["second"]
    assert found["steps"][-1]["clients"] == 2
    assert found["p99_s"] is None


def test_convergence__not_published__is_not_known(api: Caller) -> None:
    found = api.get(f"changes/{publish(cluster('pay'), built=False)}/convergence").json

    assert (found["known"], found["of"], found["p50_s"]) == (False, 0, None)


def test_convergence__of_another_tenants_change__is_not_there(api: Caller) -> None:
    change = publish(cluster("pay"))
    other = caller(Scope(Role.ADMIN, "prod"))

    assert_problem(other.get(f"changes/{change}/convergence"), 404)
