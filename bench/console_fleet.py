"""What a console has to show: a fleet as ADS processes report it, NACKs that became incidents, and what people did.

Everything goes through the product's own doors: facts as an ADS process writes them, the digest, the services of each
room. For scenarios, and for the test that counts the queries of every page. Loaded only once Django is set up.
"""

import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, TypeVar

from django.db.models import Max

from bench.filled import edits_of, put
from bench.resources import cluster, cluster_name, fleet, listener, route_name
from controlplane.access.cases import case_create
from controlplane.access.choices import EditSubject
from controlplane.access.services import group_create, rule_create
from controlplane.access.values import Case, GroupDraft, RuleDraft, Wish
from controlplane.accounts.groups import people_group_create, people_group_role_give, person_join
from controlplane.accounts.people import person_create, role_give
from controlplane.accounts.principal import SYSTEM, Role, Scope
from controlplane.accounts.services import api_token_create, client_token_create
from controlplane.builder.services import build
from controlplane.catalog.guarding import OF_ITSELF
from controlplane.catalog.rollout_settings import ROLLOUT_OFF, settings_from_json
from controlplane.catalog.selectors import environment_get, resource_list
from controlplane.catalog.services import environment_update
from controlplane.changesets.services import Place, change_set_comment, change_set_create, change_set_submit
from controlplane.clients.clock import database_now
from controlplane.clients.facts import (
    HASH_CHARS,
    MAX_BATCH_KEYS,
    NO_NAMES,
    ClientFact,
    FactBatch,
    Interned,
    NackFact,
    ReplicaFact,
    StreamFact,
    SubscriptionFact,
    SubscriptionSays,
    SubscriptionState,
    intern_contents,
    intern_names,
)
from controlplane.clients.foreign_text import nack_text
from controlplane.clients.held_sets import HeldRow, pack_held
from controlplane.clients.identity import client_id
from controlplane.clients.services import facts_write
from controlplane.incidents.services import digest
from controlplane.notify.catalogue import Severity
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel, Delivery, DeliveryState, Notification
from controlplane.notify.services import channel_create
from controlplane.rollouts.selectors import rollout_open
from controlplane.rollouts.services import rollout_abort, rollout_tick
from controlplane.routecases.services import case_create as route_case_create
from controlplane.routecases.values import Expected, RouteCaseDraft
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.client_kinds import ClientFamily
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.holdings import Holding, HoldingState
from xdscore.redaction import NO_SECRETS
from xdscore.resource_types import CLUSTER, ENDPOINT, ROUTE
from xdscore.routing.values import Answer, Request

Item = TypeVar("Item")

ENVIRONMENT: Final = "default"
LISTENER_NAME: Final = "edge"
_REPLICA: Final = "0" * 32
_PEOPLE: Final = 10  # at most: a password is hashed slowly, on purpose
_PER_SET: Final = 10  # so many clients run the same workload, and ask for the same names
_NAMES: Final = 200  # of endpoints, for each client; and half as many of routes
_TOLD_OTHERS: Final = 20  # of the messages, every channel but the first
_DELIVERED: Final = (*[DeliveryState.DELIVERED] * 9, DeliveryState.FAILED)
_REFUSERS: Final = 3  # clients of a usual incident
_REFUSERS_OF_FIRST: Final = 500  # one incident is that of a whole fleet


def resources_write(*, resources: int, changes: int) -> None:
    """Write `resources` resources in one change, a listener for one of the routes among them, then make `changes`
    changes of one resource each, and build each.
    """
    put([*fleet(resources - 1), listener(LISTENER_NAME, route_name(0, 0))])
    _build()
    for number in range(changes):
        put([cluster(number, timeout_s=2 + number % 50)])
        _build()


