"""Incremental xDS: a request says what changed, and a response names what is gone."""

from collections.abc import Mapping

from xdsclient.engine.collection import WILDCARD, Collection
from xdsclient.engine.entry import Entry
from xdsclient.engine.events import DeltaRequest, Response
from xdsclient.engine.taken import Taken
from xdsclient.engine.type_stream import TypeStream
from xdsclient.engine.values import ABSENT, CacheState, Resource

_NO_VERSION = ""


class DeltaType(TypeStream):
    """The requests and responses of one resource type in the delta variant."""

    __slots__ = ()

    def compose(self, server: int, *, prove: bool) -> DeltaRequest:
        """Make the next delta request and treat it as sent. Names may change in the request that answers a response
        (protocol.md B5).

        `server`: the index of the server it goes to. `prove`: leave one version out, so that a server without news
        still has a resource to send.
        """
        # B5: a nonce would make it an answer.
        answer = self._next_answer("")
        versions = {} if self._asked else self._held(server)
        self._forget_unwatched()
        wanted = tuple(self._wanted())
        subscribe = tuple(name for name in wanted if name not in self._sent)
        unsubscribe = tuple(name for name in self._sent if name not in wanted)
        if prove and subscribe and self._says_all(subscribe, versions):
            # A57 calls a stream failed when it ends without a response. A server with no news has none to give, so it
            # is left to send one resource again.
            del versions[next(iter(versions))]
        self._sent = set(wanted)
        self._asked = True
        self._dirty = False
        return DeltaRequest(self.kind, subscribe, unsubscribe, versions, answer.nonce, answer.nack)

    def _held(self, server: int) -> dict[str, str]:
        """The versions by name that the first request of a stream to this server lists, so that the server need not
        send those resources again. Resources in error are not listed: the server would stay silent about them, and the
        error would outlast its cause (protocol.md F11a).

        A member of a collection is always listed, because the server must say if it is gone (E5): without a usable
        version, it is listed under one that no resource has. No member of a collection is listed before the server
        answered for that collection: a server with no news of its members may say nothing of the collection either
        (C6).
        """
        versions = {}
        unanswered = [each for each in self.collections.values() if not isinstance(each.resource, Resource)]
        for name, entry in self.entries.items():
            in_use = entry.resource if entry.state is CacheState.ACKED else ABSENT
            if not entry.watched or isinstance(entry, Collection) or any(each.contains(name) for each in unanswered):
                continue
            if isinstance(in_use, Resource) and in_use.server == server:
                versions[name] = in_use.version
            elif not entry.asked_for:
                versions[name] = _NO_VERSION
        return versions

    def _says_all(self, subscribe: tuple[str, ...], versions: Mapping[str, str]) -> bool:
        """Whether the server may leave this subscription unanswered if it has no news, because the client lists a
        version of everything. It must answer for a wildcard (E6), and send what the client lists no usable version of.
        """
        held = (
            any(map(self.collections[name].contains, versions)) if name in self.collections else name in versions
            for name in subscribe
        )
        return WILDCARD not in subscribe and _NO_VERSION not in versions.values() and all(held)

    def _absent(self, response: Response, taken: Taken) -> list[Entry]:
        """The entries of the names that the response removes. A removed name does not exist, whether it was ever there
        or not, so delta needs no timer for it (TP3, Abstract).
        """
        absent: dict[str, Entry] = {}
        for name in response.removed:
            entry = self.entries.get(name)
            if name in taken.touched or name in absent:
                # E3: a server must not say both.
                taken.problems.append(
                    f"removed_resources: {name}: INVALID_ARGUMENT: sent and removed, or removed twice"
                )
            elif entry is not None:
                absent[name] = entry
        return list(absent.values())

    def _accepted(self, response: Response, taken: Taken) -> None:
        """Remember a response for later requests. Nothing to do here: in delta, versions belong to resources and not to
        responses.
        """
