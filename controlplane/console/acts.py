"""What a command of the search box or the palette leads to: pages, with what can be filled in filled in.

An act is a link, and nothing is changed by following it: what changes something stands in a form on the page that it
leads to. Only what the reader may do is offered.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.urls import reverse
from django.utils.http import urlencode

from controlplane.accounts.principal import Role
from controlplane.catalog.rights import POLICY_ROLES
from controlplane.console.commands import LIVE, Intent, Verb
from controlplane.console.navigation import Surroundings
from controlplane.console.resources import resource_url
from controlplane.search.acting import Refused, changes_called, incidents_to_quarantine, incidents_to_release
from controlplane.search.selectors import search
from controlplane.search.sources import Sight
from controlplane.search.values import Hit, Kind
from controlplane.snapshots.selectors import snapshot_list
from controlplane.undo.rights import may_undo
from xdscore.names import name_problem
from xdscore.resource_types import by_word

_OFFERED: Final = 5
_MAX_EPOCH: Final = 2**63 - 1
_UNTYPED: Final = "listener"  # of a name that nothing has


@dataclass(frozen=True, slots=True)
class Act:
    """A link that carries a command out, or leads to the form that does. `about`: what it is about, in words that
    others may have written; `note`: where, and what happens there.
    """

    icon: str
    label: str
    about: str
    note: str
    url: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command leads to. `sentence`: why there is no act; else empty."""

    acts: tuple[Act, ...] = ()
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and from where: what they may see, and the navigation of the page. `environment`: the key of the
    environment that they are in, or named; empty where they see none.
    """

    sight: Sight
    around: Surroundings
    environment: str

    def may(self, role: Role, key: str) -> bool:
        """Whether the asker may act in this role in the environment with this key, as a whole."""
        return self.sight.principal.may(role, key)

    def places_with(self, role: Role) -> tuple[str, ...]:
        """The keys of the environments that they see and in which they have this role; only the one they named, where
        they named one.
        """
        return tuple(key for key in self.sight.keys if self.may(role, key))


def answer_of(intent: Intent, *, sight: Sight, around: Surroundings) -> Answer:
    """What a command leads to, for somebody who sees this much. Up to five acts, the likeliest first."""
    here = around.environment.key if around.environment is not None else ""
    if intent.environment:
        if intent.environment not in sight.keys:
            return Answer(sentence=f"You see no environment '{intent.environment}'.")
        sight, here = Sight(sight.principal, (intent.environment,)), intent.environment
    if not here:
        return Answer(sentence="You see no environment yet.")
    found = tuple(_ACTS[intent.verb](intent, Asker(sight, around, here)))
    return Answer(found[:_OFFERED]) if found else Answer(sentence=_NOTHING[intent.verb].format(what=intent.what))


def pages_called(text: str, around: Surroundings) -> Iterator[Act]:
    """The pages of the navigation with a name that begins as the text does, or else contains it."""
    wanted = " ".join(text.lower().split())
    links = [link for group in around.groups for link in group.links]
    named = [link for link in links if link.label.lower() == wanted.removesuffix(" page")]
    begins = [link for link in links if link.label.lower().startswith(wanted)]
    for link in dict.fromkeys(named or begins or [link for link in links if wanted in link.label.lower()]):
        where = (
            around.environment.key
            if around.environment is not None and f"/e/{around.environment.key}/" in link.url
            else ""
        )
        yield Act(link.icon, "Go to", link.label, where, link.url)


def _go(intent: Intent, asker: Asker) -> Iterator[Act]:
    for act in pages_called(intent.what, asker.around):
        there = asker.around.environment
        yield act if there is None or not act.note else _moved(act, there.key, asker.environment)


def _moved(act: Act, before: str, after: str) -> Act:
    """The act that leads to this page in the environment `after`, made of the one that leads to it in `before`."""
    return Act(act.icon, act.label, act.about, after, act.url.replace(f"/e/{before}/", f"/e/{after}/", 1))


def _named(intent: Intent, asker: Asker) -> tuple[Hit, ...]:
    """The resources that a command may mean, those of the present environment first."""
    found = search(sight=asker.sight, text=intent.what, kinds=(Kind.RESOURCE,), limit=2 * _OFFERED, contents=False)
    hits = [hit for each in found.found for hit in each.hits if not intent.type or hit.type == intent.type]
    exact = [hit for hit in hits if hit.name == intent.what]
    return tuple(sorted(exact or hits, key=lambda hit: hit.environment != asker.environment))


def _explain(intent: Intent, asker: Asker) -> Iterator[Act]:
    whom = f" for {intent.client}" if intent.client else ""
    hits = _named(intent, asker)
    for hit in hits:
        yield _explained(hit.environment, hit.type, hit.name, intent.client, whom)
    # Explain answers for names that do not exist, too.
    if not name_problem(intent.what) and intent.what not in {hit.name for hit in hits}:
        word = intent.type or _UNTYPED
        yield _explained(asker.environment, word, intent.what, intent.client, whom)


def _explained(key: str, word: str, name: str, client: str, whom: str) -> Act:
    given = {"e": key, "t": word, "n": name, "c": client}
    url = f"{reverse('explain')}?{urlencode({field: value for field, value in given.items() if value})}"
    return Act("help", "Explain", f"{word} {name}{whom}", key, url)


def _edit(intent: Intent, asker: Asker) -> Iterator[Act]:
    for hit in _named(intent, asker):
        if not asker.sight.principal.allowed(Role.EDITOR, hit.environment).nothing:
            url = resource_url(hit.environment, hit.type, hit.name, "resource-edit")
            yield Act("edit", "Edit", f"{hit.type} {hit.name}", hit.environment, url)


def _new(intent: Intent, asker: Asker) -> Iterator[Act]:
    key, principal = asker.environment, asker.sight.principal
    what = intent.what.removeprefix("access ").replace(" ", "_")
    kinds = [word for word in by_word if word == what] or [word for word in by_word if word.startswith(what)]
    if not principal.allowed(Role.EDITOR, key).nothing:
        for word in kinds:
            url = f"{reverse('resource-new', args=[key])}?{urlencode({'type': word})}"
            yield Act("plus", "New", by_word[word].title.lower(), f"{key}: opens the editor", url)
    if "rule".startswith(what) and asker.may(Role.ACCESS_EDITOR, key):
        yield Act("plus", "New", "access rule", f"{key}: opens the form", reverse("access-rule", args=[key]))
    if "channel".startswith(what) and principal.may(Role.ADMIN, None):
        yield Act("plus", "New", "channel", "opens the form", reverse("channel-new"))


def _quarantine(intent: Intent, asker: Asker) -> Iterator[Act]:
    keys = asker.places_with(Role.OPERATOR)
    found = incidents_to_quarantine(environment_keys=keys, name=intent.what, word=intent.type, limit=_OFFERED)
    return (_refused(each, "Quarantine", "ban", "reason-q") for each in found)


def _release(intent: Intent, asker: Asker) -> Iterator[Act]:
    keys = asker.places_with(Role.OPERATOR)
    found = incidents_to_release(environment_keys=keys, name=intent.what, word=intent.type, limit=_OFFERED)
    return (_refused(each, "Release", "refresh", "reason-r") for each in found)


def _refused(each: Refused, label: str, icon: str, field: str) -> Act:
    note = f"{each.environment}: opens the form, which asks for a reason"
    url = f"{reverse('incident', args=[each.id])}#{field}"
    return Act(icon, label, f"{each.type} {each.name} r{each.revision}", note, url)


def _undo(intent: Intent, asker: Asker) -> Iterator[Act]:
    changes = changes_called(sight=asker.sight, called=intent.what, limit=_OFFERED)
    for change in sorted(changes, key=lambda each: each.environment.key != asker.environment):
        if may_undo(asker.sight.principal, change):
            key = change.environment.key
            about = f"change {change.generation} by {change.author}" + (f": {change.message}" if change.message else "")
            url = reverse("change-undo", args=[change.public_id])
            yield Act("arrow-back-up", "Take back", about, f"{key}: shows first what that does", url)


def _roll_back(intent: Intent, asker: Asker) -> Iterator[Act]:
    if asker.may(Role.OPERATOR, asker.environment) and _are_there(asker, intent.what):
        url = f"{reverse('rollback', args=[asker.environment])}?{urlencode({'to': intent.what})}"
        note = f"{asker.environment}: shows first what that does"
        yield Act("history", "Roll back to", f"snapshot {intent.what}", note, url)


def _compare(intent: Intent, asker: Asker) -> Iterator[Act]:
    if _are_there(asker, intent.what, intent.to):
        url = f"{reverse('compare', args=[asker.environment])}?{urlencode({'from': intent.what, 'to': intent.to})}"
        yield Act("arrows-diff", "Compare", f"{intent.what} with {intent.to}", asker.environment, url)


def _are_there(asker: Asker, *states: str) -> bool:
    """Whether each of these is `live`, or the number of a snapshot that is stored."""
    epochs = {min(int(each), _MAX_EPOCH) for each in states if each != LIVE}
    return snapshot_list(environment_key=asker.environment).filter(epoch__in=epochs).count() == len(epochs)


def _allow(intent: Intent, asker: Asker) -> Iterator[Act]:
    return _ruled(intent, asker, "allow", "Allow")


def _deny(intent: Intent, asker: Asker) -> Iterator[Act]:
    return _ruled(intent, asker, "deny", "Deny")


def _ruled(intent: Intent, asker: Asker, effect: str, label: str) -> Iterator[Act]:
    if asker.may(Role.ACCESS_EDITOR, asker.environment):
        given = {"effect": effect, "pattern": intent.what, **({"types": intent.type} if intent.type else {})}
        url = f"{reverse('access-rule', args=[asker.environment])}?{urlencode(given)}"
        about = f"{intent.type} {intent.what}".strip()
        yield Act("shield-lock", label, about, f"{asker.environment}: opens the form of a rule", url)


def _freeze(intent: Intent, asker: Asker) -> Iterator[Act]:
    if asker.may(POLICY_ROLES["freezes"], asker.environment):
        given = {field: value for field, value in (("for", intent.to), ("reason", intent.what)) if value}
        url = reverse("freezes", args=[asker.environment]) + (f"?{urlencode(given)}" if given else "")
        about = asker.environment + (f" for {intent.to}" if intent.to else "") + (f": {intent.what}" if given else "")
        yield Act("lock", "Freeze", about.removesuffix(": "), "opens the form" + (", filled in" if given else ""), url)


def _where(intent: Intent, asker: Asker) -> Iterator[Act]:
    given = {"authority": intent.what, **({"client": intent.client} if intent.client else {})}
    url = f"{reverse('request', args=[asker.environment])}?{urlencode(given)}"
    yield Act("route", "Where it goes", intent.what, asker.environment, url)


_ACTS: Final[Mapping[Verb, Callable[[Intent, Asker], Iterator[Act]]]] = {
    Verb.GO: _go,
    Verb.EXPLAIN: _explain,
    Verb.EDIT: _edit,
    Verb.NEW: _new,
    Verb.QUARANTINE: _quarantine,
    Verb.RELEASE: _release,
    Verb.UNDO: _undo,
    Verb.ROLL_BACK: _roll_back,
    Verb.COMPARE: _compare,
    Verb.ALLOW: _allow,
    Verb.DENY: _deny,
    Verb.FREEZE: _freeze,
    Verb.WHERE: _where,
}
_NOTHING: Final[Mapping[Verb, str]] = {
    Verb.GO: "No page that you may open is called '{what}'.",
    Verb.EXPLAIN: "'{what}' is no name that a resource can have.",
    Verb.EDIT: "You may edit nothing that is called '{what}'.",
    Verb.NEW: "You can begin no '{what}' here.",
    Verb.QUARANTINE: "Clients refuse nothing that is called '{what}' and that you may quarantine. "
    "What they take is quarantined on its own page.",
    Verb.RELEASE: "Nothing that is called '{what}' and that you may release is quarantined.",
    Verb.UNDO: "There is no change '{what}' that you may take back.",
    Verb.ROLL_BACK: "There is no snapshot {what} here to which you may roll back.",
    Verb.COMPARE: "These are no two snapshots that are stored here: not yet, or not any more.",
    Verb.ALLOW: "You may not write rules here: that needs the role access-editor.",
    Verb.DENY: "You may not write rules here: that needs the role access-editor.",
    Verb.FREEZE: "You may not freeze this environment: that needs the role admin.",
    Verb.WHERE: "No page here says where a request goes; xdsctl explain request does.",
}