def clients_report(*, clients: int, resources: int) -> None:
    """Store, as ADS would, `clients` clients with an open stream each, and what each has. A few of them sent a NACK, or
    have not answered.
    """
    clusters = max(resources // 6, 1)
    rows = resource_list(environment_key=ENVIRONMENT).values_list("type", "name", "head__version")
    versions = {(word, name): version for word, name, version in rows}
    everything = _held(CLUSTER.word, [name for word, name in versions if word == CLUSTER.word], versions)
    for numbers in _batches(range(clients), MAX_BATCH_KEYS // 8):
        loads = {number: _workload(number, clusters, versions, everything) for number in numbers}
        facts_write(
            batch=FactBatch(
                _replica(),
                clients=tuple(_client(number) for number in numbers),
                streams=tuple(
                    StreamFact(f"{number:032x}", _id(number), "sotw", "ipv4:10.0.0.1:4000", 60.0) for number in numbers
                ),
                name_sets=(NO_NAMES, *{each.id: each for load in loads.values() for each in load.names}.values()),
                held_sets=(everything, *{each.id: each for load in loads.values() for each in load.held}.values()),
                subscriptions=tuple(each for number in numbers for each in _subscriptions(number, loads[number])),
            )
        )


def incidents_make(*, incidents: int, clients: int) -> None:
    """Make `incidents` incidents, each from a NACK with another text. Many of the `clients` refuse in the first one."""
    rows = resource_list(environment_key=ENVIRONMENT, kind=CLUSTER).values_list("name", "head__version")
    contents = tuple((name, version) for name, version in rows)
    nacks = [
        (number, client % clients)
        for number in range(incidents)
        for client in range(number, number + (_REFUSERS_OF_FIRST if number == 0 else _REFUSERS))
    ]
    for some in _batches(nacks, MAX_BATCH_KEYS):
        lists = {number: intern_contents([contents[number % len(contents)]]) for number, _ in some}
        facts_write(
            batch=FactBatch(
                _replica(),
                content_lists=tuple({each.id: each for each in lists.values()}.values()),
                nacks=tuple(
                    _nack(number, client, contents[number % len(contents)][0], lists[number].id)
                    for number, client in dict.fromkeys(some)
                ),
            )
        )
    heartbeat()
    while digest():
        heartbeat()


def people_act(*, count: int, first: int = 0) -> None:
    """Make `count` each of tokens, users, groups, rules and stored access questions, numbered from `first`. All this
    adds audit entries, too.
    """
    for number in range(first, first + count):
        api_token_create(name=f"pipeline-{number}", scopes=(Scope(Role.EDITOR, ENVIRONMENT),), actor=SYSTEM)
        client_token_create(subject=f"workload-{number}", environment=ENVIRONMENT, actor=SYSTEM)
        group = GroupDraft(f"group-{number}", (Selector(node_id=f"node-{number}*"),), Trust.DECLARED)
        group_create(environment_key=ENVIRONMENT, draft=group, actor=SYSTEM)
        rule = RuleDraft(Effect.DENY, f"private-{number}-*", client_groups=(group.key,))
        rule_create(environment_key=ENVIRONMENT, draft=rule, actor=SYSTEM)
        case = Case(ClientFacts(node_id=f"node-{number}"), "cluster", f"private-{number}-x", Effect.DENY)
        case_create(environment_key=ENVIRONMENT, case=case, blocking=False, actor=SYSTEM)
    for number in range(first, first + min(count, _PEOPLE)):
        person, _ = person_create(username=f"person-{number}", actor=SYSTEM, reason="joined")
        role_give(
            user_id=person.id, role=Role.VIEWER, environment="", actor=SYSTEM, by_superuser=True, reason="looks around"
        )
        of_people = people_group_create(name=f"shift-{number}", actor=SYSTEM, reason="on call")
        people_group_role_give(
            group_id=of_people.id, role=Role.OPERATOR, environment="", actor=SYSTEM, reason="on call"
        )
        person_join(group_id=of_people.id, username=person.username, actor=SYSTEM, reason="on call")
    _build()


def channels_tell(*, channels: int, messages: int, first: int = 0) -> None:
    """Make `channels` channels, numbered from `first`, and store as much as a worker would of `messages` messages: what
    became of each at the first channel, and of a few of them at the others.
    """
    for number in range(first, first + channels):
        wanted = NewChannel(f"channel-{number}", ChannelKind.SLACK, f"https://hooks.example/{number}")
        channel_create(wanted=wanted, actor=SYSTEM)
    last = Notification.objects.aggregate(last=Max("event"))["last"] or 0
    now = database_now()
    told = Notification.objects.bulk_create(
        Notification(
            event=last + number + 1,
            at=now,
            kind="hold.set" if number % 2 else "hold.released",
            environment=ENVIRONMENT,
            subject=f"environment/{ENVIRONMENT}",
            severity=Severity.NORMAL.value,
            title=f"message {number}",
            text="what and why",
        )
        for number in range(messages)
    )
    for place, channel in enumerate(Channel.objects.order_by("pk")):
        Delivery.objects.bulk_create(
            Delivery(
                notification=notification,
                channel=channel,
                state=_DELIVERED[number % len(_DELIVERED)].value,
                attempts=1,
                next_at=now,
                tried_at=now,
                answer="200 ok",
            )
            for number, notification in enumerate(told if place == 0 else told[:_TOLD_OTHERS])
        )


def route_cases_keep(*, count: int, first: int = 0) -> None:
    """Keep `count` requests, numbered from `first`, with the end that is expected of each."""
    for number in range(first, first + count):
        request = Request(f"{number}.example.com", "/v1/pay")
        draft = RouteCaseDraft(f"case-{number}", request, Expected(Answer.REFUSED), listener=LISTENER_NAME)
        route_case_create(environment_key=ENVIRONMENT, draft=draft, actor=SYSTEM)


_PROPOSED: Final = "proposed"


def change_sets_make(*, count: int, resources: int) -> None:
    """Make `count` change sets that others commented, the last one of `resources` clusters, and submit them. Each makes
    a rule for a group of its own, too.
    """
    for number in range(count):
        names = range(resources if number == count - 1 else 1)
        edits = edits_of([cluster(each, timeout_s=90 + number % 50) for each in names])
        made = change_set_create(
            environment_key=ENVIRONMENT,
            title=f"more patience {number}",
            edits=edits,
            wishes=[
                Wish(
                    EditSubject.GROUP,
                    _PROPOSED,
                    None,
                    GroupDraft(_PROPOSED, (Selector(node_cluster="p"),), Trust.DECLARED),
                ),
                Wish(EditSubject.RULE, "", None, RuleDraft(Effect.ALLOW, "patient*", client_groups=(_PROPOSED,))),
            ],
            actor=SYSTEM,
        )
        place = Place(CLUSTER.word, cluster_name(0), 1)
        change_set_comment(public_id=made, reason="is that enough?", place=place, actor=SYSTEM)
        change_set_submit(public_id=made, actor=SYSTEM)


def rollout_begin(*, resources: int) -> None:
    """Let a rollout in steps begin, of changes to `resources` clusters, which then waits for a person. One that is open
    is aborted, and what was taken back is written again.
    """
    before = rollout_open(environment_key=ENVIRONMENT)
    if before is not None:
        rollout_abort(public_id=before.id, reason="another one is wanted", actor=SYSTEM)
    state = environment_get(key=ENVIRONMENT)
    # Of all, so that what a page costs does not depend on who is drawn.
    rollout = settings_from_json({"mode": "steps", "steps": [{"percent": 100, "approve": True}]})
    environment_update(key=ENVIRONMENT, policy=replace(state.policy, rollout=rollout), actor=SYSTEM, consent=OF_ITSELF)
    put([cluster(number, timeout_s=60 + state.generation % 100) for number in range(resources)])
    rollout_tick(environment_id=state.id)
    _build()
    heartbeat()
    rollout_tick(environment_id=state.id)


def rollouts_end() -> None:
    """Abort the open rollout, and let changes reach everybody at once again."""
    found = rollout_open(environment_key=ENVIRONMENT)
    if found is not None:
        rollout_abort(public_id=found.id, reason="it has been looked at", actor=SYSTEM)
    state = environment_get(key=ENVIRONMENT)
    policy = replace(state.policy, rollout=ROLLOUT_OFF)
    environment_update(key=ENVIRONMENT, policy=policy, actor=SYSTEM, consent=OF_ITSELF)


def heartbeat() -> None:
    """Store that the ADS process still reports. A minute without this, and its clients would count as gone."""
    facts_write(batch=FactBatch(_replica()))


def client_of(number: int) -> str:
    """The public id of the client with this number."""
    return _id(number)


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _build() -> None:
    build(environment_id=environment_get(key=ENVIRONMENT).id)


def _replica() -> ReplicaFact:
    return ReplicaFact(_REPLICA, "ads-1", 1, 3600.0)


def _id(number: int) -> str:
    return client_id(environment=ENVIRONMENT, identity="", node_id=f"node-{number}")


def _client(number: int) -> ClientFact:
    family = ClientFamily.ENVOY if number % 2 else ClientFamily.GRPC_CORE
    return ClientFact(
        _id(number), ENVIRONMENT, "", f"node-{number}", f"zone-{number % 7}", family, "envoy", "1.40.0", 60.0
    )


@dataclass(frozen=True, slots=True)
class _Workload:
    """What a client asks for by name (`names`: of endpoints and of routes), and what it has: of clusters, endpoints and
    routes (`held`).
    """

    names: tuple[Interned, Interned]
    held: tuple[HeldRow, HeldRow, HeldRow]


def _workload(number: int, clusters: int, versions: Mapping[tuple[str, str], str], everything: HeldRow) -> _Workload:
    """What the client with this number asks for and has. `clusters`: how many clusters there are; `everything`: the set
    of a client that took all of them.
    """
    first = number // _PER_SET * 17
    numbers = [(first + each) % clusters for each in range(_NAMES)]
    of_endpoints, of_routes = map(cluster_name, numbers), (route_name(each, 0) for each in numbers[::2])
    names = {ENDPOINT.word: sorted(set(of_endpoints)), ROUTE.word: sorted(set(of_routes))}
    state, has = _state(number), everything
    if state is not SubscriptionState.ACKED:
        name = cluster_name(number % clusters)
        newest = versions[CLUSTER.word, name]
        has = _row([(name, Holding(HoldingState(state.name), newest, "v1"))], everything.count, everything.id)
    return _Workload(
        (intern_names(names[ENDPOINT.word]), intern_names(names[ROUTE.word])),
        (has, *(_held(word, some, versions) for word, some in names.items())),  # type: ignore[arg-type]  # two
    )


def _held(word: str, names: Collection[str], versions: Mapping[tuple[str, str], str]) -> HeldRow:
    """The set of a client that took the newest revision of each of these resources; those that do not exist are left
    out.
    """
    there = {name: versions[word, name] for name in names if (word, name) in versions}
    return _row([(name, Holding(HoldingState.ACKED, has, has)) for name, has in there.items()], len(there))


def _row(entries: Sequence[tuple[str, Holding]], count: int, keyframe: str | None = None) -> HeldRow:
    packed = pack_held(entries)
    return HeldRow(blake2b(packed, digest_size=HASH_CHARS // 2).hexdigest(), keyframe, count, packed)


def _state(number: int) -> SubscriptionState:
    """How the client with this number answered the newest clusters."""
    if number % 20 == 0:
        return SubscriptionState.NACKED
    return SubscriptionState.SENT if number % 50 == 1 else SubscriptionState.ACKED


def _subscriptions(number: int, load: _Workload) -> Iterator[SubscriptionFact]:
    age, stream = 50.0, f"{number:032x}"
    clusters, *others = (each.id for each in load.held)
    says = SubscriptionSays(CLUSTER.word, NO_NAMES.id, True, _state(number), "v2", "v1", clusters)
    yield SubscriptionFact(stream, says, age, age, age)
    for kind, each, held in zip((ENDPOINT, ROUTE), load.names, others, strict=True):
        says = SubscriptionSays(kind.word, each.id, False, SubscriptionState.ACKED, "v1", "v1", held)
        yield SubscriptionFact(stream, says, age, age, age)


def _nack(number: int, client: int, name: str, contents: str) -> NackFact:
    # Numbers are noise to the fingerprint, so that each incident has letters of its own.
    word = "".join(string.ascii_lowercase[int(digit)] for digit in str(number))
    said = f"Error adding/updating cluster(s) {name}: Invalid filter {word}: unknown"
    text = nack_text(said, secret=False, held=NO_SECRETS, max_bytes=len(said))
    return NackFact(
        _id(client),
        f"{client:032x}",
        CLUSTER.word,
        "v2",
        13,
        text,
        contents,
        contents,
        contents,
        1,
        10.0,
        # No single one may open so many.
        accountable=f"id client-{client}",
    )
