"""Answers how many connected clients ask for each of many resources, and what one client asks for. Values only.

How many ask is the number that a resource's page shows (`clients.coverage`): that counts a page of resources with
everything that clients made of them, this a whole environment with nothing else, in three queries.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from django.db.models import Count, QuerySet

from controlplane.catalog.links import Key
from controlplane.catalog.models import Resource
from controlplane.clients.barriers import Barrier, barrier_of
from controlplane.clients.facts import unpack_names
from controlplane.clients.models import NameSet, Subscription
from controlplane.clients.selectors import ClientSummary, client_subscriptions
from controlplane.explain.values import names_covered
from controlplane.graph.model import Sight
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Decision, Serve, Undecided, decide
from xdscore.environment_choice import ClientFacts
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.xdstp import glob_of


def asking_counted(*, environment_key: str, keys: Collection[Key], there: Collection[Key]) -> Mapping[Key, int]:
    """How many connected clients ask for each of these names; those for which nobody asks are left out. `there`: the
    names that exist. Only these does a wildcard count for, and only where the client may read the name.
    """
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for word, name in keys:
        wanted[word].add(name)
    rows = Subscription.objects.filter(
        stream__closed_at=None, stream__client__environment__key=environment_key, type__in=wanted
    )
    counts: Counter[Key] = Counter()
    everything: Counter[str] = Counter()
    # By state, too, as the page of a resource counts.
    kinds = rows.values_list("type", "wildcard", "name_set", "state").annotate(
        clients=Count("stream__client", distinct=True)
    )
    grouped = list(kinds)
    sets = NameSet.objects.filter(pk__in={name_set for _, wildcard, name_set, _, _ in grouped if not wildcard})
    names = {pk: unpack_names(bytes(packed)) for pk, packed in sets.values_list("pk", "names")}
    for word, wildcard, name_set, _, clients in grouped:
        if wildcard:
            everything[word] += clients
        else:
            for name in wanted[word].intersection(names.get(name_set, ())):
                counts[word, name] += clients
    by_wildcard = [key for key in there if key[0] in everything]
    for key in by_wildcard:
        counts[key] += everything[key[0]]
    if by_wildcard:
        counts.subtract(_kept_from(rows.filter(wildcard=True), environment_key, by_wildcard))
    return +counts


def _kept_from(rows: QuerySet[Subscription], environment_key: str, keys: Collection[Key]) -> Counter[Key]:
    """For each of these names, how many of the subscriptions `rows`, which have wildcards, are of clients that may not
    read it.
    """
    barrier: Barrier = barrier_of(environment_key=environment_key, keys=keys)
    found: Counter[Key] = Counter()
    if barrier.open:
        return found
    who = ("stream__client", "stream__client__identity", "stream__client__node_id", "stream__client__node_cluster")
    audiences: dict[str, Audience] = {}
    asked: set[tuple[str, str, str, str]] = set()
    for client, identity, node_id, cluster, *kind in rows.values_list(*who, "type", "name_set", "state"):
        if client not in audiences:
            audiences[client] = barrier.audience(ClientFacts(identity, node_id, cluster))
        asked.add((client, kind[0], kind[1], kind[2]))
    together = Counter((audiences[client], word) for client, word, _, _ in asked)
    for (audience, word), clients in together.items():
        for key in keys:
            if key[0] == word and barrier.keeps(audience, key):
                found[key] += clients
    return found


def sight_of(client: ClientSummary) -> Mapping[Key, Sight]:
    """What a client asks for on its open streams, with what it gets for each name. Of a wildcard or a collection, only
    what there is and it is served: of the rest nothing is said to it (xRFC TP3).
    """
    asked: dict[Key, bool] = {}
    for each in client_subscriptions(public_id=client.id):
        names = {canonical(name) for name in each.names}
        globs = {name for name in names if glob_of(name) is not None}
        asked.update({(each.type, name): True for name in names - globs})
        if each.wildcard or globs:
            rows = Resource.objects.filter(environment__key=client.environment, deleted=False, type=each.type)
            there = rows.values_list("name", flat=True)
            for name in names_covered(globs, wildcard=each.wildcard, wanted=there):
                asked.setdefault((each.type, name), False)
    if not asked:
        return {}
    snapshot = snapshot_of_names(environment_key=client.environment, keys=asked)
    audience = Audience(client.environment) if snapshot is None else snapshot.audience(client.facts)
    found: dict[Key, Sight] = {}
    for key, by_its_name in asked.items():
        sight = _sight(decide(audience, by_word[key[0]], key[1], snapshot))
        if by_its_name or sight is not Sight.ERROR:
            found[key] = sight
    return found


def _sight(decision: Decision) -> Sight:
    match decision:
        case Serve():
            return Sight.SERVED
        case Undecided():
            return Sight.UNDECIDED
        case _:
            return Sight.ERROR
