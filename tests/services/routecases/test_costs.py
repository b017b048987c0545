"""What judging costs: one question without cases, and few with a thousand of them."""

import time
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.models import Environment
from controlplane.catalog.services import change_apply
from controlplane.catalog.services.cases import Rewriting, cases_foresee
from controlplane.catalog.values import Put
from controlplane.routecases.services import cases_apply
from controlplane.routecases.values import MAX_CASES, Expected, RouteCaseDraft
from tests.support.manifests import Tree, cluster, endpoints, listener, parsed
from tests.support.principals import somebody
from xdscore.routing.values import Answer, Request

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
PAY = RouteCaseDraft("pays", Request("shop.example", "/pay"), Expected(Answer.ROUTED))
_HOSTS, _CLUSTERS = 100, 50


def shop() -> Tree:
    """A hundred virtual hosts with ten routes each."""
    hosts = [
        {
            "name": f"host-{number}",
            "domains": [f"host-{number}.example"],
            "routes": [
                {"match": {"prefix": f"/{way}/"}, "route": {"cluster": f"c-{(number + way) % _CLUSTERS}"}}
                for way in range(10)
            ],
        }
        for number in range(_HOSTS)
    ]
    return {
        "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        "name": "shop",
        "virtual_hosts": hosts,
    }


def rewriting() -> Rewriting:
    environment = Environment.objects.get(key="default")
    return Rewriting(environment, {("route", "shop"): parsed(shop()).any_bytes}, frozenset({("route", "shop")}))


def judged(rewriting: Rewriting) -> tuple[int, float]:
    """How many questions judging asks the database, and how many seconds it takes."""
    with CaptureQueriesContext(connection) as asked:
        begin = time.perf_counter()
        assert not cases_foresee(rewriting).broken
        took = time.perf_counter() - begin
    return len(asked), took


def test_write__without_cases__costs_one_question(database: str) -> None:
    assert judged(rewriting())[0] == 1


def test_write__that_touches_a_thousand_cases__asks_as_much_as_one_that_touches_one(database: str) -> None:
    clusters = [each for number in range(_CLUSTERS) for each in _cluster(f"c-{number}")]
    edits = [Put(parsed(tree)) for tree in (listener("edge", "shop", 80), shop(), *clusters)]
    change_apply(environment_key="default", edits=edits, actor=DANA)
    drafts = [
        replace(
            PAY, name=f"case {number}", request=Request(f"host-{number % _HOSTS}.example", f"/{number % 10}/{number}")
        )
        for number in range(MAX_CASES)
    ]
    cases_apply(environment_key="default", drafts=drafts[:1], actor=DANA)
    one, _ = judged(rewriting())
    written = cases_apply(environment_key="default", drafts=drafts, actor=DANA)
    assert all(each.run.holds for each in written)

    many, took = judged(rewriting())

    assert many == one
    print(f"a thousand cases: {took:.3f} s, {many} questions")  # noqa: T201 - a figure for who asks for it with -s


def _cluster(name: str) -> tuple[Tree, Tree]:
    return cluster(name, eds=True), endpoints(name, 9000)
