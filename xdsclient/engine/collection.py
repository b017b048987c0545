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
    """The entry of a collection. `members` are the names of resources in it that the server sent or reported an error
    for, and did not remove.

    `unheard`: members that the server may have removed without saying so, because it answers anew: after a new SotW
    stream where absence says nothing (D1), or after an error of the whole collection. Members that it has not mentioned
    at the time `sweep_s` are gone. The time begins with the first member it does mention: a server that says nothing at
    all may have nothing new to say.
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
        """Whether the collection is "*", every resource of its type; errors are not reported for members of a wildcard
        as such (TP3).
        """
        return self._glob is None

    @property
    def is_refused(self) -> bool:
        """Whether the server says that this client has no such collection; its members then follow A88."""
        return self.state is CacheState.RECEIVED_ERROR and self.error.is_data_error

    @property
    def shown(self) -> bool:
        """Whether the collection itself is shown in the cache: while it was not answered or is in error. Otherwise its
        members say everything.
        """
        return self.state is not CacheState.ACKED

    # What the server says.

    def answered(self, now: float) -> None:
        """Note that the server answered for the collection, which may be empty."""
        if self.state is not CacheState.ACKED:
            self.received(_ANSWERED, now)

    def enter(self, entry: Entry, policy: Policy, now: float) -> None:
        """Make an entry a member, because the server sent it or reported an error for it. That ends an error of the
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
        """Remove an entry from the members; yields news for every watch of the collection that was told of it."""
        name = entry.key.name
        if name not in self.members:
            return
        self.members.discard(name)
        self.unheard.discard(name)
        for watch in self.watches:
            if entry.leave(watch):
                yield Gone(watch, name, reason)

    def errored(self, error: Status, version: str, policy: Policy, now: float) -> None:
        """Note an error of the whole collection. An empty collection has nothing that could stay in use."""
        super().errored(error, version, policy, now)
        if not self.members:
            self.resource = ABSENT
        if self.is_refused:
            self.doubt()

    def doubt(self) -> None:
        """Treat every member as unheard: those that the server does not mention when it answers again are gone."""
        self.unheard, self.sweep_s = set(self.members), inf

    def snapshot(self) -> CacheEntry:
        """The collection as a value. A collection has no content of its own."""
        entry = super().snapshot()
        return CacheEntry(
            entry.key, entry.state, ABSENT, entry.error, entry.error_version, entry.rejected, entry.updated_s
        )
