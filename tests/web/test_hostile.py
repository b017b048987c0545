"""Everything that shows something: pages, API, logs, messages. Nothing that anybody wrote acts there.

The paths are read off the URL configuration, so a page that is new is looked at too; one with a part that is not known
here fails until `PARTS` says what it stands for.
"""

import json
import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote

import pytest
import structlog
from django.contrib.auth.models import Group
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern
from django.utils import timezone

from adsserver.engine.body import Body
from adsserver.engine.holdings import BodyGround, Holdings
from adsserver.store.facts import FactBuffer
from controlplane.access.choices import EditSubject
from controlplane.access.values import GroupDraft, RuleDraft, Wish
from controlplane.accounts.models import ApiToken, RoleGrant
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.changesets.services import Place, change_set_comment, change_set_create, change_set_submit
from controlplane.clients.models import Client as ClientRow
from controlplane.clients.models import Nack, SaidDifference, Stream
from controlplane.clients.selectors import client_get
from controlplane.database.aliases import READER
from controlplane.discussion.models import Comment
from controlplane.discussion.tickets import ticket_link_add
from controlplane.explain import beliefs
from controlplane.explain.words import word_take
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest, incident_quarantine
from controlplane.listing.models import SavedView
from controlplane.logs.setup import logging_config
from controlplane.notify.bodies import slack_body, webhook_body
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Notification
from controlplane.notify.services import channel_create
from controlplane.notify.services.expanding import notifications_expand
from controlplane.routecases.services import case_create as route_case_create
from controlplane.routecases.values import Expected, RouteCaseDraft
from tests.services.incidents.fleet import held
from tests.support.facts import NothingSecret, rejected, respond, stream, subscribed
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from tests.support.rollouts import rollout_begun
from tests.web.conftest import HOSTILE, USERS
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.holdings import Holding, HoldingState
from xdscore.resource_types import CLUSTER
from xdscore.routing.values import Answer as RouteAnswer
from xdscore.routing.values import Request
from xdscore.said import Said, SaidSource, SaidState, Word

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

# A name is exact bytes and may turn the direction; a control character it must not hold.
NAME = "<img src=x onerror=alert(1)>\u202egnp.exe"
EVERYTHING = HOSTILE + "\x00\x9b2J\u2028</script><script>alert(1)</script>"
# What operators write is theirs, and the API gives it back as it was; pages and messages show it harmlessly.
MALLORY = somebody(f"mallory {NAME}", ADMIN_SCOPES)
# Nothing that is shown of one fleet of one hostile client takes more.
_MOST_BYTES = 300_000
# The document of the API and its reader hold nothing that anybody wrote.
_LONG = frozenset({"/api/v1/schema/", "/api/v1/schema/ui/"})
_KEPT_BYTES = 4_096
_ACTING = ("\x00", "\x1b", "\x9b")
_FIELDS = re.compile(r"<textarea\b.*?</textarea>| value=\"[^\"]*\"", re.DOTALL)


