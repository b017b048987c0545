"""State of the world: a request lists every name, and in LDS, CDS and SRDS what is not sent is deleted."""

from collections.abc import Iterable

from xdsclient.engine.collection import Collection
from xdsclient.engine.entry import Entry
from xdsclient.engine.events import Response, SotwRequest
from xdsclient.engine.taken import Taken
from xdsclient.engine.type_stream import TypeStream
from xdsclient.engine.values import CacheState, Resource
from xdscore.resource_types import ResourceType


class SotwType(TypeStream):
    """The requests and responses of one resource type in the SotW variant."""

    __slots__ = ("_dropped", "_leave_out", "_version", "_version_server")

    def __init__(self, kind: ResourceType) -> None:
        # The last version accepted and whose it is; it outlives the stream, the others do not.
        self._version = ""
        self._version_server = -1
        super().__init__(kind)

    def _reset(self) -> None:
        super()._reset()
        # Names that requests with the current nonce left out: if another response is on its way already, the server
        # ignored those requests as stale (protocol.md B3).
        self._dropped: set[str] = set()
        # Names to leave out once, so that the server sees them added.
        self._leave_out: frozenset[str] = frozenset()

    def closed(self) -> None:
        """Note that the stream ended. A new one brings every member of a collection again and says nothing of members
        that are gone, so members are treated as unheard; not in full states, where leaving a name out removes it
        (protocol.md B9, D1).
        """
        super().closed()
        for collection in self.collections.values() if not self.kind.full_state else ():
            collection.doubt()

    def compose(self, server: int, *, prove: bool) -> SotwRequest:  # noqa: ARG002 - B9: a first request is always answered
        """Make the next SotW request and treat it as sent. `server`: the index of the server it goes to. `prove`
        changes nothing: a server always answers the first request of a stream.
        """
        answer = self._next_answer(self._nonce)
        version = self._version if server == self._version_server else ""
        if answer.nonce != self._nonce:
            # A newer response is here already: the server reads this for its ACK or NACK alone.
            return SotwRequest(self.kind, tuple(self._sent), answer.nonce, version, answer.nack)
        self._forget_unwatched()
        names = tuple(name for name in self._wanted() if name not in self._leave_out)
        self._dropped |= self._sent.difference(names)
        self._sent = set(names)
        self._asked = self._asked or bool(names)
        self._dirty = bool(self._leave_out)
        self._leave_out = frozenset()
        return SotwRequest(self.kind, names, answer.nonce, version, answer.nack)

    def _absent(self, response: Response, taken: Taken) -> list[Entry]:  # noqa: ARG002
        """The entries that the response deletes by leaving them out, which it can in full states (protocol.md D1, A88:
        "LDS or CDS resource deletion"); none in other types.

        Only a cached resource can be deleted: a name that was just subscribed to may be missing because the server had
        not read that request yet, and its timer decides. An entry in error stays in error (TP3: remembered until a new
        error or the resource comes, "this includes LDS and CDS").
        """
        if not self.kind.full_state or taken.blind:
            return []
        return [entry for name, entry in self.entries.items() if name not in taken.seen and self._can_be_deleted(entry)]

    def _can_be_deleted(self, entry: Entry) -> bool:
        known = isinstance(entry.resource, Resource) or self._is_member(entry)
        return known and entry.state is not CacheState.RECEIVED_ERROR and not isinstance(entry, Collection)

    def _accepted(self, response: Response, taken: Taken) -> None:
        if not taken.problems:
            # A46: the wire protocol is unchanged, so a NACK carries the last version accepted as a whole.
            self._version, self._version_server = response.version, taken.server
        self._leave_out |= frozenset(self._lost(self._dropped))
        self._dropped.clear()

    def _lost(self, dropped: Iterable[str]) -> Iterable[str]:
        """The names among `dropped` that the client subscribes to again, and of which the server may never have seen
        that it had left them out.
        """
        return (name for name in dropped if self._waits_for(name))
