"""What a client says of itself, reported over REST: compared at once, kept with since when, and for whom."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone
from pytest_django.fixtures import Settings

from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.guarding import Consent
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.clients.clock import database_now
from controlplane.clients.models import Client as ClientRow
from controlplane.clients.models import Report, SaidDifference, Stream
from controlplane.clients.reports import client_word
from controlplane.clients.services import facts_prune
from controlplane.clients.services.reporting import MAX_DIFFERENCES
from controlplane.database.aliases import READER
from controlplane.explain import beliefs
from controlplane.incidents.services import digest
from controlplane.snapshots.models import SnapshotRow
from tests.api.conftest import Caller, assert_problem, caller
from tests.api.test_holdings import fleet_at_r1, moved_to_r2
from tests.services.incidents.fleet import DANA, Fleet, held, publish, rebuild, revision
from tests.support.facts import acknowledged
from tests.support.manifests import cluster, endpoints
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.resource_types import ENDPOINT

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"


@pytest.fixture
def environments() -> None:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)


@pytest.fixture
def api(environments: None) -> Caller:
    return caller(*ADMIN_SCOPES)


@pytest.fixture
def fleet(environments: None) -> Fleet:
    """Two clients that have r1 of `pay` and of `cart` since long ago."""
    two = Fleet(2)
    publish(cluster("pay"), cluster("cart"))
    two.accept(held("pay", 1), held("cart", 1))
    digest()
    return two


@dataclass
class Clock:
    """How far the clock by which Parley judges what moved lately is ahead."""

    ahead: timedelta = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(beliefs, "database_now", lambda: database_now() + found.ahead)
    return found


def id_of(node_id: str = "node-1") -> str:
    return str(ClientRow.objects.get(node_id=node_id).pk)


def said(name: str, version: str = "", *, state: str = "ACKED", held: bool = True, **more: str) -> dict[str, object]:
    return {"type": "cluster", "name": name, "state": state, "held": held, "version": version, **more}


def version(name: str, number: int = 1) -> str:
    return revision(name, number).version


def both() -> list[dict[str, object]]:
    return [said("pay", version("pay")), said("cart", version("cart"))]


def report(
    api: Caller, *names: dict[str, object], node_id: str = "node-1", types: tuple[str, ...] = ("cluster",)
) -> Any:
    body = {"source": "envoy-admin", "types": list(types), "names": list(names)}
    answer = api.post(f"clients/{id_of(node_id)}/said", body)
    assert answer.status == 200, answer.content
    assert api.get(f"clients/{id_of(node_id)}/said").json == answer.json
    return answer.json


def sentences(found: Any) -> dict[str, str]:
    return {each["name"]: each["sentence"] for each in found["differences"]}


def test_said__nobody_reported__says_so(api: Caller, fleet: Fleet) -> None:
    assert api.get(f"clients/{id_of()}/said").json == {"report": None, "differences": [], "earlier": []}


def test_report__as_parley_believes__agrees_in_all(api: Caller, fleet: Fleet) -> None:
    found = report(api, *both(), said("of-another-control-plane"), node_id="node-1")

    counts = {key: found["report"][key] for key in ("compared", "agreeing", "differing", "by_presence", "unsure")}
    # The third is a name of everything that it asks for, and Parley serves no such.
    assert counts == {"compared": 3, "agreeing": 2, "differing": 1, "by_presence": 0, "unsure": 0}
    assert sentences(found) == {
        "of-another-control-plane": "It has something that does not show; Parley believes it has none."
    }
    assert found["report"]["source"] == "envoy-admin"
    assert found["report"]["by"].startswith("token:")


def test_report__other_content__differs_since_it_was_first_seen_until_it_agrees(api: Caller, fleet: Fleet) -> None:
    first = report(api, said("pay", "0" * 16), said("cart", version("cart")))
    again = report(api, said("pay", version("pay"), state="NACKED", error="no"), said("cart", version("cart")))
    healed = report(api, *both())
    back = report(api, said("pay", "0" * 16), said("cart", version("cart")))

    [one], [two], [three] = first["differences"], again["differences"], back["differences"]
    unknown = "version 0000000000000000, which is of no revision known here"
    assert one["sentence"] == f"It has {unknown}; Parley believes it has r1."
    assert (one["said_revision"], one["believed_revision"], one["believed_version"]) == (None, 1, version("pay"))
    assert (two["kind"], two["error"], two["since"]) == ("refuses", "no", one["since"])
    assert two["seen_at"] > one["seen_at"]
    assert healed["differences"] == []
    assert three["since"] > two["since"]
    assert [each["differing"] for each in back["earlier"]] == [0, 1, 1]


def test_report__an_earlier_revision__is_called_by_its_number(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="2s"))
    fleet.accept(held("pay", 2), held("cart", 1))

    found = report(api, *both())

    assert sentences(found) == {"pay": "It has r1; Parley believes it has r2."}


def test_report__moved_a_moment_ago__is_not_compared_and_stays_as_it_was(
    api: Caller, fleet: Fleet, clock: Clock
) -> None:
    before = report(api, said("pay", "0" * 16), said("cart", "0" * 16))
    publish(cluster("pay", connect_timeout="2s"))
    fleet.accept(held("pay", 2), held("cart", 1))

    clock.ahead = timedelta()
    moved = report(api, *both())
    clock.ahead = timedelta(minutes=1)
    fleet.send(held("pay", 2), held("cart", 1))
    had_it = report(api, *both())

    assert (moved["report"]["unsure"], moved["report"]["compared"]) == (2, 0)
    assert [each["since"] for each in moved["differences"]] == [each["since"] for each in before["differences"]]
    # What it acknowledged before a response that it has not answered yet, it has all the same.
    assert (had_it["report"]["compared"], list(sentences(had_it))) == (2, ["pay"])


def test_report__sent_and_not_answered__is_not_compared_and_what_it_did_not_ask_for_is_left_out(
    api: Caller, environments: None
) -> None:
    clients = fleet_at_r1("cart", "pay")
    clients.join("cart", "pay", node_id="node-1")
    clients.ack()
    moved_to_r2(clients)
    clients.write()

    found = report(api, said("pay", "0" * 16), both()[1], said("other"))

    assert (found["report"]["compared"], found["report"]["unsure"], found["differences"]) == (1, 1, [])


def test_report__of_what_a_rule_by_metadata_may_deny__is_compared_once_the_client_has_it(
    api: Caller, fleet: Fleet
) -> None:
    group = GroupDraft("canary", (Selector(metadata={"tier": "canary"}),), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=SYSTEM)
    draft = RuleDraft(Effect.DENY, "pay", client_groups=("canary",))
    rule_create(environment_key="default", draft=draft, actor=SYSTEM, consent=Consent(accept_loss=2))
    rebuild()

    connected = report(api, said("pay", "0" * 16), both()[1])
    Stream.objects.update(closed_at=timezone.now(), cause="gone")
    away = report(api, said("pay", "0" * 16), both()[1])

    assert (connected["report"]["compared"], connected["report"]["differing"]) == (2, 1)
    assert (away["report"]["compared"], away["report"]["unsure"]) == (1, 1)


def test_report__a_build_serves_something_else_since_a_moment__is_not_compared_until_the_client_can_have_it(
    api: Caller, fleet: Fleet, clock: Clock
) -> None:
    draft, consent = RuleDraft(Effect.DENY, "pay"), Consent(accept_loss=2)
    rule_create(environment_key="default", draft=draft, actor=DANA, consent=consent)
    rebuild()
    SnapshotRow.objects.update(at=F("at") + clock.ahead)

    at_once = report(api, *both())
    clock.ahead += timedelta(minutes=1)
    later = report(api, *both())

    assert (at_once["report"]["unsure"], at_once["report"]["agreeing"]) == (1, 1)
    # It was told nothing meanwhile: what it acknowledged, it has.
    assert (later["report"]["unsure"], later["report"]["agreeing"]) == (0, 2)


def test_report__refused__agrees_with_who_says_so_and_not_with_who_runs_it(api: Caller, fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="2s"))
    bad = "Error adding/updating cluster(s) pay: no"
    fleet.refuse(fleet.send(held("pay", 2)), bad, suspects=(held("pay", 2),))
    digest()

    agrees = report(api, said("pay", version("pay"), state="NACKED", error=bad), both()[1])
    runs_it = report(api, said("pay", version("pay", 2)), both()[1], node_id="node-2")

    assert sentences(agrees) == {}
    assert sentences(runs_it) == {"pay": "It uses r2, which Parley believes it refused."}


def test_report__denied_and_kept__says_that_it_has_it_still(api: Caller, fleet: Fleet) -> None:
    draft, consent = RuleDraft(Effect.DENY, "pay"), Consent(accept_loss=2)
    rule_create(environment_key="default", draft=draft, actor=DANA, consent=consent)
    rebuild()
    response = fleet.send(held("cart", 1))
    for each in fleet.streams:
        fleet.buffer.learnt(each, replace(acknowledged(response), removed=("pay",)))
    fleet.write()

    kept, gone = report(api, *both()), report(api, both()[1], node_id="node-2")

    assert sentences(kept) == {"pay": "It has r1; Parley believes it has none."}
    # Of everything that it asks for, what it may not read is no part.
    assert (sentences(gone), gone["report"]["compared"]) == ({}, 1)


def test_report__client_without_a_stream__is_held_against_what_is_published(api: Caller, fleet: Fleet) -> None:
    Stream.objects.update(closed_at=timezone.now(), cause="gone")
    publish(cluster("pay", connect_timeout="2s"))

    found = report(api, *both())

    away = "is published, and it has no open stream to get it by."
    assert sentences(found) == {"pay": f"It has r1; r2 {away}"}


def test_report__endpoints__are_compared_by_their_hosts(api: Caller, environments: None) -> None:
    clients = Fleet(1, kind=ENDPOINT)
    publish(endpoints("pay", 9000))
    clients.accept(held("pay", 1))
    entry = {"type": "endpoint", "name": "pay", "state": "ACKED", "held": True}

    other = report(api, {**entry, "endpoints": "0" * 16}, types=("endpoint",))
    hidden = report(api, entry, types=("endpoint",))

    assert sentences(other) == {"pay": "It has other hosts; Parley believes it has r1."}
    assert (sentences(hidden), hidden["report"]["by_presence"]) == ({}, 1)


def test_report__of_some_types__leaves_the_others_as_they_were(api: Caller, fleet: Fleet) -> None:
    report(api, said("pay", "0" * 16), both()[1])

    found = report(api, types=("route",))

    assert (found["report"]["compared"], found["report"]["differing"], list(sentences(found))) == (0, 0, ["pay"])


def test_report__hostile_words__are_kept_harmless_and_bounded(api: Caller, fleet: Fleet) -> None:
    pem = "-----BEGIN PRIVATE KEY-----abc-----END PRIVATE KEY-----"
    worst = said("pay", state="NACKED", error=f"{HOSTILE}{pem}{'x' * 3_900}", version_info=HOSTILE)
    crowd = [said(f"n{number}") for number in range(MAX_DIFFERENCES + 5)]

    alone = report(api, worst, both()[1], said(f"a{HOSTILE}"))
    many = report(api, worst, both()[1], *crowd)

    [kept] = alone["differences"]
    assert kept["name"] == "pay"
    assert kept["error"].startswith("<script>alert(1)</script>\\x1b[2J\\u202e<redacted>xxx")
    assert len(kept["error"]) <= 1_024
    assert many["report"]["differing"] == MAX_DIFFERENCES + 6
    assert len(many["differences"]) == MAX_DIFFERENCES


def test_reports__many__the_newest_are_kept_and_old_ones_go(api: Caller, fleet: Fleet) -> None:
    for _ in range(53):
        report(api, said("pay", "0" * 16), both()[1])
    kept = Report.objects.count()
    long_ago = timezone.now() - timedelta(days=15)
    Report.objects.update(at=long_ago)
    SaidDifference.objects.update(seen_at=long_ago)

    facts_prune()

    assert kept == 50
    assert (Report.objects.count(), SaidDifference.objects.count()) == (0, 0)


def test_difference__of_one_name__for_explain(api: Caller, fleet: Fleet) -> None:
    report(api, said("pay", "0" * 16), both()[1])

    word = client_word(public_id=id_of())

    assert word is not None
    found = {(each.type, each.name): each for each in word.differences}
    assert found["cluster", "pay"].sentence.startswith("It has version 0")
    assert ("cluster", "cart") not in found


@pytest.mark.parametrize("role", list(Role))
def test_report__role__reporter_or_operator_is_needed(api: Caller, fleet: Fleet, role: Role) -> None:
    body = {"source": "csds", "types": ["cluster"], "names": both()}
    path = f"clients/{id_of()}/said"
    allowed = role in {Role.REPORTER, Role.OPERATOR, Role.ADMIN}

    here = caller(Scope(role, "default")).post(path, body)
    elsewhere = caller(Scope(role, "prod")).post(path, body)

    assert here.status == (200 if allowed else 403)
    assert elsewhere.status == 404
    assert caller(Scope(role, "default")).get(path).status == 200
    assert caller(Scope(role, "prod")).get(path).status == 404
    assert Report.objects.exists() is allowed


def test_reporter__may_read_and_report_and_nothing_else(fleet: Fleet) -> None:
    reporter = caller(Scope(Role.REPORTER, "default"))

    assert reporter.get(f"clients/{id_of()}").status == 200
    assert_problem(reporter.put("environments/default/resources/cluster/pay", cluster("pay")), 403)
    assert_problem(reporter.post("environments/default/rollback", {"to_epoch": 1, "reason": "r"}), 403)


@pytest.mark.parametrize(
    "body",
    [
        {"source": "rumour", "types": [], "names": []},
        {"source": "csds", "types": ["nonsense"], "names": []},
        {"source": "csds", "types": [], "names": [], "dump": {}},
        {"source": "csds", "types": [], "names": [{**said("pay"), "config": {}}]},
        {"source": "csds", "types": [], "names": [said("pay", state="FINE")]},
        {"source": "csds", "types": [], "names": [{**said("pay"), "held": "yes"}]},
        {"source": "csds", "types": [], "names": [said("x" * 1_025)]},
        {"source": "csds", "types": []},
    ],
)
def test_report__body_that_is_wrong__422_and_nothing_kept(api: Caller, fleet: Fleet, body: object) -> None:
    assert_problem(api.post(f"clients/{id_of()}/said", body), 422)
    assert not Report.objects.exists()


def test_report__more_names_than_allowed__413(api: Caller, fleet: Fleet, settings: Settings) -> None:
    body = {"source": "csds", "types": [], "names": [said(f"n{number}") for number in range(5_001)]}

    assert_problem(api.post(f"clients/{id_of()}/said", body), 413)
