"""A glob collection (xRFC TP1, protocol.md H3) or a wildcard (C2) that somebody watches.

It is an entry of the cache like any other: asked for by its name, with a timer until the server says something, and
with errors of its own (TP3: "the issue is with the glob itself"). What it has in place of a resource is that the server
answered. Its members are entries under their own names, and its watches watch each of them: so a member has the states,
errors and rules of A88, and a new watch sees what the old ones see.

Who is a member is the server's to say, so what A88 counts as the deletion of a resource, or as the server's data error
about one, makes it no member any more, whatever the features of the server are. A88 lets clients go on with what they
asked for by name; nobody asked for a member by its name, and a collection that lets nothing go would only grow. The
other errors of A88, a NACK and what is transient, happen to members as to any resource.
"""

from collections.abc import Iterator
from math import inf

from xdsclient.engine.entry import Entry
from xdsclient.engine.events import Gone
from xdsclient.engine.policy import Policy
from xdsclient.engine.values import ABSENT, CacheEntry, CacheState, Resource, ResourceKey, Status, StatusCode
from xdscore.resource_types import ResourceType
from xdscore.xdstp import glob_of

WILDCARD = "*"

_ANSWERED = Resource("", None, b"", -1)
UNMENTIONED = Status(StatusCode.NOT_FOUND, "does not exist: the xDS server sent the collection again without it")


def is_collection(kind: ResourceType, name: str) -> bool:
    """Whether this canonical name asks for any number of resources: "*" of a type that has it (C2), or a glob (H3)."""
    return (kind.wildcard and name == WILDCARD) or glob_of(name) is not None


class Collection(Entry):
    """The cache entry of a collection.

    members: the names of resources in it that the server sent or reported an error for, and did not remove.
    unheard: the members that the server may have removed without saying so, because it answers anew: after a new SotW
      stream where absence says nothing (D1), or after an error of the whole collection.
    sweep_s: when unheard members are given up, in seconds on the engine's clock. The wait begins with the first member
      that the server does mention: a server that says nothing at all may have nothing new to say. Until then infinite.
    """

    __slots__ = ("_glob", "members", "sweep_s", "unheard")

    def __init__(self, key: ResourceKey, now: float) -> None:
        super().__init__(key, now)
        self._glob = glob_of(key.name)
        self.members: set[str] = set()
        self.unheard: set[str] = set()
        self.sweep_s = inf

    def contains(self, name: str) -> bool:
        """Whether a resource of this name belongs to the collection."""
        return self._glob is None or self._glob.contains(name)

    @property
    def is_wildcard(self) -> bool:
        """Whether the collection is "*", every resource of its type. A server reports no errors of members of a
        wildcard (TP3).
        """
        return self._glob is None

    @property
    def is_refused(self) -> bool:
        """Whether the server reported that the collection does not exist for this client or may not be read. What then
        becomes of its members is decided by A88.
        """
        return self.state is CacheState.RECEIVED_ERROR and self.error.is_data_error

    @property
    def shown(self) -> bool:
        """Whether the collection itself is listed among cache entries: while the server has not answered for it, or it
        is in error. Otherwise its members are listed alone.
        """
        return self.state is not CacheState.ACKED

    # What the server says.

    def answered(self, now: float) -> None:
        """Note that the server answered for the collection, which may be empty. `now` is the engine's time in
        seconds.
        """
        if self.state is not CacheState.ACKED:
            self.received(_ANSWERED, now)

    def enter(self, entry: Entry, policy: Policy, now: float) -> None:
        """Make an entry a member, because the server sent it or reported an error for it. This ends an error of the
        collection as a whole.
        """
        name = entry.key.name
        self.members.add(name)
        self.unheard.discard(name)
        for watch in self.watches:
            entry.join(watch, by_name=False)
        self.sweep_s = min(self.sweep_s, now + policy.timer_s) if self.unheard else inf
        self.answered(now)

    def lose(self, entry: Entry, reason: Status) -> Iterator[Gone]:
        """Remove an entry from the members, if it is one; yields the news for every watch of the collection that had
        been told of it.
        """
        name = entry.key.name
        if name not in self.members:
            return
        self.members.discard(name)
        self.unheard.discard(name)
        for watch in self.watches:
            if entry.leave(watch):
                yield Gone(watch, name, reason)

    def errored(self, error: Status, version: str, policy: Policy, now: float) -> None:
        """Note an error of the whole collection, reported in a response with this version. Members stay in use; a
        collection without members counts as never answered.
        """
        super().errored(error, version, policy, now)
        if not self.members:
            self.resource = ABSENT
        if self.is_refused:
            self.doubt()

    def doubt(self) -> None:
        """Treat every member as unheard: a member that the server does not mention when it answers again is gone."""
        self.unheard, self.sweep_s = set(self.members), inf

    def snapshot(self) -> CacheEntry:
        """The collection as a value. A collection has no content of its own."""
        entry = super().snapshot()
        return CacheEntry(
            entry.key, entry.state, ABSENT, entry.error, entry.error_version, entry.rejected, entry.updated_s
        )
