"""Reads what the clients of an open rehearsal said so far. Everything comes from what ADS processes report of every
client (truth.md H4); nothing is written.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from controlplane.catalog.rehearsals import Foreseen, RehearsedView, rehearsed_names
from controlplane.clients.holdings import client_holding, holding_states
from controlplane.common.errors import NotFound
from controlplane.rollouts.answers import Candidate, answer_of, candidates_of
from controlplane.rollouts.cohort import Member
from controlplane.rollouts.facts import Answer
from controlplane.rollouts.fleet import members_read
from controlplane.rollouts.rehearsal import Listener, Rehearsed, Report, Said, report_of
from controlplane.rollouts.values import Key
from controlplane.snapshots.selectors import candidate_diff, rollout_table, snapshot_of_names
from xdscore.holdings import Holding
from xdscore.resource_types import by_word
from xdscore.snapshot import Content, Entry, Served


@dataclass(frozen=True, slots=True)
class Rehearsing:
    """A rehearsal that is open: its public id, its environment's key, the clients that were chosen, and for how many
    seconds it waits for them. `foreseen`: what a write of what is rehearsed would
    be told.
    """

    id: str
    environment: str
    clients: tuple[Member, ...]
    within_s: float
    foreseen: Foreseen


def rehearsal_look(rehearsing: Rehearsing) -> Report:
    """What the clients said until now. A rehearsal that no ADS process can send yet has no answers."""
    environment = rehearsing.environment
    views = {view.key: view for view in rehearsed_names(rehearsal=rehearsing.id)}
    table = rollout_table(environment_key=environment)
    if table is None or table.id != rehearsing.id:
        return _nothing_yet(rehearsing, views.values())
    diff = candidate_diff(environment_key=environment)
    candidates, same = _candidates(environment, views, diff)
    names = [
        Rehearsed(key, view.needs, "" if view.deleted or key in same else _held(view, diff.get(key)))
        for key, view in sorted(views.items())
    ]
    names += [Rehearsed(key, own=False) for key in sorted(diff.keys() - views.keys())]
    fleet = members_read(environment_key=environment, names=[name.key for name in names], groups=())
    holdings = _holdings(environment, candidates)
    listeners = []
    for chosen in rehearsing.clients:
        known = fleet.clients.get(chosen.client)
        connected = known is not None and known.certain
        asks = known.member.asks if known is not None else frozenset()
        said = {key: _said(holdings.get(key, {}).get(chosen.client), candidates.get(key)) for key in asks}
        listeners.append(Listener(chosen.client, chosen.node_id, chosen.kind, said, connected))
    return report_of(names, [_in_its_words(listener) for listener in listeners])


def _nothing_yet(rehearsing: Rehearsing, views: Collection[RehearsedView]) -> Report:
    names = [Rehearsed(view.key) for view in views]
    listeners = [
        Listener(each.client, each.node_id, each.kind, {name.key: Said(Answer.UNSENT) for name in names})
        for each in rehearsing.clients
    ]
    return report_of(names, listeners)


def _candidates(
    environment_key: str, views: Mapping[Key, RehearsedView], diff: Mapping[Key, Entry | None]
) -> tuple[Mapping[Key, Candidate], frozenset[Key]]:
    """What the candidate side has of each name of a rehearsal, and the names that the stable side has as they are
    rehearsed.
    """
    deleted = frozenset(key for key, view in views.items() if view.deleted)
    found = dict(candidates_of(diff, deleted))
    others = views.keys() - diff.keys()
    snapshot = snapshot_of_names(environment_key=environment_key, keys=others) if others else None
    same: set[Key] = set()
    for word, name in others:
        served = snapshot.type_state(by_word[word]).served.get(name) if snapshot is not None else None
        content: Content | None = served.content if served is not None else None
        found[word, name] = Candidate(content.version if content is not None else "", (word, name) in deleted)
        if content is not None and content.blob.hex() == views[word, name].address:
            same.add((word, name))
    return found, frozenset(same)


def _held(view: RehearsedView, entry: Entry | None) -> str:
    """Why nobody can be sent what is rehearsed of a name; empty where somebody can. `entry`: what differs of it."""
    if isinstance(entry, Served) and entry.content.version == view.version:
        return ""
    return view.held or "it is held back."


def _holdings(environment_key: str, keys: Collection[Key]) -> Mapping[Key, Mapping[str, Holding]]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for word, name in keys:
        names[word].append(name)
    return {
        (word, name): held
        for word, some in names.items()
        for name, held in holding_states(environment_key=environment_key, word=word, names=some).items()
    }


def _said(holding: Holding | None, candidate: Candidate | None) -> Said:
    if candidate is None:
        return Said(Answer.UNSENT)
    answer = answer_of(holding, candidate)
    return Said(answer, holding.message if holding is not None and answer is Answer.ERROR else "")


def _in_its_words(listener: Listener) -> Listener:
    """The client with its own words about what it refused."""
    said = dict(listener.said)
    for (word, name), each in listener.said.items():
        if each.answer not in {Answer.REFUSED, Answer.UNSURE}:
            continue
        try:
            held = client_holding(public_id=listener.client, word=word, name=name)
        except NotFound:
            break
        if held is not None:
            said[word, name] = replace(each, words=held.message)
    return replace(listener, said=said)
