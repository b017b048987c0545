"""What a watcher is, and watching by `async for` instead of by being called."""

import asyncio
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from xdsclient.engine.values import Status

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class ResourceWatcher(Protocol[R_contra]):
    """Told of one resource: in order, on the client's event loop, never from within a call of its own (A88)."""

    def on_resource_changed(self, resource: R_contra | Status) -> None:
        """A new version; or a Status: there is none, and an earlier one must not be used any more."""

    def on_ambient_error(self, error: Status) -> None:
        """Something is wrong, and the resource stays in use; a status that is OK ends the last such error."""


class Watch(Protocol):
    """The right to end a watch."""

    def cancel(self) -> None:
        """Hear no more; takes effect at once, and a second time does nothing."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[R]):
    """`on_resource_changed` as a value."""

    resource: R | Status


@dataclass(frozen=True, slots=True)
class AmbientError:
    """`on_ambient_error` as a value."""

    error: Status


class Following(Generic[R]):
    """The news of one resource, to be read with `async for` in an `async with`.

    Whoever reads slowly sees the newest state and not every step to it: at most one `Changed` and one `AmbientError`
    wait to be read, so a slow reader costs no memory.
    """

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._changed: Changed[R] | None = None
        self._ambient: AmbientError | None = None
        self._news = asyncio.Event()
        self._closed = False

    def begin(self, watch: Watch) -> None:
        """The watch that this follows; the client calls it once."""
        self._watch = watch

    # ResourceWatcher.

    def on_resource_changed(self, resource: R | Status) -> None:
        self._changed, self._ambient = Changed(resource), None
        self._news.set()

    def on_ambient_error(self, error: Status) -> None:
        self._ambient = AmbientError(error)
        self._news.set()

    # Reading.

    def close(self) -> None:
        """End the watch and whatever waits for its news."""
        self._closed = True
        self._news.set()
        if self._watch is not None:
            self._watch.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Changed[R] | AmbientError:
        while not self._closed:
            if self._changed is not None:
                changed, self._changed = self._changed, None
                return changed
            if self._ambient is not None:
                ambient, self._ambient = self._ambient, None
                return ambient
            self._news.clear()
            await self._news.wait()
        raise StopAsyncIteration
