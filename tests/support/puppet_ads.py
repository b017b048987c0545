"""An ADS server that serves what the test told it last and does nothing of its own accord: it remembers no NACK, sends
nothing twice and heals nobody. What a client does then is the client's own doing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256

from google.protobuf.message import Message

from tests.support.scripted_ads import Request, ScriptedAds, ScriptedStream, scripted_ads
from xdscore.resource_types import ResourceType, by_url

_ANSWER_S = 5.0
_WILDCARD = "*"


@dataclass(eq=False)
class _Held:
    """A stream, with the names that it asks for by type."""

    stream: ScriptedStream
    names: dict[ResourceType, set[str]] = field(default_factory=dict)

    def asks_for(self, kind: ResourceType, name: str) -> bool:
        return not self.names.get(kind, set()).isdisjoint({name, _WILDCARD})

    def heard(self, kind: ResourceType, request: Request) -> set[str]:
        """Take over the subscription of a request; the names that are new in it."""
        before = self.names.get(kind)
        if self.stream.delta:
            added = set(request.resource_names_subscribe)
            now = (before or set()) - set(request.resource_names_unsubscribe) | added
        else:
            now = set(request.resource_names)
            added = now - (before or set())
        if before is None and not now and kind.wildcard:
            now = added = {_WILDCARD}
        elif before == {_WILDCARD} and not now:
            now = before
        self.names[kind] = now
        return added


class PuppetAds:
    """An ADS server whose resources a test sets with `serve` and changes with `tell`. One per test; nodes are not told
    apart.
    """

    def __init__(self, ads: ScriptedAds) -> None:
        self.port = int(ads.address.rpartition(":")[2])
        self._served: dict[ResourceType, dict[str, Message]] = {}
        self._streams: list[_Held] = []
        self._answers: dict[tuple[int, ResourceType, str], asyncio.Future[Request]] = {}

    def serve(self, kind: ResourceType, *messages: Message) -> None:
        """Serve these resources to whoever asks from now on."""
        found = self._served.setdefault(kind, {})
        found.update({str(getattr(each, kind.name_field)): each for each in messages})

    async def tell(self, kind: ResourceType, message: Message) -> dict[str, str]:
        """Send a resource to every stream that asks for it, beside its neighbours where a response is the full state.
        Returns the answer of each node: the text of its NACK, empty for an ACK. Streams of one node must agree.
        """
        self.serve(kind, message)
        name = str(getattr(message, kind.name_field))
        asking = [held for held in self._streams if held.asks_for(kind, name)]
        answers = [self._send(held, kind, {name}) for held in asking]
        said: dict[str, str] = {}
        for held, answer in zip(asking, answers, strict=True):
            request = await asyncio.wait_for(answer, _ANSWER_S)
            text = request.error_detail.message if request.HasField("error_detail") else ""
            assert said.setdefault(held.stream.node.id, text) == text
        return said

    def streams(self, node: str) -> list[ScriptedStream]:
        """Every stream that this node opened so far."""
        return [held.stream for held in self._streams if held.stream.node.id == node]

    async def attend(self, stream: ScriptedStream) -> None:
        """Answer the requests of a stream until it is over."""
        held = _Held(stream)
        self._streams.append(held)
        while True:
            request = await stream.unread.get()
            kind = by_url[request.type_url]
            answer = self._answers.get((id(stream), kind, request.response_nonce))
            if answer is not None and not answer.done():
                answer.set_result(request)
            if added := held.heard(kind, request):
                self._send(held, kind, added)

    def _send(self, held: _Held, kind: ResourceType, names: set[str]) -> "asyncio.Future[Request]":
        all_of_it = kind.full_state and not held.stream.delta
        messages = [
            message
            for name, message in self._served.get(kind, {}).items()
            if held.asks_for(kind, name) and (all_of_it or not names.isdisjoint({name, _WILDCARD}))
        ]
        # The version of a content is its own: what is sent again comes with the version that it came with first.
        content = b"".join(message.SerializeToString(deterministic=True) for message in messages)
        nonce = held.stream.send(kind, *messages, version=sha256(content).hexdigest()[:12])
        answer = asyncio.get_running_loop().create_future()
        self._answers[id(held.stream), kind, nonce] = answer
        return answer


class _EveryStream(ScriptedAds):
    """A server on which the streams of all nodes wait in one queue."""

    def key_of(self, request: Request) -> str:  # noqa: ARG002 - the base looks at it
        return ""


@asynccontextmanager
async def puppet_ads() -> AsyncIterator[PuppetAds]:
    """Run a server on loopback until the block ends."""
    async with scripted_ads(serve=_EveryStream()) as ads:
        puppet = PuppetAds(ads)
        attending: list[asyncio.Task[None]] = []

        async def welcome() -> None:
            while True:
                with suppress(TimeoutError):
                    stream = await ads.stream("")
                    attending.append(asyncio.create_task(puppet.attend(stream)))

        attending.append(asyncio.create_task(welcome()))
        try:
            yield puppet
        finally:
            for task in attending:
                task.cancel()
            await asyncio.wait(attending)