@pytest.fixture
def parts(two_environments: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What stands in a path, after everything that can be hostile was: one client that refuses a resource."""
    edits = [Put(parsed(cluster(NAME)))]
    change_apply(environment_key="default", edits=edits, actor=MALLORY, message=NAME)
    builds_sweep()
    hostile = stream(
        1, node_id=EVERYTHING, identity=f"spiffe://corp/{EVERYTHING}", node_cluster=EVERYTHING * 100,
        user_agent=EVERYTHING * 100, user_agent_version=EVERYTHING * 100,
    )  # fmt: skip
    content = held(NAME, 1)
    response = respond(content)
    buffer = FactBuffer(contents=NothingSecret())
    buffer.opened(hostile)
    buffer.learnt(hostile, subscribed(NAME, EVERYTHING, wildcard=True))
    buffer.sent(hostile, response)
    text = f"Error adding/updating cluster(s) {NAME}: {EVERYTHING}{'x' * 1_048_576}"
    buffer.learnt(hostile, rejected(response, text, suspects=(content,)))
    refused = {NAME: Holding(HoldingState.NACKED, content.content.version)}
    buffer.holds(hostile, CLUSTER, Holdings(BodyGround(Body((), {}, (), ""), tells=True), refused))
    buffer._take()
    buffer._flush()
    digest()
    incident = str(Incident.objects.get().public_id)
    incident_quarantine(public_id=incident, reason=NAME, actor=MALLORY, request_id=NAME)
    builds_sweep()
    monkeypatch.setattr(beliefs, "SETTLED_AFTER", timedelta(minutes=-1))  # nothing counts as having just moved
    _reported(ClientRow.objects.get().pk)
    api_token_create(name=NAME, scopes=ADMIN_SCOPES, actor=MALLORY)
    client_token_create(subject=NAME, environment="", actor=MALLORY)
    user = USERS.objects.create_user(NAME[:150])
    group = Group.objects.create(name=NAME[:150])
    user.groups.add(group)
    RoleGrant.objects.create(group=group, role="viewer", environment="default")
    channel_create(wanted=NewChannel("ops", ChannelKind.MAIL, "ops@example.org"), actor=SYSTEM)
    notifications_expand()
    rollout = rollout_begun(cluster(NAME, connect_timeout="7s"), actor=MALLORY, message=NAME)
    proposed = change_set_create(
        environment_key="default",
        title=NAME,
        message=NAME,
        edits=[Put(parsed(cluster(NAME)))],
        wishes=[
            Wish(
                EditSubject.RULE, "", None, RuleDraft(Effect.DENY, "pay", client_groups=("edge",), message=NAME[:200])
            ),
            Wish(EditSubject.GROUP, "edge", None, GroupDraft("edge", (Selector(node_cluster="edge"),), Trust.DECLARED)),
        ],
        actor=MALLORY,
    )
    change_set_comment(public_id=proposed, reason=NAME, place=Place("cluster", NAME, 1), actor=MALLORY)
    change_set_submit(public_id=proposed, reason=NAME, actor=MALLORY)
    hostile_end = Expected(RouteAnswer.ROUTED, cluster=NAME, virtual_host=NAME, route_name=NAME, location="")
    hostile_case = RouteCaseDraft(NAME[:200], Request(NAME, f"/{NAME}"), hostile_end, note=NAME[:200])
    route_case = route_case_create(environment_key="default", draft=hostile_case, actor=MALLORY)
    row = Incident.objects.get()
    comment = Comment.objects.create(environment=row.environment, incident=row, author=NAME[:150], text=NAME)
    link = ticket_link_add(
        form="#{number}", url="https://e.example/'{number}", environment_key=None, actor=MALLORY, request_id=NAME
    )
    view = SavedView.objects.create(
        environment=row.environment,
        listed="resources",
        owner="user:9",
        author=NAME[:150],
        name=NAME[:60],
        query=f"name={quote(NAME)}"[:200],
        shared=True,
    )
    mute = {"muted_until": timezone.now() + timedelta(hours=1), "muted_by": NAME[:150], "muted_reason": NAME[:400]}
    Incident.objects.update(assignee=NAME[:150], assigned_team=True, assignee_gone=True, mended_by=NAME[:150], **mute)
    return {
        "environment_key": "default",
        "comment_id": str(comment.public_id),
        "link_id": str(link),
        "change_set_id": proposed,
        "rollout_id": rollout,
        "type": "cluster",
        "word": "cluster",
        "name": quote(NAME, safe=""),
        "incident_id": incident,
        "client_id": ClientRow.objects.get().pk,
        "change_id": str(Change.objects.latest("id").public_id),
        "channel_id": str(Channel.objects.get().public_id),
        "token_id": str(ApiToken.objects.get().pk),
        "user_id": str(user.pk),
        "group_id": str(group.pk),
        "token": "x",
        "epoch": "1",
        "listed": "resources",
        "view_id": str(view.public_id),
        "revision": "1",
        "number": "1",
        "code": "XDS2101",
        "family": "grpc",
        # None is there: the answer to a wrong one must be as harmless.
        "group_key": quote(HOSTILE, safe=""),
        "rule_id": "1",
        "case_id": "1",
        "route_case_id": str(route_case.id),
    }


def _reported(client: str) -> None:
    """What a hostile collector says of it."""
    said = [
        Said("cluster", name, SaidState.NACKED, held=True, version=EVERYTHING, version_info=EVERYTHING, error=text)
        for name, text in ((NAME, EVERYTHING * 100), (f"of nobody {NAME}", EVERYTHING))
    ]
    word = Word(SaidSource.CSDS, EVERYTHING, frozenset({"cluster"}), tuple(said))
    word_take(client=client_get(public_id=client), word=word, by=f"token:{NAME}")
    assert SaidDifference.objects.exists()


def paths(parts: dict[str, str]) -> Iterator[str]:
    """Every path of pages and API, filled in."""
    yield from _paths(get_resolver().url_patterns, "/", parts)


def _paths(patterns: list[URLPattern | URLResolver], prefix: str, parts: dict[str, str]) -> Iterator[str]:
    for each in patterns:
        if not isinstance(each.pattern, RoutePattern):
            continue
        unknown = set(each.pattern.converters) - parts.keys()
        assert not unknown, f"{prefix}{each.pattern}: PARTS of this test must say what {unknown} stands for"
        path = prefix + str(each.pattern)
        for name in each.pattern.converters:
            path = _filled(path, name, parts[name])
        if isinstance(each, URLResolver):
            yield from _paths(each.url_patterns, path, parts)
        else:
            yield path


def _filled(path: str, name: str, value: str) -> str:
    before, _, rest = path.partition("<")
    while rest:
        inside, _, after = rest.partition(">")
        if inside.rpartition(":")[2] == name:
            return f"{before}{value}{after}"
        before, _, rest = f"{before}<{inside}>{after}".partition("<")
    raise AssertionError((path, name))


def problems(answer: HttpResponseBase) -> Iterator[str]:
    """What is wrong with an answer: a page must run nothing, and data stays data, whoever looks at it."""
    body = b"".join(answer) if answer.streaming else answer.content  # type: ignore[attr-defined]
    text = body.decode()
    media = answer.headers.get("Content-Type", "").partition(";")[0]
    if answer.status_code >= 500:
        yield f"status {answer.status_code}"
    if len(body) > _MOST_BYTES:
        yield f"{len(body)} bytes"
    # What is edited, and what a form sends back, is exact: a field turns nothing outside of itself.
    outside = _FIELDS.sub("", text) if media == "text/html" else text
    yield from _around(outside, _ACTING)
    if answer.headers["X-Content-Type-Options"] != "nosniff":
        yield "a browser may guess what it is"
    for value in answer.headers.values():
        if not value.isprintable():
            yield f"header {value!r}"
    if media == "text/html":
        yield from _around(text, ("<img src=x", "<script>alert"))
        yield from _around(outside, ("\u202e", "\u2028"))
        if "unsafe" in answer.headers["Content-Security-Policy"]:
            yield "the policy lets a page run what stands in it"
    elif "json" in media and answer.status_code == 200:
        # What a problem repeats of a request is the caller's own, and escaped; what is kept must not hold it at all.
        for leaf in _leaves(json.loads(text)):
            yield from _around(leaf, _ACTING)


def _around(text: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Each place where one of these stands, with what is beside it."""
    for part in parts:
        for found in re.finditer(re.escape(part), text):
            yield repr(text[max(0, found.start() - 120) : found.end() + 20])


def _leaves(tree: object) -> list[str]:
    if isinstance(tree, dict):
        return [leaf for each in (*tree, *tree.values()) for leaf in _leaves(each)]
    return [leaf for each in tree for leaf in _leaves(each)] if isinstance(tree, list) else [str(tree)]


def _texts(tree: object) -> str:
    return "".join(_leaves(tree))


def test_everything_that_shows_something__hostile_client_and_operator__nothing_acts(
    admin: Client, parts: dict[str, str]
) -> None:
    asked = quote(EVERYTHING)
    words = ("q", "e", "t", "n", "c", "at", "state", "family", "client", "name", "node_id", "environment", "page")
    question = "&".join(f"{word}={asked}" for word in words)
    token = api_token_create(name="reader", scopes=ADMIN_SCOPES, actor=SYSTEM)[1]
    reader = Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)
    shown = 0
    found: list[tuple[str, str]] = []

    for path in paths(parts):
        if path == "/logout":
            continue
        browser = reader if path.startswith("/api/") else admin
        answer = browser.get(path)
        shown += answer.status_code == 200
        for each in (answer, browser.get(f"{path}?{question}")):
            # Without a broker there is no tail, which it says.
            expected = {"status 503"} if path.endswith("/tail") else set()
            found.extend((path, problem) for problem in problems(each) if path not in _LONG and problem not in expected)

    assert found == []
    # The sweep itself must not go blind.
    assert shown >= 30


