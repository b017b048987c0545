"""Mutes, assignees, and incidents that the next revision is to mend: what the digest makes of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.contrib.auth import get_user_model
from pytest_django.fixtures import Settings

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role
from controlplane.clients.clock import database_now
from controlplane.common.errors import Conflict
from controlplane.config.values import WebhookAllow
from controlplane.database.aliases import READER
from controlplane.incidents.filtering import NOBODY, IncidentFilter
from controlplane.incidents.models import Incident
from controlplane.incidents.selectors import incident_get, incident_list
from controlplane.incidents.services import (
    digest,
    incident_assign,
    incident_mended_next,
    incident_mute,
    incident_set_state,
    incident_unmute,
)
from controlplane.incidents.services.assigning import assignees_check
from controlplane.incidents.values import CROWDED, IncidentState
from controlplane.journal.models import AuditEvent
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import DigestEntry, Notification, Sending
from controlplane.notify.services import channel_create, notify
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster
from tests.support.principals import somebody
from tests.support.webhook import Receiver, receiver

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

OPAL = somebody("opal", ADMIN_SCOPES)
BAD = "Error adding/updating cluster(s) pay: Invalid path: /no/such/ca.pem"
OTHER = "Error adding/updating cluster(s) pay: no health check"


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    """A webhook that is told everything, and a digest."""
    settings.PARLEY = replace(settings.PARLEY, webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"),)))
    with receiver() as running:
        channel_create(wanted=NewChannel("all", ChannelKind.WEBHOOK, running.url), actor=SYSTEM)
        yield running


@pytest.fixture
def fleet(database: str) -> Fleet:
    """Twenty clients that run r1 of `pay`; the first refused r2."""
    some = Fleet(20, identity="spiffe://shop/{number}")
    publish(cluster("pay"))
    some.accept(held("pay", 1))
    digest()
    publish(cluster("pay", connect_timeout="2s"))
    refuse(some, slice(1))
    digest()
    notify()
    return some


def refuse(fleet: Fleet, who: slice = slice(None), text: str = BAD, *, number: int = 2) -> None:
    """These clients are sent this revision of `pay`, and refuse it."""
    fleet.refuse(fleet.send(held("pay", number)), text, suspects=(held("pay", number),), who=who)


def the_id() -> str:
    return str(Incident.objects.get().public_id)


def mute(hours: float = 1) -> str:
    public_id = the_id()
    until = database_now() + timedelta(hours=hours)
    incident_mute(public_id=public_id, until=until, reason="r3 comes", actor=OPAL, request_id="r-1")
    return public_id


def the_mute_is_over() -> None:
    Incident.objects.update(muted_until=database_now() - timedelta(seconds=1))


def kinds() -> list[tuple[str, str]]:
    return list(Notification.objects.order_by("pk").values_list("kind", "sending"))


def told(hook: Receiver) -> int:
    notify()
    return len(hook.received)


def test_muted__more_refuse_and_it_escalates__nobody_is_told_and_the_inbox_has_it(hook: Receiver, fleet: Fleet) -> None:
    before = told(hook)
    mute()
    Incident.objects.update(first_at=database_now() - timedelta(hours=2))

    refuse(fleet)
    digest()
    digest()

    assert told(hook) == before
    assert kinds()[-1] == ("incident.escalating", Sending.INBOX.value)
    assert Incident.objects.get().nacked == 20


def test_muted__digest_mails__do_not_hold_it_either(hook: Receiver, fleet: Fleet) -> None:
    wanted = NewChannel("daily", ChannelKind.DIGEST, "team@example.org", digest={"every": "hour"})
    mute()
    Incident.objects.update(first_at=database_now() - timedelta(hours=2))
    channel_create(wanted=wanted, actor=SYSTEM)

    refuse(fleet)
    digest()
    digest()
    notify()

    assert not DigestEntry.objects.exists()


def test_mute__its_time_is_over__ends_by_itself_and_channels_are_told(hook: Receiver, fleet: Fleet) -> None:
    before = told(hook)
    public_id = mute()
    digest()
    assert incident_get(public_id=public_id).incident.mute is not None

    the_mute_is_over()
    digest()
    digest()

    assert incident_get(public_id=public_id).incident.mute is None
    assert told(hook) == before + 1
    assert kinds()[-1] == ("incident.unmuted", Sending.SENT.value)
    last = AuditEvent.objects.filter(subject=public_id).order_by("-pk")[0]
    assert (last.verb, last.actor, last.detail["because"]) == ("incident.unmuted", "parley", "its time was over")


def test_mute__ended_by_hand__channels_are_told_by_whom(hook: Receiver, fleet: Fleet) -> None:
    before = told(hook)
    public_id = mute()

    incident_unmute(public_id=public_id, actor=OPAL, request_id="")
    incident_unmute(public_id=public_id, actor=OPAL, request_id="")

    assert told(hook) == before + 1
    assert Notification.objects.latest("pk").text.startswith("opal unmuted it.")


def test_muted__same_words__stays_muted_but_other_words_end_it(hook: Receiver, fleet: Fleet) -> None:
    before = told(hook)
    public_id = mute()

    refuse(fleet, slice(1, 3))
    digest()
    assert (told(hook), incident_get(public_id=public_id).incident.mute is None) == (before, False)
    refuse(fleet, slice(3, 4), OTHER)
    digest()

    assert (told(hook), incident_get(public_id=public_id).incident.mute) == (before + 1, None)
    assert "no health check" in Notification.objects.latest("pk").text


def test_muted__words_that_it_had_before_the_mute__do_not_end_it(hook: Receiver, fleet: Fleet) -> None:
    refuse(fleet, slice(1, 2), OTHER)
    digest()
    before = told(hook)
    public_id = mute()

    refuse(fleet, slice(2, 3), OTHER)
    digest()

    assert (told(hook), incident_get(public_id=public_id).incident.mute is None) == (before, False)


def test_muted__another_revision_refused_in_other_words__is_another_incident_that_is_told(
    hook: Receiver, fleet: Fleet
) -> None:
    before = told(hook)
    mute()
    publish(cluster("pay", connect_timeout="3s"))

    refuse(fleet, slice(1), OTHER, number=3)
    digest()

    assert Incident.objects.count() == 2
    assert told(hook) == before + 1


def test_muted__resolved__is_quiet_and_what_comes_back_is_told(hook: Receiver, fleet: Fleet) -> None:
    before = told(hook)
    public_id = mute()

    incident_set_state(public_id=public_id, state=IncidentState.RESOLVED, actor=OPAL, request_id="")
    digest()
    assert told(hook) == before
    refuse(fleet, slice(1, 2))
    digest()

    assert told(hook) == before + 1
    assert kinds()[-1][0] == "incident.regressed"


def test_mute__of_what_stands_for_many_faults__is_refused(fleet: Fleet) -> None:
    Incident.objects.update(normalised=CROWDED)

    with pytest.raises(Conflict, match="would hide new ones"):
        mute()


def viewer(login: str) -> int:
    user = get_user_model().objects.create_user(login)
    RoleGrant.objects.create(user=user, role=Role.VIEWER.value, environment="default")
    return int(user.pk)


def test_assigned__person_is_told_and_finds_it(hook: Receiver, fleet: Fleet) -> None:
    number = viewer("mia")
    before = told(hook)

    incident_assign(public_id=the_id(), person="mia", actor=OPAL, request_id="r-2")
    incident_assign(public_id=the_id(), person="mia", actor=OPAL, request_id="r-3")

    assert told(hook) == before + 1
    last = Notification.objects.latest("pk")
    assert (last.kind, last.recipient, last.severity) == ("incident.assigned", f"user:{number}", "quiet")
    assert last.title.startswith("mia is to look after Cluster 'pay'")
    assert AuditEvent.objects.filter(verb="incident.assigned").count() == 1


def test_assignee__turned_off_or_without_rights__is_marked_and_counts_as_nobody(fleet: Fleet) -> None:
    number = viewer("mia")
    incident_assign(public_id=the_id(), person="mia", actor=OPAL, request_id="")
    assignees_check()
    assert [gone(), unassigned()] == [False, 0]

    get_user_model().objects.filter(pk=number).update(is_active=False)
    assignees_check()
    assert [gone(), unassigned()] == [True, 1]
    get_user_model().objects.filter(pk=number).update(is_active=True)
    assignees_check()
    assert [gone(), unassigned()] == [False, 0]
    RoleGrant.objects.all().delete()
    assignees_check()
    assert [gone(), unassigned()] == [True, 1]


def gone() -> bool:
    assignee = incident_get(public_id=the_id()).incident.assignee
    return assignee is not None and assignee.gone


def unassigned() -> int:
    return len(incident_list(environment_keys=["default"], wanted=IncidentFilter(assignee=NOBODY)))


def promise() -> str:
    public_id = the_id()
    incident_mended_next(public_id=public_id, actor=OPAL, request_id="r-5")
    return public_id


def state(public_id: str) -> IncidentState:
    return incident_get(public_id=public_id).incident.state


def test_mended_next__newer_revision_published__resolved_before_anybody_took_it(fleet: Fleet) -> None:
    public_id = promise()
    digest()
    assert state(public_id) is IncidentState.ACKNOWLEDGED

    publish(cluster("pay", connect_timeout="3s"))
    digest()

    assert state(public_id) is IncidentState.RESOLVED
    resolved = AuditEvent.objects.get(subject=public_id, verb="incident.resolved")
    assert "opal said that it mends this" in resolved.detail["because"]


@pytest.mark.parametrize("digested", [True, False], ids=["after it was resolved", "before"])
def test_mended_next__clients_refuse_that_one_for_the_same_reason__open_again(
    hook: Receiver, fleet: Fleet, digested: bool
) -> None:
    public_id = promise()
    publish(cluster("pay", connect_timeout="3s"))
    if digested:
        digest()

    refuse(fleet, slice(2), number=3)
    digest()
    notify()

    assert state(public_id) is IncidentState.OPEN
    detail = incident_get(public_id=public_id)
    assert (detail.revision, detail.mended_by) == (3, "")
    assert Notification.objects.filter(kind="incident.regressed").count() == 1


def test_mended_next__newer_one_is_published_already__resolved_at_once(fleet: Fleet) -> None:
    publish(cluster("pay", connect_timeout="3s"))
    digest()
    public_id = promise()
    digest()

    assert state(public_id) is IncidentState.RESOLVED


def test_mended_next__taken_back_by_opening_it__waits_for_clients_again(fleet: Fleet) -> None:
    public_id = promise()
    incident_set_state(public_id=public_id, state=IncidentState.OPEN, actor=OPAL, request_id="")

    publish(cluster("pay", connect_timeout="3s"))
    digest()

    assert state(public_id) is IncidentState.OPEN
