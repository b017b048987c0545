"""What the watches of one command heard, and the rows it makes: a name each, and each member of a collection."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsclient import ABSENT, OK, CacheEntry, Resource, Status, is_collection
from xdscore.names import canonical
from xdscore.resource_types import ResourceType
from xdsctl.exits import JsonObject


class Ear:
    """Keeps what the watch of one name was told last, for `rows_of`, and calls `told` whenever there is news."""

    def __init__(self, name: str, told: Callable[[], None]) -> None:
        self.name = name
        self.error = OK
        self._told = told

    def on_resource_changed(self, resource: object) -> None:
        self.error = resource if isinstance(resource, Status) else OK
        self._told()

    def on_ambient_error(self, error: Status) -> None:
        self.error = error
        self._told()


class CollectionEar:
    """Keeps what the watch of a collection was told, for `rows_of`: its members, members that have gone since they were
    shown, and the status of the collection as a whole.
    """

    def __init__(self, name: str, told: Callable[[], None]) -> None:
        self.name = name
        self.answered = False
        self.status = OK
        self.members: dict[str, Ear] = {}
        self.gone: dict[str, Status] = {}
        self._told = told

    def on_member_changed(self, name: str, member: object) -> None:
        self.gone.pop(name, None)
        self._member(name).on_resource_changed(member)

    def on_member_ambient_error(self, name: str, error: Status) -> None:
        self._member(name).on_ambient_error(error)

    def on_member_gone(self, name: str, reason: Status) -> None:
        self.members.pop(name, None)
        self.gone[name] = reason
        self._told()

    def on_collection_status(self, status: Status) -> None:
        self.status = status
        self.answered = self.answered or status.ok
        self._told()

    def _member(self, name: str) -> Ear:
        return self.members.setdefault(name, Ear(name, self._told))


AnyEar = Ear | CollectionEar


def ear_of(kind: ResourceType, name: str, told: Callable[[], None]) -> AnyEar:
    """The watcher for a name: a CollectionEar if the name is that of a collection, else an Ear."""
    if name == "*" or is_collection(kind, canonical(name)):
        return CollectionEar(name, told)
    return Ear(name, told)


def rows_of(kind: ResourceType, ears: Sequence[AnyEar], cache: Sequence[CacheEntry]) -> tuple[JsonObject, ...]:
    """A row for each watched name; in place of a collection, one for each member. A name that several watches are told
    of has one row. `cache` is the client's.
    """
    entries = {entry.key.name: entry for entry in cache}
    rows: dict[str, JsonObject] = {}
    for ear in ears:
        for row in _rows_of(kind, ear, entries):
            rows.setdefault(str(row["name"]), row)
    return tuple(rows.values())


def _rows_of(kind: ResourceType, ear: AnyEar, entries: Mapping[str, CacheEntry]) -> Iterator[JsonObject]:
    if isinstance(ear, Ear):
        yield _row(kind, ear, entries.get(canonical(ear.name)))
        return
    if not ear.members or not ear.status.ok:
        entry = entries.get(canonical(ear.name))
        # One that was answered has only its members in the cache.
        state = entry.label if entry is not None else "acked" if ear.answered else "refused"
        yield _described(kind, ear.name, state, "", ear.status)
    for name, member in sorted(ear.members.items()):
        # One that has left the cache already is told to be gone in a moment.
        if name in entries:
            yield _row(kind, member, entries[name])
    for name, reason in ear.gone.items():
        yield _described(kind, name, "gone", "", reason)
    # Told once: whoever watches for long would see nothing else.
    ear.gone = {}


def _row(kind: ResourceType, ear: Ear, entry: CacheEntry | None) -> JsonObject:
    """The row of one name, from what its watch was told and its cache entry; `entry` is None for a name that requests
    cannot contain.
    """
    resource = entry.resource if entry is not None else ABSENT
    state = entry.label if entry is not None else "refused"
    return _described(kind, ear.name, state, resource.version if isinstance(resource, Resource) else "", ear.error)


def _described(kind: ResourceType, name: str, state: str, version: str, error: Status) -> JsonObject:
    return {
        "type": kind.word,
        "name": name,
        "state": state,
        "version": version,
        "error": "" if error.ok else str(error),
    }
