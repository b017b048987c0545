"""Two states of resources beside each other, for the API and the pages to render in their own ways, without secrets."""

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.catalog.contents import contents_at
from controlplane.catalog.manifests import manifest_of
from xdscore.schema import Tree
from xdscore.schema.differences import unified_text
from xdscore.snapshot import EntryKey


@dataclass(frozen=True, slots=True)
class ResourceDifference:
    """One resource on both sides; None where it is not there."""

    key: EntryKey
    before: Tree
    after: Tree

    @property
    def word(self) -> str:
        """Its type."""
        return self.key[0]

    @property
    def name(self) -> str:
        """Its name."""
        return self.key[1]

    @property
    def label(self) -> str:
        """Type and name."""
        return f"{self.word}/{self.name}"

    @property
    def action(self) -> str:
        """What leads from one side to the other: created, deleted or updated."""
        return "created" if self.before is None else "deleted" if self.after is None else "updated"

    @property
    def text(self) -> str:
        """The unified text of it."""
        return unified_text(self.label, self.before, self.after)


def states_differ(
    before: Mapping[EntryKey, str], after: Mapping[EntryKey, str], *, environment_key: str, limit: int, offset: int = 0
) -> tuple[int, tuple[ResourceDifference, ...]]:
    """How many resources differ between two states, given as the addresses of their contents, and `limit` of them."""
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    shown = keys[offset : offset + limit]

    def manifests(state: Mapping[EntryKey, str]) -> dict[EntryKey, Tree]:
        addresses = {key: state[key] for key in shown if key in state}
        found = contents_at(environment_key=environment_key, addresses=addresses)
        return {key: manifest_of(content) for key, content in found}

    old, new = manifests(before), manifests(after)
    return len(keys), tuple(ResourceDifference(key, old.get(key), new.get(key)) for key in shown)
