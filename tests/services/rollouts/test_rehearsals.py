"""Rehearsals: some clients get manifests for a moment, and nothing of it is left behind (rollouts.md "Rehearsal")."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from adsserver.engine.events import DeltaRequest, Nack
from controlplane.access.services import group_create
from controlplane.access.values import GroupDraft
from controlplane.builder.models import HeldResource
from controlplane.catalog.models import (
    Blob,
    Change,
    Environment,
    Quarantine,
    Rehearsal,
    RehearsedName,
    Resource,
    Revision,
    RevisionProof,
    StagedName,
)
from controlplane.catalog.rehearsals import rehearsal_is_open
from controlplane.catalog.services import rehearsals_prune
from controlplane.catalog.staging import environments_waiting
from controlplane.catalog.values import Delete, Edit, Put
from controlplane.common.errors import Conflict, InputInvalid, InputTooLarge, Occupied
from controlplane.database.aliases import READER
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from controlplane.journal.models import AuditEvent
from controlplane.rollouts.models import Rollout
from controlplane.rollouts.rehearsal import MAX_NAMES, RehearsalVerdict, Report, ResultState
from controlplane.rollouts.rehearsal_reading import Rehearsing, rehearsal_look
from controlplane.rollouts.services import rehearsal_begin, rehearsal_end, rollouts_tick
from controlplane.routecases.selectors import case_get
from controlplane.routecases.services import case_create
from controlplane.routecases.values import Expected, RouteCaseDraft
from controlplane.snapshots.selectors import candidate_diff, entries_published, rollout_table
from tests.services.rollouts.clients import DANA, ENVOY, GO, Fleet, deliver, go_on, switch_on, write
from tests.support.manifests import Tree, cluster, endpoints, listener, parsed, route, tls_secret
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.rehearsed import is_rehearsed
from xdscore.resource_types import CLUSTER
from xdscore.routing.values import Answer as RouteAnswer
from xdscore.routing.values import Request
from xdscore.snapshot import Served

pytestmark = [pytest.mark.django_db(transaction=True, databases=["default", READER])]


@pytest.fixture
def theatre(fleet: Fleet) -> Fleet:
    """An Envoy and a gRPC client that may rehearse, another Envoy that may not, and r1 of `pay`; no rollouts."""
    group = GroupDraft("stage", (Selector(node_id="stage-*"),), Trust.DECLARED)
    group_create(environment_key="default", draft=group, actor=DANA)
    switch_on(mode="off", rehearsal_group="stage")
    fleet.join("stage-envoy", agent=ENVOY)
    fleet.join("stage-go", "pay", "new", agent=GO)
    fleet.join("public", agent=ENVOY)
    write(cluster("pay"))
    go_on(fleet)
    digest()
    return fleet


def begin(
    *trees: Tree, clients: Sequence[str] | int = 1, delete: Sequence[str] = (), within_s: float = 10
) -> Rehearsing:
    edits: list[Edit] = [
        *(Put(parsed(tree)) for tree in trees),
        *(Delete(CLUSTER, name, missing_ok=True) for name in delete),
    ]
    return rehearsal_begin(environment_key="default", edits=edits, clients=clients, within_s=within_s, actor=DANA)


def play(fleet: Fleet, rehearsing: Rehearsing) -> Report:
    """The clients get it and answer."""
    deliver(fleet)
    return rehearsal_look(rehearsing)


def states(report: Report) -> dict[tuple[str, str], str]:
    return {(each.node_id, each.name): each.state.value for each in report.results}


def left() -> tuple[object, ...]:
    """All that a rehearsal must not leave a trace in, but for the generations that it counts."""
    return (
        list(Revision.objects.order_by("pk").values_list("pk", "version")),
        list(Resource.objects.order_by("pk").values_list("name", "head", "proven", "deleted")),
        list(RevisionProof.objects.order_by("pk").values_list("revision", flat=True)),
        Change.objects.count(),
        Quarantine.objects.count(),
        Incident.objects.count(),
        StagedName.objects.count(),
        Rollout.objects.count(),
        HeldResource.objects.count(),
        served(),
    )


def served() -> dict[tuple[str, str], object]:
    """What the stable side has of each name."""
    entries = entries_published(environment_key="default")
    return {key: entry.content if isinstance(entry, Served) else entry for key, entry in entries.items()}


def age(**later: float) -> None:
    """Let time go by for every rehearsal."""
    for field in ("ends_at", "closed_at"):
        Rehearsal.objects.exclude(**{field: None}).update(**{field: Now() - timedelta(**later)})


def test_rehearsal__everybody_takes_it__is_told_and_leaves_everything_as_it_was(theatre: Fleet) -> None:
    before, had = left(), theatre.has("pay")

    rehearsing = begin(cluster("pay", connect_timeout="2s"), cluster("new"))
    report = play(theatre, rehearsing)

    assert report.verdict is RehearsalVerdict.TAKEN
    assert report.settled
    assert states(report) == {
        ("stage-envoy", "pay"): "taken",
        ("stage-envoy", "new"): "taken",
        ("stage-go", "pay"): "taken",
        ("stage-go", "new"): "taken",
    }
    assert {each.kind for each in report.results} == {"envoy 1.40", "grpc-go 1.66"}
    assert is_rehearsed(theatre.has("pay")["stage-go"])
    digest()

    rehearsal_end(rehearsing)
    deliver(theatre)
    digest()

    assert theatre.has("pay") == had
    assert theatre.has("new") == {}
    assert left() == before
    assert not candidate_diff(environment_key="default")
    assert rollout_table(environment_key="default") is None


def test_rehearsal__others__are_sent_nothing(theatre: Fleet) -> None:
    seen = set(theatre.members["public"].seen)
    responses = len(theatre.members["public"].unanswered)

    rehearsing = begin(cluster("pay", connect_timeout="2s"), cluster("new"), clients=["stage-go"])
    play(theatre, rehearsing)

    assert theatre.members["public"].seen == seen
    assert len(theatre.members["public"].unanswered) == responses
    assert not any(is_rehearsed(version) for _, version in theatre.members["stage-envoy"].seen)

    rehearsal_end(rehearsing)
    deliver(theatre)

    assert theatre.members["public"].seen == seen


def test_rehearsal__one_refuses_one_of_twenty__is_told_in_its_words_and_becomes_nothing_else(theatre: Fleet) -> None:
    theatre.members["stage-envoy"].refuses = frozenset({"name-7"})
    before = left()
    trees = [cluster(f"name-{number}") for number in range(20)]

    rehearsing = begin(*trees, clients=["stage-envoy"])
    report = play(theatre, rehearsing)

    assert report.verdict is RehearsalVerdict.REFUSED
    [refused] = [each for each in report.results if each.state is ResultState.REFUSED]
    assert (refused.node_id, refused.type, refused.name) == ("stage-envoy", "cluster", "name-7")
    assert "name-7: INVALID" in refused.message
    others = [each.state for each in report.results if each.name != "name-7"]
    assert others == [ResultState.TAKEN] * 19

    digest()
    rehearsal_end(rehearsing)
    deliver(theatre)
    digest()

    assert left() == before


def test_rehearsal__refusal_that_names_nobody__opens_no_incident(theatre: Fleet) -> None:
    """Whatever the client means, it may mean what was rehearsed."""
    theatre.members["stage-envoy"].answers = False
    rehearsing = begin(cluster("one"), cluster("two"), clients=["stage-envoy"])
    deliver(theatre)
    member = theatre.members["stage-envoy"]
    response = member.unanswered.pop(0)
    nack = Nack(3, "no")
    theatre._request(member, DeltaRequest(member.kind, nonce=response.nonce, nack=nack))
    theatre.write()

    report = rehearsal_look(rehearsing)
    digest()

    assert report.verdict is RehearsalVerdict.REFUSED
    assert any("no" in each.message for each in report.results)
    assert Incident.objects.count() == 0


def test_refusal__of_a_revision_while_something_is_rehearsed__opens_its_incident(theatre: Fleet) -> None:
    theatre.members["stage-envoy"].refuses = frozenset({"shop"})
    rehearsing = begin(cluster("pay", connect_timeout="2s"), clients=["stage-envoy"])
    play(theatre, rehearsing)

    write(cluster("shop"))
    deliver(theatre)
    digest()

    assert [each.name for each in Incident.objects.all()] == ["shop"]


def test_rehearsal__content_of_a_stored_revision__proves_nothing(theatre: Fleet) -> None:
    """The newest revision waits for a rollout and nobody acknowledged it; then its very bytes are rehearsed."""
    switch_on(mode="steps", steps=[{"kinds": 1}], rehearsal_group="stage")
    write(cluster("pay", connect_timeout="2s"))
    assert StagedName.objects.count() == 1
    proofs = set(RevisionProof.objects.values_list("revision", flat=True))

    rehearsing = begin(cluster("pay", connect_timeout="2s"))
    report = play(theatre, rehearsing)
    digest()
    rehearsal_end(rehearsing)

    assert report.verdict is RehearsalVerdict.TAKEN
    assert set(RevisionProof.objects.values_list("revision", flat=True)) == proofs
    proven = Resource.objects.get(name="pay").proven
    assert proven is not None
    assert proven.number == 1


def test_rehearsal__as_it_is_already__is_taken_and_nothing_is_sent(theatre: Fleet) -> None:
    seen = set(theatre.members["stage-envoy"].seen)

    rehearsing = begin(cluster("pay"), clients=["stage-envoy"])
    report = play(theatre, rehearsing)

    assert (report.verdict, report.settled) == (RehearsalVerdict.TAKEN, True)
    assert theatre.members["stage-envoy"].seen == seen


def test_rehearsal__of_a_deletion__takes_it_from_the_client_and_gives_it_back(theatre: Fleet) -> None:
    rehearsing = begin(delete=["pay", "never-was"], clients=["stage-envoy"])
    report = play(theatre, rehearsing)

    assert states(report)["stage-envoy", "pay"] == "taken"
    assert "stage-envoy" not in theatre.has("pay")
    assert "public" in theatre.has("pay")

    rehearsal_end(rehearsing)
    deliver(theatre)

    assert theatre.has("pay").keys() == {"stage-envoy", "stage-go", "public"}
    assert not Resource.objects.get(name="pay").deleted


def test_rehearsal__nobody_asks_for_it__is_inconclusive_and_waits_for_nothing(theatre: Fleet) -> None:
    rehearsing = begin(cluster("elsewhere"), clients=["stage-go"])
    report = play(theatre, rehearsing)

    assert report.verdict is RehearsalVerdict.INCONCLUSIVE
    assert report.settled
    assert [(each.state, each.message) for each in report.results] == [
        (ResultState.NOT_ASKED, "It does not ask for it.")
    ]


def test_rehearsal__client_is_silent_or_gone__is_inconclusive(theatre: Fleet) -> None:
    theatre.members["stage-envoy"].answers = False
    rehearsing = begin(cluster("pay", connect_timeout="2s"))

    report = play(theatre, rehearsing)

    assert (report.verdict, report.settled, report.quiet) == (RehearsalVerdict.INCONCLUSIVE, False, False)
    assert states(report) == {("stage-envoy", "pay"): "silent", ("stage-go", "pay"): "taken"}

    theatre.leave("stage-envoy")
    theatre.write()
    report = rehearsal_look(rehearsing)

    assert (report.verdict, report.settled) == (RehearsalVerdict.INCONCLUSIVE, True)
    [gone] = [each for each in report.results if each.node_id == "stage-envoy"]
    assert (gone.state, gone.message) == (ResultState.SILENT, "Its stream ended before it answered.")


def test_rehearsal__what_needs_what_is_not_there__is_sent_to_nobody_and_says_why(theatre: Fleet) -> None:
    theatre.join("stage-routes", "main", kind=parsed(route("main", "gone")).type)
    rehearsing = begin(route("main", "gone"), clients=["stage-routes"])
    report = play(theatre, rehearsing)

    assert (report.verdict, report.settled) == (RehearsalVerdict.INCONCLUSIVE, True)
    [result] = report.results
    assert result.state is ResultState.NOT_ASKED
    assert "'gone'" in result.message
    assert HeldResource.objects.count() == 0
    assert theatre.members["stage-routes"].seen == set()


def test_rehearsal__of_what_would_break_a_route_case__says_so_and_keeps_the_case_as_it_stood(theatre: Fleet) -> None:
    write(listener("edge", "shop", 80), route("shop", "pay"), cluster("other"))
    expects = Expected(RouteAnswer.ROUTED, cluster="pay")
    draft = RouteCaseDraft("pays", Request("shop.example", "/pay"), expects)
    case = case_create(environment_key="default", draft=draft, actor=DANA)
    assert case.holds

    begun = begin(route("shop", "other"), clients=["stage-envoy"])

    assert begun.foreseen.broken == 1
    assert [(each.code, each.severity.value) for each in begun.foreseen.findings] == [("XDS3091", "error")]
    assert case_get(environment_key="default", case_id=case.id) == case
    rehearsal_end(begun)
    assert begin(cluster("other", connect_timeout="2s"), clients=["stage-envoy"]).foreseen.broken == 0


def test_rehearsal__write_meanwhile__is_published_to_everybody(theatre: Fleet) -> None:
    rehearsing = begin(cluster("new"))
    play(theatre, rehearsing)

    write(cluster("pay", connect_timeout="3s"))
    deliver(theatre)

    version = Revision.objects.get(resource__name="pay", number=2).version
    assert set(theatre.has("pay").values()) == {version}
    assert StagedName.objects.count() == 0
    assert theatre.has("new").keys() == {"stage-envoy", "stage-go"}
    assert rehearsal_look(rehearsing).verdict is RehearsalVerdict.TAKEN


def test_rehearsal__immediate_type__reaches_the_rehearsing_client_alone(theatre: Fleet) -> None:
    kind = parsed(endpoints("pay", 80)).type
    theatre.join("stage-eds", "pay", kind=kind)
    theatre.join("public-eds", "pay", kind=kind)
    write(cluster("pay", eds=True), endpoints("pay", 80))
    go_on(theatre)
    before = dict(theatre.members["public-eds"].has)

    rehearsing = begin(endpoints("pay", 81), clients=["stage-eds"])
    report = play(theatre, rehearsing)

    assert report.verdict is RehearsalVerdict.TAKEN
    assert theatre.members["public-eds"].has == before
    assert theatre.members["stage-eds"].has != before


def test_begin__while_another_or_a_rollout_is_open__occupied_with_a_time(theatre: Fleet) -> None:
    first = begin(cluster("new"), within_s=5)

    with pytest.raises(Occupied, match="Another rehearsal") as refused:
        begin(cluster("new"))
    assert 1 <= refused.value.retry_after_s <= 7

    rehearsal_end(first)
    switch_on(mode="steps", steps=[{"clients": 1}], rehearsal_group="stage")
    write(cluster("pay", connect_timeout="2s"))
    rollouts_tick()
    assert Rollout.objects.count() == 1

    with pytest.raises(Occupied, match="A rollout is open"):
        begin(cluster("new"))


def test_rollout__due_while_something_is_rehearsed__opens_after_that(theatre: Fleet) -> None:
    switch_on(mode="steps", steps=[{"clients": 1}], rehearsal_group="stage")
    rehearsing = begin(cluster("new"))
    write(cluster("pay", connect_timeout="2s"))

    assert environments_waiting() == ()
    rollouts_tick()
    assert Rollout.objects.count() == 0

    rehearsal_end(rehearsing)
    rollouts_tick()
    assert Rollout.objects.count() == 1


def test_begin__clients_that_may_not__are_all_named_and_nothing_is_sent(theatre: Fleet) -> None:
    with pytest.raises(InputInvalid) as refused:
        begin(cluster("new"), clients=["public", "stage-go", "nobody"])

    assert [each.pointer for each in refused.value.findings] == ["/clients/0", "/clients/2"]
    assert "'public' may not rehearse" in refused.value.findings[0].detail
    assert "No client 'nobody' is connected" in refused.value.findings[1].detail
    assert not rehearsal_is_open(environment_key="default")
    assert Rehearsal.objects.count() == 0


def test_begin__environment_without_a_group_or_too_much__is_refused(theatre: Fleet) -> None:
    with pytest.raises(InputTooLarge):
        begin(*(cluster(f"name-{number}") for number in range(MAX_NAMES + 1)))
    with pytest.raises(InputInvalid, match="nothing to rehearse"):
        begin()
    with pytest.raises(InputInvalid, match="more than once"):
        begin(cluster("pay"), cluster("pay", connect_timeout="2s"))
    switch_on(mode="off")
    with pytest.raises(InputInvalid, match="names no client group for it"):
        begin(cluster("new"))

    assert Rehearsal.objects.count() == 0


def test_deadline__who_made_it_died__the_sweeper_ends_it(theatre: Fleet) -> None:
    had = theatre.has("pay")
    begin(cluster("pay", connect_timeout="2s"))
    deliver(theatre)
    assert theatre.has("pay") != had

    rollouts_tick()
    assert rehearsal_is_open(environment_key="default")  # its deadline is still to come

    age(seconds=1)
    rollouts_tick()
    assert not rehearsal_is_open(environment_key="default")
    deliver(theatre)

    assert theatre.has("pay") == had


def test_deadline__nobody_sweeps__whoever_builds_ends_it(theatre: Fleet) -> None:
    had = theatre.has("pay")
    begin(cluster("pay", connect_timeout="2s"))
    deliver(theatre)
    age(seconds=1)

    write(cluster("shop"))
    deliver(theatre)

    assert not rehearsal_is_open(environment_key="default")
    assert theatre.has("pay") == had
    assert theatre.has("shop").keys() >= {"stage-envoy", "public"}
    at = Environment.objects.get(key="default")
    assert at.generation == at.built_generation


def test_deadline__passed__makes_room_for_the_next_one(theatre: Fleet) -> None:
    begin(cluster("pay", connect_timeout="2s"))
    age(seconds=1)

    rehearsing = begin(cluster("new"), clients=["stage-go"])

    assert states(play(theatre, rehearsing)) == {("stage-go", "new"): "taken"}


def test_prune__minutes_after_the_end__takes_rows_and_contents_that_nobody_else_has(theatre: Fleet) -> None:
    write(tls_secret("key", "old"))
    addresses = set(Blob.objects.filter(kind__in=["resource", "secret"]).values_list("hash", flat=True))
    rehearsing = begin(cluster("new"), cluster("pay"), tls_secret("key", "hush"))
    sealed = RehearsedName.objects.get(type="secret").blob
    assert sealed is not None
    assert (sealed.kind, b"hush" in bytes(sealed.data)) == ("secret", False)

    rehearsal_end(rehearsing)
    assert rehearsals_prune() == 0

    age(minutes=11)
    assert rehearsals_prune() == 1
    assert set(Blob.objects.filter(kind__in=["resource", "secret"]).values_list("hash", flat=True)) == addresses
    assert RehearsedName.objects.count() == 0


def test_begin__is_in_the_audit_log_with_who_and_how_much(theatre: Fleet) -> None:
    rehearsing = begin(cluster("new"), clients=["stage-go"])

    event = AuditEvent.objects.get(verb="rehearsal.made")
    assert (event.subject, event.actor) == (f"rehearsal/{rehearsing.id}", "dana")
    assert event.detail == {"names": 1, "clients": 1, "lasts_s": 12.0}


def test_stable_side__while_something_is_rehearsed__has_the_bytes_that_it_had(theatre: Fleet) -> None:
    write(cluster("shop"))
    deliver(theatre)
    before = dict(entries_published(environment_key="default"))

    begin(cluster("pay", connect_timeout="2s"), cluster("new"))
    deliver(theatre)

    assert dict(entries_published(environment_key="default")) == before
    rehearsed, stable = candidate_diff(environment_key="default")["cluster", "pay"], before["cluster", "pay"]
    assert isinstance(rehearsed, Served)
    assert isinstance(stable, Served)
    assert rehearsed.proven == stable.content  # R6


def test_hold__nobody_rehearses(theatre: Fleet) -> None:
    Environment.objects.filter(key="default").update(hold_reason="after a rollback")

    with pytest.raises(Conflict, match="on hold"):
        begin(cluster("new"))

    assert Rehearsal.objects.count() == 0
