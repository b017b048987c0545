"""Incremental xDS: a request says what changed, and a response names what is gone."""

from xdsclient.engine.events import DeltaRequest, Response
from xdsclient.engine.type_stream import Taken, TypeStream
from xdsclient.engine.values import CacheState, Resource


class DeltaType(TypeStream):
    """One type over delta."""

    __slots__ = ()

    def compose(self, server: int, *, prove: bool) -> DeltaRequest:
        """See the base. Names may change in the request that answers a response (protocol.md B5)."""
        # B5: a nonce would make it an answer.
        answer = self._next_answer("")
        versions = {} if self._asked else self._held(server)
        self._forget_unwatched()
        subscribe = tuple(name for name in self.entries if name not in self._sent)
        unsubscribe = tuple(name for name in self._sent if name not in self.entries)
        if prove and subscribe and len(versions) == len(subscribe):
            # A57 calls a stream failed when it ends without a response. A server with no news has none to give, so it
            # is left to send one resource again.
            del versions[subscribe[0]]
        self._sent = set(self.entries)
        self._asked = True
        self._dirty = False
        return DeltaRequest(self.kind, subscribe, unsubscribe, versions, answer.nonce, answer.nack)

    def _held(self, server: int) -> dict[str, str]:
        """What a new stream need not bring again. Not what is in error, or the error would outlive its end: the server
        stays silent about a version the client says it has (protocol.md F11a).
        """
        return {
            name: entry.resource.version
            for name, entry in self.entries.items()
            if entry.watched
            and entry.state is CacheState.ACKED
            and isinstance(entry.resource, Resource)
            and entry.resource.server == server
        }

    def _take_absence(self, response: Response, taken: Taken) -> None:
        """A removed name does not exist, whether it was ever there or not: delta needs no timer (TP3, Abstract)."""
        for name in response.removed:
            entry = self.entries.get(name)
            if name in taken.touched:
                # E3: a server must not say both.
                taken.problems.append(
                    f"removed_resources: {name}: INVALID_ARGUMENT: sent and removed, or removed twice"
                )
            elif entry is not None:
                entry.deleted(response.version, taken.policy, taken.now)
                taken.touched[name] = entry

    def _accepted(self, response: Response, taken: Taken) -> None:
        """Nothing: versions belong to resources."""
