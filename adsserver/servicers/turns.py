"""What many share and one at a time may use: each caller has its turn, however many wait in the name of another."""

import asyncio
from collections import deque


class Turns:
    """A lock for the event loop that several callers take by turns. `key` names the caller for whom one waits: with
    many waiting under one key, another key still comes next.
    """

    def __init__(self) -> None:
        self._taken = False
        # By key, who waits; the key whose turn is next comes first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, key: str) -> None:
        """Wait until the lock is free and take it; give it back with `give`."""
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(key, turn)
            else:
                self.give()  # it came just now, too late
            raise

    def give(self) -> None:
        """Give the lock back: the next key gets it, and comes last from now on if more are waiting under it."""
        while self._waiting:
            key = next(iter(self._waiting))
            line = self._waiting.pop(key)
            turn = line.popleft()
            if line:
                self._waiting[key] = line
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False

    def _forget(self, key: str, turn: "asyncio.Future[None]") -> None:
        line = self._waiting.get(key, deque())
        if turn in line:
            line.remove(turn)
        if not line:
            self._waiting.pop(key, None)
