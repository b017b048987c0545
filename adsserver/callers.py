"""Whether callers still are who they proved to be: a credential that ends takes its streams with it (reliability S2).

On the event loop. Expiry is judged by the wall clock at every sweep, not by a timer, so that a clock that is set right
counts; a revoked token ends its streams as soon as the directory says so, an authority that was taken out of the file
at the next sweep.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial

from adsserver.authorities import Authorities
from adsserver.identity import WITHDRAWN, Caller
from adsserver.ports import ClientToken

# Well within the minute of reliability S2; looking at 5,000 streams takes about a millisecond.
SWEEP_PERIOD_S = 10.0

EXPIRED = "The client's credential has expired."
REVOKED = "The client's token was revoked."

Lost = Callable[[str], None]
"""Called once, with the reason."""


class Callers:
    """The tokens in force, and whoever has open streams. Implements identity.Tokens."""

    def __init__(self, now: Callable[[], float] = time.time, authorities: Authorities | None = None) -> None:
        self._now = now
        self._authorities = authorities
        self._tokens: Mapping[str, ClientToken] | None = None
        self._holds: dict[object, tuple[Caller, Lost]] = {}

    @property
    def loaded(self) -> bool:
        """Whether the tokens are known yet."""
        return self._tokens is not None

    @property
    def empty(self) -> bool:
        """Whether nobody is watched."""
        return not self._holds

    def find(self, digest: str) -> ClientToken | None:
        """The token with this hash; None when there is none, or it was revoked."""
        return (self._tokens or {}).get(digest)

    def replace(self, tokens: Mapping[str, ClientToken]) -> None:
        """These are the tokens from now on."""
        if tokens is not self._tokens:
            self._tokens = tokens
            self.sweep()

    def admits(self, chain: bytes) -> bool:
        """Whether the authority of these certificates still is one of ours."""
        return self._authorities is None or self._authorities.admits(chain)

    def hold(self, caller: Caller, lost: Lost) -> Callable[[], object]:
        """Call `lost` once the caller's credential ends; the function returned stops watching."""
        hold = object()
        if caller.identity:
            self._holds[hold] = (caller, lost)
        return partial(self._holds.pop, hold, None)

    def sweep(self) -> None:
        """Look at every caller now, by the authorities of this moment."""
        if self._authorities is not None:
            self._authorities.refresh()
        now = self._now()
        for hold, (caller, lost) in tuple(self._holds.items()):
            reason = self._ended(caller, now)
            if reason:
                self._holds.pop(hold, None)
                lost(reason)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_PERIOD_S)
            self.sweep()

    def _ended(self, caller: Caller, now: float) -> str:
        if caller.expires_at <= now:
            return EXPIRED
        if caller.chain and not self.admits(caller.chain):
            return WITHDRAWN
        return REVOKED if caller.token and self.find(caller.token) is None else ""
