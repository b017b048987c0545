"""What a watcher is, and watching by `async for` instead of by being called."""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from xdsclient.engine import events
from xdsclient.engine.values import OK, Resource, Status

N = TypeVar("N")
R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class ResourceWatcher(Protocol[R_contra]):
    """Receives news of one resource: in order, on the client's event loop, never while a call to the client is still
    running (A88).
    """

    def on_resource_changed(self, resource: R_contra | Status) -> None:
        """Take a new version of the resource; or a Status: there is none, and an earlier version must not be used any
        more.
        """

    def on_ambient_error(self, error: Status) -> None:
        """Take note of an error while the resource stays in use; a status that is OK ends the last such error."""


class CollectionWatcher(Protocol[R_contra]):
    """Receives news of the members of a collection, each by its own name, and of the collection as a whole; called as a
    ResourceWatcher is.
    """

    def on_member_changed(self, name: str, member: R_contra | Status) -> None:
        """Take a new member, or a new version of one; or a Status: the member exists but cannot be had, and an earlier
        version must not be used any more.
        """

    def on_member_ambient_error(self, name: str, error: Status) -> None:
        """Take note of an error while the member stays in use; a status that is OK ends the last such error."""

    def on_member_gone(self, name: str, reason: Status) -> None:
        """Take note that a resource is no member any more and must not be used as one. This is no fault: members come
        and go.
        """

    def on_collection_status(self, status: Status) -> None:
        """Take the status of the collection as a whole. OK: the server answered, even if there are no members; more may
        come at any time. Otherwise the error: members stay in use, except those for which `on_member_gone` was called
        before.
        """


class Watch(Protocol):
    """A running watch, which can be ended."""

    def cancel(self) -> None:
        """End the watch at once; ending it again does nothing."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[R]):
    """A call of `on_resource_changed`, as a value to iterate over."""

    resource: R | Status


@dataclass(frozen=True, slots=True)
class AmbientError:
    """A call of `on_ambient_error`, as a value to iterate over."""

    error: Status


@dataclass(frozen=True, slots=True)
class MemberChanged(Generic[R]):
    """A call of `on_member_changed`, as a value to iterate over."""

    name: str
    member: R | Status


@dataclass(frozen=True, slots=True)
class MemberAmbientError:
    """A call of `on_member_ambient_error`, as a value to iterate over."""

    name: str
    error: Status


@dataclass(frozen=True, slots=True)
class MemberGone:
    """A call of `on_member_gone`, as a value to iterate over."""

    name: str
    reason: Status


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """A call of `on_collection_status`, as a value to iterate over."""

    status: Status


class NewsReader(ABC, Generic[N]):
    """The news of a watch, to be read with `async for` in an `async with`.

    News that is replaced before it was read is dropped: a slow reader sees the newest state and costs no memory.
    """

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._arrived = asyncio.Event()
        self._closed = False

    def begin(self, watch: Watch) -> None:
        """Take over the watch that gives this reader its news; the reader ends it. The client calls this once."""
        self._watch = watch

    @abstractmethod
    def _next(self) -> N | None:
        """Take the oldest piece of news that was neither read nor replaced; None when there is none."""

    def close(self) -> None:
        """End the watch; iteration over its news ends."""
        self._closed = True
        self._arrived.set()
        if self._watch is not None:
            self._watch.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> N:
        while not self._closed:
            item = self._next()
            if item is not None:
                return item
            self._arrived.clear()
            await self._arrived.wait()
        raise StopAsyncIteration


class Following(NewsReader[Changed[R] | AmbientError]):
    """The news of one resource; at most one `Changed` and one `AmbientError` wait to be read."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: Changed[R] | None = None
        self._ambient: AmbientError | None = None

    # ResourceWatcher.

    def on_resource_changed(self, resource: R | Status) -> None:
        self._changed, self._ambient = Changed(resource), None
        self._arrived.set()

    def on_ambient_error(self, error: Status) -> None:
        self._ambient = AmbientError(error)
        self._arrived.set()

    def _next(self) -> Changed[R] | AmbientError | None:
        if self._changed is not None:
            changed, self._changed = self._changed, None
            return changed
        ambient, self._ambient = self._ambient, None
        return ambient


CollectionNews = MemberChanged[R] | MemberAmbientError | MemberGone | CollectionStatus


class FollowingCollection(NewsReader[CollectionNews[R]]):
    """The news of a collection. For each member at most two pieces wait to be read; of the collection as a whole, the
    last status.
    """

    def __init__(self) -> None:
        super().__init__()
        # By member, in the order in which they came up.
        self._members: dict[str, list[CollectionNews[R]]] = {}
        self._status: CollectionStatus | None = None

    # CollectionWatcher.

    def on_member_changed(self, name: str, member: R | Status) -> None:
        self._members[name] = [MemberChanged(name, member)]
        self._arrived.set()

    def on_member_ambient_error(self, name: str, error: Status) -> None:
        unread = [each for each in self._members.get(name, ()) if not isinstance(each, MemberAmbientError)]
        self._members[name] = [*unread, MemberAmbientError(name, error)]
        self._arrived.set()

    def on_member_gone(self, name: str, reason: Status) -> None:
        self._members[name] = [MemberGone(name, reason)]
        self._arrived.set()

    def on_collection_status(self, status: Status) -> None:
        self._status = CollectionStatus(status)
        self._arrived.set()

    def _next(self) -> CollectionNews[R] | None:
        for name, unread in self._members.items():
            item = unread.pop(0)
            if not unread:
                del self._members[name]
            return item
        status, self._status = self._status, None
        return status


def tell_resource(watcher: ResourceWatcher[Any], effect: events.News) -> None:
    """Call the method of a resource's watcher that fits this news."""
    match effect:
        case events.Ambient():
            watcher.on_ambient_error(effect.error)
        case events.Deliver():
            watcher.on_resource_changed(_value(effect.news))


def tell_collection(watcher: CollectionWatcher[Any], collection: str, effect: events.News) -> None:
    """Call the method of a collection's watcher that fits this news; `collection` is the collection's own name."""
    match effect:
        case events.Gone():
            watcher.on_member_gone(effect.name, effect.reason)
        case events.Ambient(name=name) if name == collection:
            watcher.on_collection_status(effect.error)
        case events.Deliver(name=name, news=news) if name == collection:
            watcher.on_collection_status(news if isinstance(news, Status) else OK)
        case events.Ambient():
            watcher.on_member_ambient_error(effect.name, effect.error)
        case events.Deliver():
            watcher.on_member_changed(effect.name, _value(effect.news))


def _value(news: Resource | Status) -> Any:
    return news.value if isinstance(news, Resource) else news
