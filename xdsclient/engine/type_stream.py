"""One resource type: its entries, and its part of the stream. What SotW and delta share.

The engine calls it; it never talks to watchers. A request is composed when it can be written, so that any number of
changes between two writes cost one request.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from math import inf

from xdsclient.engine.collection import UNMENTIONED, WILDCARD, Collection, is_collection
from xdsclient.engine.entry import RAN_OUT, REMOVED, Entry
from xdsclient.engine.events import Gone, Heartbeat, Invalid, Request, Response, Valid
from xdsclient.engine.policy import Policy
from xdsclient.engine.taken import Answer, Taken
from xdsclient.engine.values import CacheState, Resource, ResourceKey, Status
from xdscore.resource_types import ResourceType


class TypeStream(ABC):
    """One resource type of a client: its entries by name, and what was sent and received for the type on the current
    stream.

    `collections` are those of the entries that stand for a collection.
    """

    __slots__ = ("_answers", "_asked", "_dirty", "_nonce", "_sent", "collections", "entries", "kind")

    def __init__(self, kind: ResourceType) -> None:
        self.kind = kind
        self.entries: dict[str, Entry] = {}
        self.collections: dict[str, Collection] = {}
        self._answers: deque[Answer] = deque()
        self._reset()

    def _reset(self) -> None:
        """Forget what was sent and received on the stream that ended; nothing of it counts on a new one (protocol.md
        A4).
        """
        self._answers.clear()
        self._nonce = ""
        # The names the server was told on this stream, and whether it was told any.
        self._sent: set[str] = set()
        self._asked = False
        self._dirty = bool(self.entries)

    # The stream's life.

    def closed(self) -> None:
        """Note that the stream ended: timers stop (A57), and entries without a watch are forgotten."""
        self._forget_unwatched()
        for entry in self.entries.values():
            entry.deadline_s = inf
        for collection in self.collections.values():
            collection.sweep_s = inf
        self._reset()

    # Watches.

    def join(self, name: str, watch: int, now: float) -> Entry:
        """Add a watch, by its number, for a name, which may be that of a collection; return the entry of the name."""
        entry = self.entries.get(name) or self._new(name, now)
        entry.join(watch, by_name=True)
        for member in self._members_of(entry):
            member.join(watch, by_name=False)
        if name not in self._sent:
            self._dirty = True
        return entry

    def _new(self, name: str, now: float) -> Entry:
        key = ResourceKey(self.kind, name)
        if not is_collection(self.kind, name):
            entry = self.entries[name] = Entry(key, now)
            return entry
        collection = Collection(key, now)
        # What the client has under its own name need not be sent again for the collection.
        collection.members = {known.key.name for known in self.entries.values() if _is_in(known, collection)}
        self.entries[name] = self.collections[name] = collection
        return collection

    def with_members(self, entry: Entry) -> list[Entry]:
        """The entry alone in a list; for a collection, the entries of its members and then its own."""
        return [*self._members_of(entry), entry]

    def _members_of(self, entry: Entry) -> list[Entry]:
        names = sorted(entry.members) if isinstance(entry, Collection) else ()
        return [self.entries[name] for name in names if name in self.entries]

    def leave(self, entry: Entry, watch: int) -> None:
        """End a watch, by its number, of an entry. The entry is kept until the server is told that the name is dropped,
        so that a watch that begins before then finds it: the server would not send it again.
        """
        entry.leave(watch)
        for member in self._members_of(entry):
            member.leave(watch)
        if entry.asked_for:
            return
        self._dirty = True
        for each in self.with_members(entry)[::-1]:
            self._forget_if_free(each)

    def _forget_if_free(self, entry: Entry) -> None:
        """Forget the entry, unless it is watched or a member of a collection, or the last request written still
        subscribes to its name.
        """
        known = self.entries.get(entry.key.name) is entry
        if known and not (entry.watched or self._is_asked_for(entry) or self._is_member(entry)):
            self._forget(entry.key.name)

    def _is_asked_for(self, entry: Entry) -> bool:
        """Whether the name of the entry itself is subscribed to: by a watch now, or in the last request that was
        written.
        """
        return entry.asked_for or entry.key.name in self._sent

    def _is_member(self, entry: Entry) -> bool:
        return any(entry.key.name in each.members for each in self.collections.values())

    def _forget(self, name: str) -> None:
        del self.entries[name]
        self.collections.pop(name, None)

    def _forget_unwatched(self) -> None:
        for name in [name for name, entry in self.entries.items() if not entry.watched]:
            self._forget(name)

    def _wanted(self) -> Iterable[str]:
        """The names that requests should subscribe to; a member that is watched only through its collection needs
        none.
        """
        return (name for name, entry in self.entries.items() if entry.asked_for)

    # Requests.

    @property
    def due(self) -> bool:
        """Whether there is a request to write. A first request without names is never due: it would mean "everything"
        (protocol.md C2).
        """
        return bool(self._answers) or (self._dirty and (self._asked or any(self._wanted())))

    @abstractmethod
    def compose(self, server: int, *, prove: bool) -> Request:
        """Make the next request from the present state and treat it as sent. `server`: the index of the server it goes
        to.

        `prove`: ask so that the server has something to answer even if it has no news.
        """

    def _next_answer(self, otherwise: str) -> Answer:
        """The oldest ACK or NACK that was not sent yet; when there is none, an answer without a NACK under the nonce
        `otherwise`.
        """
        return self._answers.popleft() if self._answers else Answer(otherwise, None)

    # Responses.

    def take(self, response: Response, server: int, policy: Policy, now: float) -> Taken:
        """Take in a response of the server with this index, and keep its ACK or NACK for the next request. Valid
        resources are used whatever is wrong with others (A46).
        """
        taken = Taken(server, policy, now)
        for index, item in enumerate(response.resources):
            self._take_resource(index, item, taken)
        # Names in error are spoken for when absence is judged, and come last (A88; TP3: they and the valid ones do not
        # intersect, and where a server breaks that the error is what stands, as in C-core).
        errors = self._sound_errors(response, taken)
        taken.refused = {name for name, error in errors.items() if name in self.collections and error.is_data_error}
        for entry in self._absent(response, taken):
            if entry.key.name not in errors:
                self._removed(entry, response.version, taken)
            else:
                # F12: of a name in error the error stands, which may be one that leaves the resource in use (TP3).
                self._leave_wildcard(entry, taken)
        # A collection is refused after its members: those that are told apart from it have a reason of their own.
        for name in sorted(errors, key=self.collections.__contains__):
            self._take_error(name, errors[name], response.version, taken)
        if WILDCARD in self._sent and WILDCARD in self.collections:
            # Everything there is may be nothing (protocol.md D3, E6).
            self._answered(self.collections[WILDCARD], taken)
        self._nonce = response.nonce
        self._answers.append(Answer(response.nonce, taken.nack))
        self._accepted(response, taken)
        return taken

    @abstractmethod
    def _absent(self, response: Response, taken: Taken) -> list[Entry]:
        """The entries that the response says are gone; an entry is included even where the response also has an error
        for it.
        """

    @abstractmethod
    def _accepted(self, response: Response, taken: Taken) -> None:
        """Remember what later requests need of a response. The response was acceptable as a whole if `taken.problems`
        is empty.
        """

    def _take_resource(self, index: int, item: Valid | Invalid | Heartbeat, taken: Taken) -> None:
        if item.name and item.name in taken.seen:
            # D5: a server must not; which of the two it meant nobody knows, so the first stays.
            taken.problems.append(f"resource index {index}: {item.name}: INVALID_ARGUMENT: duplicate resource name")
            taken.invalid += 1
            return
        taken.seen.add(item.name)
        if isinstance(item, Heartbeat):
            known = self.entries.get(item.name)
            if known is not None and not known.renewed(item.version, item.ttl_s, taken.now):
                # Whoever sent it believes that the client has it: told otherwise, it can send it.
                text = "a heartbeat of a version that is not in use"
                taken.problems.append(f"resource index {index}: {item.name}: INVALID_ARGUMENT: {text}")
                taken.invalid += 1
            return
        entry = self._mentioned(item.name, taken)
        match item:
            case Valid():
                taken.valid += 1
                if entry is not None:
                    resource = Resource(item.version, item.value, item.raw, taken.server)
                    entry.received(resource, taken.now, item.ttl_s)
            case Invalid():
                taken.invalid += 1
                taken.blind = taken.blind or not item.name
                shown = f"{item.name}: " if item.name else ""
                taken.problems.append(f"resource index {index}: {shown}INVALID_ARGUMENT: {item.text}")
                if entry is not None:
                    entry.refused(item.text, item.version, item.raw, taken.policy, taken.now)
        if entry is not None:
            taken.touched[item.name] = entry

    def _mentioned(self, name: str, taken: Taken) -> Entry | None:
        """The entry of a name that the server sent a resource for, which becomes a member of the collections it belongs
        to; None when nobody watches it.
        """
        entry = self.entries.get(name)
        if isinstance(entry, Collection):
            # No resource has such a name.
            return None
        return self._enter(name, self._watched_collections(name), taken)

    def _watched_collections(self, name: str) -> list[Collection]:
        """The watched collections to which a resource of this name belongs."""
        return [each for each in self.collections.values() if name and each.watched and each.contains(name)]

    def _enter(self, name: str, collections: Iterable[Collection], taken: Taken) -> Entry | None:
        """Make a name a member of these collections; return its entry, which may be new; None when it has none and no
        collection is given.
        """
        entry = self.entries.get(name)
        for collection in collections:
            if entry is None:
                entry = self.entries[name] = Entry(ResourceKey(self.kind, name), taken.now)
            collection.enter(entry, taken.policy, taken.now)
            taken.collections[collection.key.name] = collection
        return entry

    def _answered(self, collection: Collection, taken: Taken) -> None:
        collection.answered(taken.now)
        taken.collections[collection.key.name] = collection

    def _take_error(self, name: str, error: Status, version: str, taken: Taken) -> None:
        """Take in one entry of `resource_errors`: an error of a name, of a member, or of a collection as a whole (TP3).
        `version` is that of the response.
        """
        entry = self.entries.get(name)
        if isinstance(entry, Collection):
            entry.errored(error, version, taken.policy, taken.now)
            taken.collections[name] = entry
            if entry.is_refused and taken.policy.drops_on_data_error:
                for member in self._members_of(entry):
                    self._lose(member, error, taken.gone, (entry,))
            return
        if not error.is_data_error:
            # It is there. TP3 has no such error under a wildcard.
            globs = [each for each in self._watched_collections(name) if not each.is_wildcard]
            entry = self._enter(name, globs, taken)
        if entry is not None and (self._is_asked_for(entry) or not error.is_data_error):
            entry.errored(error, version, taken.policy, taken.now)
            taken.touched[name] = entry
        if entry is not None and error.is_data_error:
            # That it does not exist or may not be read makes it no member; of who was none nothing need be told.
            self._lose(entry, error, taken.gone)

    def _leave_wildcard(self, entry: Entry, taken: Taken) -> None:
        """Remove an entry that the response both leaves out and has an error for from wildcard collections, if it is
        also subscribed to by its name or by a glob: the error is then about that subscription.
        """
        wildcard, others = [], self._is_asked_for(entry)
        for collection in self.collections.values():
            if collection.is_wildcard:
                wildcard.append(collection)
            else:
                others = others or entry.key.name in collection.members
        if others:
            self._lose(entry, REMOVED, taken.gone, wildcard)

    def _lose(
        self, entry: Entry, reason: Status, gone: list[Gone], collections: Iterable[Collection] | None = None
    ) -> None:
        """Remove an entry from these collections (None: from all), and add the news for their watches to `gone`."""
        for collection in list(self.collections.values() if collections is None else collections):
            gone.extend(collection.lose(entry, reason))
        self._forget_if_free(entry)

    def _removed(self, entry: Entry, version: str, taken: Taken) -> None:
        """Note that the server removed a resource (A88: deletion), or a whole collection, which is then empty (TP1).
        `version` is that of the response.
        """
        if isinstance(entry, Collection):
            for member in self._members_of(entry):
                self._lose(member, REMOVED, taken.gone, (entry,))
            self._answered(entry, taken)
            return
        if self._is_asked_for(entry):
            entry.deleted(version, taken.policy, taken.now)
            taken.touched[entry.key.name] = entry
        # Members of a collection that is refused go or stay with it, in both variants: its own error says which (A88).
        let_go = [c for name, c in self.collections.items() if not c.is_refused and name not in taken.refused]
        self._lose(entry, REMOVED, taken.gone, let_go)

    def _sound_errors(self, response: Response, taken: Taken) -> dict[str, Status]:
        """The errors that the response reports, by name; the last one where there are several. A malformed one is added
        to the problems of the response (clients.md section 1). None are read from a server whose policy says so.
        """
        if not taken.policy.reads_resource_errors:
            return {}
        errors: dict[str, Status] = {}
        for index, reported in enumerate(response.errors):
            if not reported.name:
                taken.problems.append(f"resource_errors index {index}: resource_name unset")
            elif reported.status.ok:
                taken.problems.append(f"resource_errors index {index}: {reported.name}: error_detail must be non-OK")
            else:
                errors[reported.name] = reported.status
        return errors

    # Time.

    def written(self, names: tuple[str, ...], policy: Policy, now: float) -> None:
        """Start the timers of these names, because a request with them was written."""
        for name in names:
            entry = self.entries.get(name)
            if entry is not None:
                entry.asked(policy, now)

    def expire(self, policy: Policy, now: float) -> Iterator[Entry]:
        """Note as missing the resources whose timer or ttl is over; yields their entries. Of those that nobody asks for
        by name, `sweep` says that they are gone.
        """
        asked = (each for each in self.entries.values() if each.expires_s > now or self._is_asked_for(each))
        return (entry for entry in asked if entry.expire(policy, now))

    def sweep(self, now: float) -> list[Gone]:
        """Remove the members whose ttl ran out, and those that the server did not mention in time after it began to
        answer anew for their collection; returns the news for watches.
        """
        gone: list[Gone] = []
        for collection in [each for each in self.collections.values() if each.sweep_s <= now]:
            collection.sweep_s = inf
            for member in self._members_of(collection):
                if member.key.name in collection.unheard:
                    self._lose(member, UNMENTIONED, gone, (collection,))
        for entry in [each for each in self.entries.values() if each.error is RAN_OUT or each.expires_s <= now]:
            self._lose(entry, RAN_OUT, gone)
        return gone

    def deadline(self) -> float:
        """The time at which the next timer fires, on the engine's clock; inf when none runs."""
        timers = [min(entry.deadline_s, entry.expires_s) for entry in self.entries.values()]
        return min([*timers, *(collection.sweep_s for collection in self.collections.values())], default=inf)

    @property
    def lacks_something(self) -> bool:
        """Whether any watched resource is not cached."""
        return any(not isinstance(entry.resource, Resource) for entry in self.entries.values() if entry.watched)

    def _waits_for(self, name: str) -> bool:
        entry = self.entries.get(name)
        return entry is not None and entry.state is CacheState.REQUESTED


def _is_in(entry: Entry, collection: Collection) -> bool:
    in_use = entry.watched and entry.state is CacheState.ACKED and not isinstance(entry, Collection)
    return in_use and collection.contains(entry.key.name)
