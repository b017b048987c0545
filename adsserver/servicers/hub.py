"""What streams are served from: the newest publication of every environment, carried to its streams in short slices.

Runs on the event loop. The loader's thread hands a new directory over by `call_soon_threadsafe`; nothing here waits for
it.
"""

import asyncio
from collections import deque
from typing import Protocol

from adsserver.engine.publication import Publication
from adsserver.ports import Directory
from xdscore.environment_choice import ClientFacts, EnvironmentChoice, choose_environment

# Streams that are woken before the loop is given back. A wildcard whose bytes are shared takes some 0.05 ms to write,
# twenty endpoints by name 1 ms.
_FIRST_AT_ONCE, _MOST_AT_ONCE = 8, 64
# What a client says waits so long at most for streams of its environment that are still to be told of something new.
_ANSWERS_WAIT_S = 0.1


class Subscriber(Protocol):
    """A stream, with what the hub needs of it."""

    @property
    def client(self) -> ClientFacts:
        """The facts about the client by which its environment is chosen."""
        ...

    def offer(self, publication: Publication) -> None:
        """Take note that something newer is published in the stream's environment."""
        ...

    def move(self) -> None:
        """End the stream soon, because its client belongs to another environment now."""
        ...


class Hub:
    """The environments of a process, what is published in each, and the streams of each. `slice_s`: the seconds for
    which the event loop may tell streams of something new before it lets others run.

    `published` is set once a verified snapshot can be served (reliability P9).
    """

    def __init__(self, slice_s: float) -> None:
        self._slice_s = slice_s
        self._environments: tuple[EnvironmentChoice, ...] = ()
        self._publications: dict[str, Publication] = {}
        self._streams: dict[str, set[Subscriber]] = {}
        self._stale: dict[str, None] = {}
        self._reselect = False
        # The environment whose streams are being told of something new; and of those of them that were read from
        # meanwhile, until when each waits at the latest.
        self._telling = ""
        self._answers: deque[tuple[float, asyncio.Future[None]]] = deque()
        self._changed = asyncio.Event()
        self._loaded = asyncio.Event()
        self.published = asyncio.Event()

    @property
    def has_snapshot(self) -> bool:
        """Whether a verified snapshot of any environment can be served (reliability P9)."""
        return bool(self._publications)

    @property
    def empty(self) -> bool:
        """Whether no stream is open."""
        return not self._streams

    @property
    def is_loaded(self) -> bool:
        """Whether environments and snapshots were loaded; before that no environment can be chosen for a stream."""
        return self._loaded.is_set()

    async def wait_loaded(self, longest_s: float) -> bool:
        """Wait until environments and snapshots were loaded for the first time, `longest_s` seconds at most; returns
        whether they were.
        """
        try:
            async with asyncio.timeout(longest_s):
                await self._loaded.wait()
        except TimeoutError:
            return False
        return True

    def choose(self, client: ClientFacts) -> str:
        """The key of the environment that this client belongs to."""
        return choose_environment(client, self._environments)

    def takes(self, client: ClientFacts, environment: str) -> bool:
        """Whether the environment accepts this client's node id for its identity (reliability threat 2)."""
        return next((each.takes_node(client) for each in self._environments if each.key == environment), True)

    def publication(self, environment: str) -> Publication | None:
        """The publication (a snapshot and what follows from it) that the environment's streams are served from; None
        when no snapshot of it could be verified yet.
        """
        return self._publications.get(environment)

    def join(self, environment: str, stream: Subscriber) -> None:
        """Offer the stream every publication of this environment from now on."""
        self._streams.setdefault(environment, set()).add(stream)

    def leave(self, environment: str, stream: Subscriber) -> None:
        """Stop offering publications to the stream, because it ended."""
        members = self._streams.get(environment)
        if members is not None:
            members.discard(stream)
            if not members:
                del self._streams[environment]

    def answer_turn(self, environment: str) -> "asyncio.Future[None] | None":
        """None when what a client of this environment said may be taken in now; else a future that is done when it may:
        who is still to be told of something new there comes before those who answer, for a tenth of a second at most.
        To take in an answer holds up the others as long as to tell one more client.
        """
        if self._telling != environment:
            return None
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._answers.append((loop.time() + _ANSWERS_WAIT_S, turn))
        return turn

    def replace(self, directory: Directory) -> int:
        """Serve from this directory from now on; returns the number of environments with something new.

        An environment that the directory lists without a snapshot keeps its last one (reliability P8); one that it does
        not list is dropped.
        """
        listed = {environment.key for environment in directory.environments}
        for key in self._publications.keys() - listed - directory.snapshots.keys():
            del self._publications[key]
        changed = 0
        for key, snapshot in directory.snapshots.items():
            current = self._publications.get(key)
            if current is None or current.snapshot is not snapshot:
                self._publications[key] = Publication(snapshot, current)
                self._stale[key] = None
                changed += 1
        if directory.environments != self._environments:
            self._environments = directory.environments
            self._reselect = True
        self._loaded.set()
        self._changed.set()
        if self._publications:
            self.published.set()
        return changed

    async def run(self) -> None:
        """Tell streams of new publications, and of environments that changed, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._reselect:
                self._reselect = False
                await self._move_streams()
            while self._stale:
                key = next(iter(self._stale))
                del self._stale[key]
                await self._fan_out(key)

    async def _fan_out(self, key: str) -> None:
        pace = Pace(self._slice_s)
        self._telling = key
        try:
            for stream in tuple(self._streams.get(key, ())):
                # Looked up each time: a newer publication that arrives between two slices reaches the rest at once.
                publication = self._publications.get(key)
                if publication is None:
                    break
                stream.offer(publication)
                await pace.breathe()
                await self._hear(pace)
        finally:
            self._telling = ""
        await self._hear(pace)

    async def _hear(self, pace: "Pace") -> None:
        """Let those who answered go on: who waited long enough, and everybody once nobody is to be told of anything."""
        while self._answers and (self._answers[0][0] <= pace.now or not (self._telling or self._stale)):
            _, turn = self._answers.popleft()
            if not turn.done():
                turn.set_result(None)
                await pace.breathe()

    async def _move_streams(self) -> None:
        pace = Pace(self._slice_s)
        for key, members in tuple(self._streams.items()):
            for stream in tuple(members):
                if self.choose(stream.client) != key or not self.takes(stream.client, key):
                    stream.move()
                await pace.breathe()


class Pace:
    """Lets the event loop run other work whenever `slice_s` seconds were used, so that new requests are answered in
    between.

    Waking a stream costs little, and what the stream then writes costs much; so only as many streams are woken at a
    time as can also write within `slice_s`. That number is learnt from how long the last ones took (reliability F30).
    """

    def __init__(self, slice_s: float) -> None:
        self._time = asyncio.get_running_loop().time
        self._slice_s = slice_s
        self.now = self._time()
        """The time of the event loop, as of the last breath."""
        self._until = self.now + slice_s
        self._at_once = self._left = _FIRST_AT_ONCE

    async def breathe(self) -> None:
        """Count one stream that was woken or looked at; let the event loop run other work when enough were, or their
        time is used up.
        """
        self._left -= 1
        now = self.now = self._time()
        if self._left > 0 and now < self._until:
            return
        # Streams that were woken stand before this in the loop's queue.
        await asyncio.sleep(0)
        after = self.now = self._time()
        if after - now > self._slice_s:
            self._at_once = max(1, self._at_once // 2)
        elif after - now < self._slice_s / 2:
            self._at_once = min(_MOST_AT_ONCE, 2 * self._at_once)
        self._left, self._until = self._at_once, after + self._slice_s
