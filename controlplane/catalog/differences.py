"""Two states of resources beside each other, for the API and the pages to render in their own ways, without secrets."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from controlplane.catalog.contents import contents_at, contents_of_pairs
from controlplane.catalog.manifests import manifest_of
from xdscore.schema import Tree
from xdscore.schema.differences import unified_text
from xdscore.snapshot import EntryKey


@dataclass(frozen=True, slots=True)
class ResourceDifference:
    """A resource that differs between two states of an environment, with its manifest `before` and `after`; a manifest
    is None where the resource does not exist.
    """

    key: EntryKey
    before: Tree
    after: Tree

    @property
    def word(self) -> str:
        """The word of the resource's type, such as `cluster`."""
        return self.key[0]

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.key[1]

    @property
    def label(self) -> str:
        """The type's word and the resource's name, such as `cluster/pay`."""
        return f"{self.word}/{self.name}"

    @property
    def action(self) -> str:
        """The word "created", "deleted" or "updated": what became of the resource between the first state and the
        second.
        """
        return "created" if self.before is None else "deleted" if self.after is None else "updated"

    @property
    def text(self) -> str:
        """The difference as a unified diff of the manifests."""
        return unified_text(self.label, self.before, self.after)


def states_differ(
    before: Mapping[EntryKey, str], after: Mapping[EntryKey, str], *, environment_key: str, limit: int, offset: int = 0
) -> tuple[int, tuple[ResourceDifference, ...]]:
    """How many resources differ between two states of an environment, and `limit` of them, after the first `offset`. A
    state is given as the address (hash) of each resource's content.
    """
    keys = list(actions_between(before, after))
    return len(keys), differences_of(keys[offset : offset + limit], before, after, environment_key=environment_key)


def actions_between(before: Mapping[EntryKey, str], after: Mapping[EntryKey, str]) -> Mapping[EntryKey, str]:
    """What became of each resource that differs between two states, in the words of `ResourceDifference.action`, in the
    order of types and names. No manifest is read.
    """
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return {key: "created" if key not in before else "deleted" if key not in after else "updated" for key in keys}


def differences_of(
    keys: Collection[EntryKey],
    before: Mapping[EntryKey, str],
    after: Mapping[EntryKey, str],
    *,
    environment_key: str,
) -> tuple[ResourceDifference, ...]:
    """How each of these resources differs between two states, in their order. Two queries."""

    def manifests(state: Mapping[EntryKey, str]) -> dict[EntryKey, Tree]:
        addresses = {key: state[key] for key in keys if key in state}
        found = contents_at(environment_key=environment_key, addresses=addresses)
        return {key: manifest_of(content) for key, content in found}

    old, new = manifests(before), manifests(after)
    return tuple(ResourceDifference(key, old.get(key), new.get(key)) for key in keys)


def revisions_differ(
    *, environment_key: str, revisions: Mapping[EntryKey, tuple[int | None, int | None]]
) -> tuple[ResourceDifference, ...]:
    """For each of these resources, two of its revisions beside each other, by their numbers; None, and a deletion,
    stand for a resource that does not exist.
    """
    found = contents_of_pairs(environment_key=environment_key, revisions=revisions)
    return tuple(
        ResourceDifference(
            key,
            manifest_of(before) if before is not None else None,
            manifest_of(after) if after is not None else None,
        )
        for key, (before, after) in found.items()
    )