def test_everything_that_is_kept__of_a_hostile_client__is_bounded(parts: dict[str, str]) -> None:
    nack, client, peer = Nack.objects.get(), ClientRow.objects.get(), Stream.objects.get().peer

    assert len(nack.text.encode()) <= _KEPT_BYTES
    said = SaidDifference.objects.first()
    assert said is not None
    assert len(said.error.encode()) <= _KEPT_BYTES
    for row in (nack, client, said):
        for field in row._meta.concrete_fields:
            value = getattr(row, field.attname)
            if isinstance(value, str) and field.attname not in {"text", "error", "name"}:
                assert len(value) <= (getattr(field, "max_length", None) or _KEPT_BYTES), field.attname
                assert value.isprintable(), field.attname
    assert peer.isprintable()
    assert Resource.objects.get().name == NAME


def test_messages_and_logs__of_a_hostile_client__are_harmless_lines(
    caplog: pytest.LogCaptureFixture, admin: Client, request: pytest.FixtureRequest
) -> None:
    formatters = logging_config(as_json=True)["formatters"]
    assert isinstance(formatters, dict)
    options = {key: value for key, value in formatters["event"].items() if key != "()"}
    formatter = structlog.stdlib.ProcessorFormatter(**options)
    with caplog.at_level(logging.INFO):
        request.getfixturevalue("parts")

    lines = [formatter.format(record) for record in caplog.records]
    bodies = [webhook_body(row, "d") for row in Notification.objects.all()]
    slack = [str(slack_body(row)["text"]) for row in Notification.objects.all()]

    assert any("incident.opened" in line for line in lines)
    for line in lines:
        assert "\n" not in line
        assert len(line) < _MOST_BYTES
        assert all(character.isprintable() for character in _texts(json.loads(line)) if character != "\n"), line
    assert {body["kind"] for body in bodies} >= {"incident.opened", "quarantine.opened"}
    for text in (*map(_texts, map(dict, bodies)), *slack):
        assert not {"\x00", "\x1b", "\x9b", "\u202e"} & set(text), text
        assert len(text) < _KEPT_BYTES
    assert not any("<" in text for text in slack)
