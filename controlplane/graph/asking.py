"""Answers what one client asks for, with what it is to get for each name. Values only."""

from collections.abc import Mapping

from controlplane.catalog.links import Key
from controlplane.catalog.models import Resource
from controlplane.clients.asks import names_covered
from controlplane.clients.selectors import ClientSummary, client_subscriptions
from controlplane.graph.model import Sight
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.access import Audience
from xdscore.decision import Decision, Serve, Undecided, decide
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.xdstp import glob_of


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
