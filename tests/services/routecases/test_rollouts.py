"""Route cases and rollouts: what a rollout would leave is judged before any client has it."""

from unittest.mock import patch

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Environment
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.services import rollout_tick, ticking
from controlplane.routecases.models import RouteCase
from controlplane.routecases.services import case_create, case_update
from controlplane.routecases.sides import cases_broken_by_rollout
from controlplane.routecases.values import Expected, RouteCaseDraft
from tests.support.manifests import Tree, cluster, listener, parsed, route
from tests.support.principals import somebody
from tests.support.rollouts import rollout_begun
from xdscore.routing.values import Answer, Request

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
PAY = RouteCaseDraft("pays", Request("shop.example", "/pay"), Expected(Answer.ROUTED, cluster="pay"))


def write(*trees: Tree) -> None:
    change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)


def tick() -> Rollout:
    with patch.object(ticking, "REPORTED_S", 0.0):
        rollout_tick(environment_id=Environment.objects.get(key="default").pk)
    return Rollout.objects.earliest("pk")  # what waited behind it may go by a rollout of its own by now


@pytest.fixture
def shop(database: str) -> str:
    write(listener("edge", "shop", 80), route("shop", "pay"), cluster("pay"), cluster("other"))
    return database


def test_rollout__that_keeps_every_case__goes_its_way(shop: str) -> None:
    case_create(environment_key="default", draft=PAY, actor=DANA)

    rollout_begun(cluster("pay", connect_timeout="7s"), actor=DANA)
    write(cluster("other", connect_timeout="7s"))

    assert tick().begun
    assert not tick().ended_at


def test_rollout__that_would_break_what_only_a_waiting_change_keeps__fails_and_is_taken_back(shop: str) -> None:
    elsewhere = RouteCaseDraft("pays", PAY.request, Expected(Answer.ROUTED, cluster="other"))
    case = case_create(environment_key="default", draft=elsewhere, actor=DANA)
    rollout_begun(route("shop", "other"), actor=DANA)
    case_update(environment_key="default", case_id=case.id, draft=PAY, actor=DANA)
    # The listener leads to other routes from the next rollout on, and there the request ends as it did before.
    write(listener("edge", "shop-2", 80), route("shop-2", "pay"))
    assert RouteCase.objects.get().holds

    names = {("route", "shop")}
    said = cases_broken_by_rollout(environment_id=Environment.objects.get(key="default").pk, names=names)
    ended = tick()

    assert said == (
        "route case 'pays' would not hold: GET http://shop.example/pay goes to cluster 'other' (virtual host 'all')",
    )
    assert ended.state in {"reverted", "aborted"}
    assert list(said) == ended.reasons
