"""One resource in the cache: its state, its timer, and what its watchers should see (A88).

Watchers are never called from a transition. They are shown the difference between what they were told and what the
entry says now, so that cache, CSDS and watchers cannot disagree ("Cache Entry States": the data exposed to watchers is
consistent with the cache), a new watcher sees resource and ambient error like the old ones, and nothing is said twice.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import inf

from xdsclient.engine.events import Ambient, Deliver
from xdsclient.engine.policy import Policy
from xdsclient.engine.values import (
    ABSENT,
    OK,
    Absent,
    CacheEntry,
    CacheState,
    Resource,
    ResourceKey,
    Status,
    StatusCode,
)

RAN_OUT = Status(StatusCode.NOT_FOUND, "does not exist: its ttl ran out, and the xDS server did not renew it in time")
REMOVED = Status(StatusCode.NOT_FOUND, "does not exist: the xDS server removed it")

# What the error of a refused resource begins with, before the words of whoever refused it.
INVALID = "invalid resource"


@dataclass(slots=True)
class _Told:
    """What one watch was told last: its resource or error, and the ambient error."""

    news: Resource | Status | Absent = ABSENT
    ambient: Status = OK


class Entry:
    """The client's knowledge of one resource that is watched, or that was watched and is still subscribed to."""

    __slots__ = (
        "_by_name",
        "_error_version",
        "_outage",
        "_rejected",
        "_updated_s",
        "_watches",
        "deadline_s",
        "error",
        "expires_s",
        "key",
        "resource",
        "state",
    )

    def __init__(self, key: ResourceKey, now: float) -> None:
        self.key = key
        self.state = CacheState.REQUESTED
        self.resource: Resource | Absent = ABSENT
        self.deadline_s = inf
        # When the resource must not be used any more, if nobody renews it.
        self.expires_s = inf
        self.error = OK
        self._error_version = ""
        # What is wrong with the stream, while that is newer than the entry's own error.
        self._outage = OK
        self._rejected = b""
        self._updated_s = now
        self._watches: dict[int, _Told] = {}
        # Those of the watches that ask for this very name; the others are of collections that it is a member of.
        self._by_name: set[int] = set()

    # Who watches.

    @property
    def watched(self) -> bool:
        """Whether any watch covers this resource, by its name or as a member of a collection."""
        return bool(self._watches)

    @property
    def watches(self) -> AbstractSet[int]:
        """The numbers of the watches for this resource."""
        return self._watches.keys()

    @property
    def asked_for(self) -> bool:
        """Whether a watch is for this very name, not for a collection that it belongs to, so that requests must contain
        the name.
        """
        return bool(self._by_name)

    def join(self, watch: int, *, by_name: bool) -> None:
        """Add a watch, by its number; adding it again changes nothing. `by_name`: it watches this very name and not a
        collection.
        """
        self._watches.setdefault(watch, _Told())
        if by_name:
            self._by_name.add(watch)

    def leave(self, watch: int) -> bool:
        """Remove a watch, by its number; return whether it had been told anything."""
        self._by_name.discard(watch)
        told = self._watches.pop(watch, None)
        return told is not None and not isinstance(told.news, Absent)

    # The timer.

    def asked(self, policy: Policy, now: float) -> None:
        """Start the timer that waits for the server's word, because a request with this name was written at the time
        `now`. It runs only while nothing is known (A88: it fires only without a cached resource; TP3: an error is
        remembered until a new one or the resource comes).
        """
        if self.state is CacheState.REQUESTED and self.deadline_s == inf:
            self.deadline_s = now + policy.timer_s

    def expire(self, policy: Policy, now: float) -> bool:
        """If the timer is over by now, note that the resource is missing (A88, "Changes to Resource Timer Behavior"),
        and drop it if its ttl is over, whatever `policy` says of other errors; return whether either was over.
        """
        if self.expires_s <= now:
            self._drop_if(True)
            self._fail(CacheState.DOES_NOT_EXIST, RAN_OUT, "", now)
            return True
        if self.deadline_s > now:
            return False
        self._fail(policy.timer_state, policy.timer_error, "", now)
        return True

    # What the server says.

    def received(self, resource: Resource, now: float, ttl_s: float = 0.0) -> None:
        """Take a valid resource into use, for `ttl_s` seconds (0: for ever). It ends any error, even when the content
        is the one in use (TP3, protocol.md F11).
        """
        self.deadline_s = inf
        self.expires_s = now + ttl_s if ttl_s else inf
        if isinstance(self.resource, Resource) and self.resource.raw == resource.raw:
            # The value watchers hold stays the one in use.
            resource = replace(resource, value=self.resource.value)
        self.resource = resource
        self.state = CacheState.ACKED
        self.error, self._error_version, self._rejected, self._updated_s = OK, "", b"", now
        self._outage = OK

    def renewed(self, version: str, ttl_s: float, now: float) -> bool:
        """Go on with the resource in use for `ttl_s` seconds (0: for ever), if it is of this version; return whether it
        is.
        """
        if not isinstance(self.resource, Resource) or self.resource.version != version:
            return False
        self.expires_s = now + ttl_s if ttl_s else inf
        return True

    def refused(self, text: str, version: str, raw: bytes, policy: Policy, now: float) -> None:
        """Note that the client refused the update `raw` because of `text`: a data error (A88, "Handling Data Errors").
        A cached resource stays unless `policy` drops it (A46).
        """
        self._drop_if(policy.drops_on_data_error)
        self._fail(CacheState.NACKED, Status(StatusCode.INVALID_ARGUMENT, f"{INVALID}: {text}"), version, now)
        self._rejected = raw

    def deleted(self, version: str, policy: Policy, now: float) -> None:
        """Note that the server removed the resource, in a response with this version: a data error (A88)."""
        self._drop_if(policy.drops_on_deletion)
        self._fail(CacheState.DOES_NOT_EXIST, REMOVED, version, now)

    def errored(self, error: Status, version: str, policy: Policy, now: float) -> None:
        """Note the server's error for the resource, from a response with this version, by the four steps of A88,
        "Support for Errors Provided by the xDS server": the timer stops, state and error change, `policy` decides
        whether a cached resource is dropped, and `tell` then has news for the watches.
        """
        self._drop_if(error.is_data_error and policy.drops_on_data_error)
        self._fail(CacheState.RECEIVED_ERROR, error, version, now)

    # What becomes of the stream.

    def lost(self, outage: Status) -> None:
        """Note that the server cannot be reached, as `outage` says: a transient error, which leaves the entry's state
        as it was (A88).
        """
        self._outage = outage

    def regained(self) -> None:
        """Note that the server can be reached again; an error from before the outage is shown again."""
        self._outage = OK

    def _drop_if(self, drops: bool) -> None:
        if drops:
            self.resource, self.expires_s = ABSENT, inf

    def _fail(self, state: CacheState, error: Status, version: str, now: float) -> None:
        self.deadline_s = inf
        self.state = state
        self.error, self._error_version, self._rejected, self._updated_s = error, version, b"", now
        self._outage = OK

    # What is seen of it.

    def tell(self) -> Iterator[Deliver | Ambient]:
        """Yield the news that each watch has not been told yet.

        When there is a resource, an error is told as ambient; when there is none, as the news itself (A88, "Handling
        Data Errors" and "Handling Transient Errors"). Of two errors the newer one is told.
        """
        error = self.error if self._outage.ok else self._outage
        cached = isinstance(self.resource, Resource)
        news = self.resource if cached else ABSENT if error.ok else error
        ambient = error if cached else OK
        for watch, told in self._watches.items():
            if not isinstance(news, Absent) and not _same(news, told.news):
                # A88: the error condition is cleared when OnResourceChanged() is invoked.
                told.news, told.ambient = news, OK
                yield Deliver(watch, self.key.name, news)
            if told.ambient != ambient:
                told.ambient = ambient
                yield Ambient(watch, self.key.name, ambient)

    def snapshot(self) -> CacheEntry:
        """The entry as an immutable value."""
        return CacheEntry(
            self.key, self.state, self.resource, self.error, self._error_version, self._rejected, self._updated_s
        )


def _same(one: Resource | Status | Absent, other: Resource | Status | Absent) -> bool:
    if isinstance(one, Resource) and isinstance(other, Resource):
        return one.raw == other.raw
    return one == other
