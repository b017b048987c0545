"""What clients have of resources, line by line, as the pages of a client and of a resource show it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.urls import reverse
from django.utils.http import urlencode

from controlplane.catalog.selectors import revisions_of
from controlplane.clients.held_rows import HeldResource
from controlplane.clients.selectors import ClientSummary
from controlplane.console.resources import resource_url
from controlplane.console.times import iso_text
from controlplane.explain.keeping import rules_keeping
from controlplane.snapshots.selectors import snapshot_of_names
from xdscore.holdings import HoldingState
from xdscore.names import canonical
from xdscore.resource_types import by_word
from xdscore.snapshot import Snapshot

Key = tuple[str, str]
"""A type's word and a name."""
_DENIED: Final = "XDS2103"
_FOREIGN: Final = (HoldingState.NACKED, HoldingState.ERROR_SENT, HoldingState.SILENT)


@dataclass(frozen=True, slots=True)
class HoldingLine:
    """What a client has of a resource. `published`: the number of the revision that is served now; None where nothing
    is. `explain_url`: Explain's answer for this client and name. `diff_url`: the difference between what the client has
    and what is published; empty where there is none to show. `rule`: the access rule that keeps the resource from the
    client, as far as it was looked up; 0 where none is known.
    """

    row: HeldResource
    published: int | None
    resource_url: str
    explain_url: str
    diff_url: str
    rule: int = 0

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge."""
        told = self.row.state is HoldingState.ERROR_SENT
        return "ERROR_SENT_ABSENT" if told and self.row.code != _DENIED else self.row.state.value

    @property
    def has(self) -> str:
        """What the client runs: a revision such as `r12`, `other content`, or `nothing`."""
        return _called(*_has(self.row)) or "nothing"

    @property
    def sentence(self) -> str:
        """What the state means in this case; empty where what the client has says it all."""
        match self.row.state:
            case HoldingState.NACKED:
                return f"It refused {_called(self.row.revision, self.row.version) or 'this'}."
            case HoldingState.ERROR_SENT if self.rule:
                does = "denied" if self.row.code == _DENIED else "hidden"
                return f"It was told why it does not get this, which is {does} by rule {self.rule}."
            case HoldingState.ERROR_SENT:
                return "It was told why it does not get this."
            case HoldingState.SILENT:
                return "There is nothing to send, and it is too old to be told why."
            case _:
                return self.row.message

    @property
    def words(self) -> str:
        """Word for word: what the client said, or what it was told; empty where there are no such words."""
        return self.row.message if self.row.state in _FOREIGN else ""


def lines_of(
    environment_key: str, rows: Sequence[HeldResource], published: Mapping[Key, int], *, at: datetime | None = None
) -> list[HoldingLine]:
    """The lines for what clients have or, with `at`, had then, as `rows` say it, beside what is published now, which is
    given as `published_revisions` finds it.
    """
    return [_line(environment_key, row, published.get((row.type, row.name)), at) for row in rows]


def lines_of_client(client: ClientSummary, rows: Sequence[HeldResource]) -> list[HoldingLine]:
    """The lines for what one client has, with the access rules that keep resources from it."""
    keys = {(row.type, row.name) for row in rows}
    snapshot = _snapshot(client.environment, keys)
    published = revisions_served(client.environment, _versions(keys, snapshot))
    rules = rules_keeping(client=client, rows=rows, snapshot=snapshot)
    lines = [_line(client.environment, row, published.get((row.type, row.name))) for row in rows]
    return [replace(line, rule=rules.get((line.row.type, line.row.name), 0)) for line in lines]


def published_revisions(environment_key: str, keys: Collection[Key]) -> Mapping[Key, int]:
    """The number of the revision that is served of each of these names; names of which nothing is served are left
    out.
    """
    return revisions_served(environment_key, published_versions(environment_key, keys))


def revisions_served(environment_key: str, versions: Mapping[Key, str]) -> Mapping[Key, int]:
    """The number of the revision that has each of these contents, given with the version on the wire by (type, name);
    contents that no revision has are left out.
    """
    numbers = revisions_of(environment_key=environment_key, contents={_content(*each) for each in versions.items()})
    found = {key: numbers.get(_content(key, version)) for key, version in versions.items()}
    return {key: number for key, number in found.items() if number is not None}


def published_versions(environment_key: str, keys: Collection[Key]) -> Mapping[Key, str]:
    """The version on the wire of what is served of each of these names; names of which nothing is served are left
    out.
    """
    return _versions(keys, _snapshot(environment_key, keys))


def _snapshot(environment_key: str, keys: Collection[Key]) -> Snapshot | None:
    return snapshot_of_names(environment_key=environment_key, keys={(word, canonical(name)) for word, name in keys})


def _versions(keys: Collection[Key], snapshot: Snapshot | None) -> Mapping[Key, str]:
    if snapshot is None:
        return {}
    versions = {}
    for word, name in keys:
        entry = snapshot.type_state(by_word[word]).served.get(canonical(name))
        if entry is not None:
            versions[word, name] = entry.content.version
    return versions


def _content(key: Key, version: str) -> tuple[str, str, str]:
    return key[0], canonical(key[1]), version


def diff_url(environment_key: str, key: Key, before: int, after: int) -> str:
    """The URL of the difference between two revisions of a resource."""
    return (
        f"{resource_url(environment_key, *key)}&{urlencode({'tab': 'history', 'from': str(before), 'to': str(after)})}"
    )


def _line(environment_key: str, row: HeldResource, published: int | None, at: datetime | None = None) -> HoldingLine:
    key = (row.type, row.name)
    has, _ = _has(row)
    asked = {"e": environment_key, "t": row.type, "n": row.name, "c": row.client}
    if at is not None:
        asked["at"] = iso_text(at)
    differs = has is not None and published is not None and has != published
    return HoldingLine(
        row,
        published,
        resource_url(environment_key, *key),
        f"{reverse('explain')}?{urlencode(asked)}",
        diff_url(environment_key, key, has, published) if differs and has and published else "",
    )


def _has(row: HeldResource) -> tuple[int | None, str]:
    """The revision and the version of what the client runs."""
    if row.state is HoldingState.ACKED:
        return row.revision, row.version
    return row.acked_revision, row.acked_version


def _called(revision: int | None, version: str) -> str:
    if revision is not None:
        return f"r{revision}"
    return "other content" if version else ""
