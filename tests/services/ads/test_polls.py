"""Clients that poll over REST: the same decisions, facts and words as on a stream (protocol.md section L)."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from envoy.config.core.v3 import extension_pb2
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2

from adsserver.engine.events import Acknowledged, Rejected
from adsserver.ports import MOVED_CAUSE
from adsserver.servicers.ends import BEGAN_ANEW, NOT_POLLED
from tests.support.ads import Running, config, running
from tests.support.ads_client import cluster, endpoints, until
from tests.support.poller import NODE, Poller, poller
from xdscore.access import AccessTable, Effect
from xdscore.environment_choice import ClientFacts, EnvironmentChoice, Selector
from xdscore.holdings import HoldingState
from xdscore.limits import Limits
from xdscore.resource_types import CLUSTER, ENDPOINT, RESOURCE_TYPES
from xdscore.sides import RolloutTable, client_digest

REST = config(rest_address="127.0.0.1:0")
PICKED = RolloutTable(
    "rollout-1", 0, frozenset({client_digest("default", ClientFacts(node_id="picked"))}), (), 0, "seed"
)


@pytest.fixture
async def run() -> AsyncIterator[Running]:
    async with running(REST) as started:
        yield started


@pytest.fixture
async def client(run: Running) -> AsyncIterator[Poller]:
    async with poller(run.rest_port) as connected:
        yield connected


def rejections(run: Running) -> list[Rejected]:
    return [fact for _, fact in run.facts.learnt_facts if isinstance(fact, Rejected)]


def acknowledged(run: Running) -> list[list[str]]:
    facts = [fact for _, fact in run.facts.learnt_facts if isinstance(fact, Acknowledged)]
    return [[member.name for member in fact.resources] for fact in facts]


async def test_poll__new_then_same_then_changed__whole_304_whole(run: Running, client: Poller) -> None:
    run.publish(cluster("a"), cluster("b"))

    first = await client.ask("clusters")
    second = await client.ask("clusters")
    run.publish(cluster("a"), cluster("b", 2))
    third = await client.ask("clusters")

    assert (first.status, first.names, second.status, second.body) == (200, ["a", "b"], 304, b"")
    assert (third.status, third.names) == (200, ["a", "b"])
    assert third.json["type_url"] == CLUSTER.url
    assert third.json["resources"][0]["@type"] == CLUSTER.url
    assert third.json["version_info"] != first.json["version_info"]


async def test_poll__name_of_a_type_in_parts__each_answer_is_whole(run: Running, client: Poller) -> None:
    run.publish(endpoints("a"), endpoints("b"))
    await client.ask("endpoints", "a", "b", "c")

    changed = endpoints("b")
    changed.policy.overprovisioning_factor.value = 200
    run.publish(endpoints("a"), changed)
    got = await client.ask("endpoints", "a", "b", "c")

    assert got.names == ["a", "b"]
    assert list(got.errors) == ["c"]
    assert got.errors["c"].startswith("NOT_FOUND [XDS2101] ")
    assert got.json["resource_errors"][0]["error_detail"]["code"] == 5


async def test_poll__every_path__is_served(run: Running, client: Poller) -> None:
    run.publish()
    words = {"clusters", "endpoints", "extension_configs", "listeners", "routes", "runtime", "scoped-routes", "secrets"}

    statuses = {}
    for word in sorted(words):
        client.version = ""
        statuses[word] = (await client.ask(word, "x")).status

    assert statuses == dict.fromkeys(words, 200)
    assert len(words) == len(RESOURCE_TYPES) - 1  # virtual hosts are delta's only


async def test_poll__version_says_it_was_taken__fact_is_an_ack(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))

    await client.ask("clusters")
    assert acknowledged(run) == []
    await client.ask("clusters")

    assert acknowledged(run) == [["a"]]
    (stream,) = run.facts.opened_streams
    assert (stream.node_id, stream.environment, stream.polls) == ("client-1", "default", True)
    holdings = dict(run.facts.holdings[stream.id, "cluster"].ground.everything())
    assert holdings["a"].state is HoldingState.ACKED


async def test_poll__old_version_on_the_same_connection__is_a_nack_of_what_was_new(
    run: Running, client: Poller
) -> None:
    run.publish(cluster("a"), cluster("b"))
    await client.ask("clusters")
    await client.ask("clusters")

    run.publish(cluster("a"), cluster("b", 2))
    for _ in range(2):
        await client.ask("clusters", takes=False)
        assert rejections(run) == []
    after = await client.ask("clusters")

    (fact,) = rejections(run)
    assert [member.name for member in fact.suspects] == ["b"]
    assert (fact.nack.code, fact.nack.message) == (2, "")
    # What it refused is not sent again; what it had is.
    assert after.status == 304


async def test_poll__refused_and_then_mended__mended_is_sent_at_once(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    await client.ask("clusters")
    run.publish(cluster("a", 2))
    for _ in range(3):
        await client.ask("clusters", takes=False)

    run.publish(cluster("a", 3))
    got = await client.ask("clusters")

    assert got.json["resources"][0]["connect_timeout"] == "3s"
    assert len(rejections(run)) == 1


async def test_poll__fresh_envoy_refuses_one_of_four__good_ones_arrive_and_the_bad_one_is_blamed(
    run: Running, client: Poller
) -> None:
    run.publish(*(cluster(name) for name in ("a", "bad", "c", "d")))

    statuses = []
    for _ in range(60):
        got = await client.ask("clusters", takes=False)
        statuses.append(got.status)
        if got.status == 200 and "bad" not in got.names:
            client.version = got.json["version_info"]
        if got.status == 304 and len(rejections(run)) > 1:
            break

    last = rejections(run)[-1]
    assert [member.name for member in last.suspects] == ["bad"]
    assert len(run.facts.opened_streams) == 1
    assert statuses[-1] == 304
    assert client.version != ""


async def test_poll__subscription_begins_anew_on_the_same_connection__blames_nobody(
    run: Running, client: Poller
) -> None:
    # As Envoy does for the endpoints of a cluster that changed before its second poll of them.
    run.publish(endpoints("a"))
    await client.ask("endpoints", "a", takes=False)

    again = await client.ask("endpoints", "a")
    await client.ask("endpoints", "a")

    assert again.names == ["a"]
    assert rejections(run) == []


async def test_poll__two_clients_of_one_node_id__a_change_blames_nobody(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    async with poller(run.rest_port) as twin:
        for timeout in range(2, 5):
            for each in (client, twin, client, twin, twin, client):
                await each.ask("clusters")
            run.publish(cluster("a", timeout))
        assert (await client.ask("clusters")).status == 200
        assert (await twin.ask("clusters")).status == 200

    assert rejections(run) == []


async def test_poll__says_no_version_and_is_no_envoy__refused_nothing(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    answers = [await client.ask("clusters", takes=False, node={"id": "script"}) for _ in range(5)]
    run.publish(cluster("a"), cluster("b"))
    news = await client.ask("clusters", takes=False, node={"id": "script"})

    assert [got.names for got in answers] == [["a"]] * 5
    assert news.names == ["a", "b"]
    assert rejections(run) == []


async def test_poll__error_detail__is_a_nack_with_its_words(run: Running, client: Poller) -> None:
    run.publish(cluster("a"), cluster("b"))
    first = await client.ask("clusters", takes=False)

    detail = {"code": 3, "message": "cluster b: no", "details": [{"@type": "type.googleapis.com/no.such.Type"}]}
    await client.ask("clusters", error_detail=detail, response_nonce=first.json["nonce"])

    (fact,) = rejections(run)
    assert (fact.nack.code, fact.nack.message) == (3, "cluster b: no")


async def test_poll__answer_was_lost__is_sent_again_and_blames_nobody(run: Running) -> None:
    run.publish(cluster("a"))

    async with poller(run.rest_port) as client, poller(run.rest_port) as again:
        answers = [await each.ask("clusters", takes=False) for each in (client, again)]
        taken = await again.ask("clusters", version_info=answers[0].json["version_info"])

    assert answers[0].body == answers[1].body
    assert taken.status == 304
    assert rejections(run) == []


async def test_poll__comes_with_the_version_that_another_server_gave__304_and_is_an_ack(run: Running) -> None:
    run.publish(cluster("a"))
    async with poller(run.rest_port) as client, running(REST, before=run) as other:
        version = (await client.ask("clusters")).json["version_info"]
        other.server.directory_changed(run.catalogue.directory())
        async with poller(other.rest_port) as moved:
            moved.version = version
            got = await moved.ask("clusters")

    assert got.status == 304
    assert acknowledged(other) == [["a"]]


async def test_poll__client_was_started_anew__begins_anew(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    await client.ask("clusters")
    await client.ask("clusters")

    client.version = ""
    got = await client.ask("clusters")

    assert (got.status, got.names) == (200, ["a"])
    assert len(run.facts.opened_streams) == 2
    assert [cause for _, cause in run.facts.closed_streams] == [BEGAN_ANEW.cause]


async def test_poll__rule_denies_a_name__is_told_so(run: Running, client: Poller) -> None:
    table = AccessTable(Effect.DENY)
    run.server.directory_changed(run.catalogue.publish(cluster("a"), access=table))

    got = await client.ask("clusters", "a")

    assert got.names == []
    assert got.errors["a"].startswith("PERMISSION_DENIED [XDS2103] ")


async def test_poll__node_wants_no_errors__gets_none(run: Running, client: Poller) -> None:
    run.publish()

    got = await client.ask("endpoints", "a", node={**NODE, "metadata": {"parley.resource_errors": "off"}})

    assert (got.status, got.errors, got.names) == (200, {}, [])


async def test_poll__secret__is_read_but_not_kept_in_text(run: Running, client: Poller) -> None:
    secret = secret_pb2.Secret(name="key")
    secret.generic_secret.secret.inline_string = "s3cret"
    run.publish(secret)

    got = await client.ask("secrets", "key")
    client.version = ""
    await client.ask("secrets", "key")

    assert got.json["resources"][0]["generic_secret"] == {"secret": {"inline_string": "s3cret"}}
    (address,) = run.catalogue.contents.asked
    assert run.catalogue.contents.asked[address] == 2


async def test_poll__resource_that_json_cannot_say__alone_is_missing_and_proves_nothing(
    run: Running, client: Poller
) -> None:
    opaque = extension_pb2.TypedExtensionConfig(name="own")
    opaque.typed_config.type_url = "type.googleapis.com/no.such.Extension"
    opaque.typed_config.value = b"\x0a\x01x"
    plain = extension_pb2.TypedExtensionConfig(name="plain")
    plain.typed_config.Pack(cluster("inside"))
    run.publish(opaque, plain)

    got = await client.ask("extension_configs", "own", "plain")
    await client.ask("extension_configs", "own", "plain")

    assert got.names == ["plain"]
    assert got.errors["own"].startswith("INTERNAL [XDS2106] ")
    assert acknowledged(run) == [["plain"]]


async def test_poll__waits__is_answered_when_something_is_new(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    await client.ask("clusters")

    waiting = asyncio.ensure_future(client.ask("clusters", headers={"Prefer": "wait=20"}))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    run.publish(cluster("a"), cluster("b"))
    got = await waiting

    assert (got.status, got.names) == (200, ["a", "b"])


async def test_poll__waits_in_vain__304_after_the_limit() -> None:
    limits = Limits(poll_wait_s=1)
    async with running(config(rest_address="127.0.0.1:0", limits=limits)) as run, poller(run.rest_port) as client:
        run.publish(cluster("a"))
        await client.ask("clusters")
        got = await client.ask("clusters", headers={"Prefer": "respond-async, wait=500"})

        assert got.status == 304


async def test_poll__waiting_client_leaves__wait_ends(run: Running) -> None:
    run.publish(cluster("a"))
    async with poller(run.rest_port) as client:
        await client.ask("clusters")
        waiting = asyncio.ensure_future(client.ask("clusters", headers={"Prefer": "wait=50"}))
        await asyncio.sleep(0.2)
        waiting.cancel()

    await until(lambda: run.server._budgets.empty)


async def test_poll__nothing_loaded_yet__503_and_then_served() -> None:
    limits = Limits(first_snapshot_wait_ms=100)
    async with running(config(rest_address="127.0.0.1:0", limits=limits)) as run, poller(run.rest_port) as client:
        before = await client.ask("clusters")
        run.publish(cluster("a"))
        after = await client.ask("clusters")

    assert (before.status, before.headers["retry-after"], after.status) == (503, "5", 200)


async def test_poll__silence__ends_it_and_a_pace_is_kept(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    await client.ask("clusters")
    now = asyncio.get_running_loop().time()

    run.server.polls.look(now + 170)
    assert run.facts.closed_streams == []
    run.server.polls.look(now + 190)

    assert [cause for _, cause in run.facts.closed_streams] == [NOT_POLLED.cause]
    assert (len(run.server.polls), run.server._budgets.empty) == (0, True)


async def test_poll__often__silence_of_three_pauses_ends_it(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    await client.ask("clusters")
    await client.ask("clusters")
    now = asyncio.get_running_loop().time()

    run.server.polls.look(now + 9)
    assert len(run.server.polls) == 1
    run.server.polls.look(now + 11)

    assert len(run.server.polls) == 0


async def test_poll__environment_changes__next_poll_is_served_from_there(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    run.publish(cluster("other"), environment="pay")
    await client.ask("clusters")

    run.catalogue.environments = (
        EnvironmentChoice("pay", (Selector(node_id="client-*"),)),
        EnvironmentChoice("default", ()),
    )
    run.server.directory_changed(run.catalogue.directory())
    await until(lambda: run.facts.closed_streams)
    got = await client.ask("clusters")

    assert got.names == ["other"]
    assert run.facts.closed_streams[0][1] == MOVED_CAUSE


async def test_poll__too_many_of_a_node__says_which_limit() -> None:
    limits = Limits(polled_per_node=2)
    async with running(config(rest_address="127.0.0.1:0", limits=limits)) as run, poller(run.rest_port) as client:
        run.publish()
        answers = [await client.ask("endpoints", name, takes=False) for name in "abc"]

    assert [got.status for got in answers] == [200, 200, 429]
    assert "polled_per_node" in answers[-1].json["detail"]


async def test_poll__names_of_gone_subscriptions__are_given_back(run: Running, client: Poller) -> None:
    run.publish()
    await client.ask("endpoints", *(f"name-{number}" for number in range(1_000)))
    # The caller has no call open, and used up nothing; its budget is kept all the same.
    run.server._budgets.forget()
    held = sum(budget.name_bytes for budget in run.server._budgets._all.values())

    run.server.polls.look(asyncio.get_running_loop().time() + 10_000)

    assert held > 300_000
    assert sum(budget.name_bytes for budget in run.server._budgets._all.values()) == 0


async def test_poll__server_stops__503_and_the_connection_ends() -> None:
    async with running(REST) as run, poller(run.rest_port) as client:
        run.publish(cluster("a"))
        await client.ask("clusters")
        waiting = asyncio.ensure_future(client.ask("clusters", headers={"Prefer": "wait=50"}))
        await asyncio.sleep(0.2)
        stopping = asyncio.ensure_future(run.server.stop(spread_s=0, limit_s=1))
        got = await waiting
        assert await client.ended()
        await stopping

    assert (got.status, got.headers["connection"]) == (503, "close")


async def test_poll__metrics__count_answers(run: Running, client: Poller) -> None:
    run.publish(cluster("a"))
    await client.ask("clusters")
    await client.ask("clusters")
    await client.ask("clusters", node={})

    counts = {answer: run.sample("parley_ads_polls_total", answer=answer) for answer in ("whole", "unchanged")}
    assert counts == {"whole": 1, "unchanged": 1}
    assert run.sample("parley_ads_polls_total", answer="turned_away") == 1
    assert run.sample("parley_ads_polled_subscriptions") == 1


async def test_poll__endpoints_denied_later__error_and_holdings_say_it(run: Running, client: Poller) -> None:
    run.publish(endpoints("a"))
    await client.ask("endpoints", "a")

    table = AccessTable(Effect.DENY)
    run.server.directory_changed(run.catalogue.publish(endpoints("a"), access=table))
    got = await client.ask("endpoints", "a")
    await client.ask("endpoints", "a")

    assert got.names == []
    assert got.errors["a"].startswith("PERMISSION_DENIED")
    (stream,) = run.facts.opened_streams
    holdings = dict(run.facts.holdings[stream.id, ENDPOINT.word].ground.everything())
    assert holdings["a"].state is HoldingState.ERROR_SENT


async def test_poll__rollout_opens__only_who_is_picked_is_given_it_and_its_word_is_awaited(run: Running) -> None:
    run.publish(cluster("a", 1))
    async with poller(run.rest_port) as picked, poller(run.rest_port) as other:
        for each, node in ((picked, "picked"), (other, "other")):
            for _ in range(2):
                await each.ask("clusters", node={**NODE, "id": node})
        run.server.directory_changed(run.catalogue.roll(PICKED, cluster("a", 2)))
        given = await picked.ask("clusters", node={**NODE, "id": "picked"})
        unchanged = await other.ask("clusters", node={**NODE, "id": "other"})
        assert run.facts.awaited_streams == []
        await picked.ask("clusters", node={**NODE, "id": "picked"})

    assert given.json["resources"][0]["connect_timeout"] == "2s"
    assert unchanged.status == 304
    assert {stream.node_id for stream in run.facts.awaited_streams} == {"picked"}
