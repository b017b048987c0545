"""Whether callers still are who they proved to be: a credential that ends takes its streams with it (reliability S2).

On the event loop. Expiry is judged by the wall clock at every look, not by a timer, so that a clock that is set right
counts; a revoked token ends its streams as soon as the directory says so, an authority that was taken out of the file
at the next look.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial

import structlog

from adsserver.identity.authorities import Authorities, Chain
from adsserver.identity.identification import WITHDRAWN, Caller
from adsserver.ports import ClientToken

log: structlog.stdlib.BoundLogger = structlog.get_logger("adsserver.callers")  # users filter lines by this name

# Well within the minute of reliability S2; looking at 5,000 streams takes about a millisecond.
SWEEP_PERIOD_S = 10.0

EXPIRED = "The client's credential has expired."
REVOKED = "The client's token was revoked."

Lost = Callable[[str], None]
"""Called once, with the reason."""


class Callers:
    """The client tokens in force, and the callers that have open streams, each of which is told when its credential
    ends. Implements identity.Tokens.
    """

    def __init__(self, now: Callable[[], float] = time.time, authorities: Authorities | None = None) -> None:
        self._now = now
        self._authorities = authorities
        self._tokens: Mapping[str, ClientToken] | None = None
        self._holds: dict[object, tuple[Caller, Lost]] = {}

    @property
    def loaded(self) -> bool:
        """Whether the tokens were loaded from the database or disk; before that no token is known."""
        return self._tokens is not None

    @property
    def empty(self) -> bool:
        """Whether no caller with a verified identity has an open stream."""
        return not self._holds

    def find(self, digest: str) -> ClientToken | None:
        """The token with this hash; None when there is none, or it was revoked."""
        return (self._tokens or {}).get(digest)

    def replace(self, tokens: Mapping[str, ClientToken]) -> None:
        """Use these tokens from now on, and end callers whose token is not among them."""
        if tokens is not self._tokens:
            self._tokens = tokens
            self.sweep()

    async def admits(self, chain: Chain) -> bool:
        """Whether one of the configured certificate authorities still stands behind these certificates."""
        return self._authorities is None or await self._authorities.admits(chain)

    def hold(self, caller: Caller, lost: Lost) -> Callable[[], object]:
        """Call `lost` once the caller's credential ends. Returns a function that stops watching it, for when the stream
        ends.
        """
        hold = object()
        if caller.identity:
            self._holds[hold] = (caller, lost)
        return partial(self._holds.pop, hold, None)

    def sweep(self, withdrawn: Collection[bytes] = ()) -> None:
        """Tell every caller whose credential has ended by now. `withdrawn`: digests of certificate chains that no
        configured authority stands behind any more.
        """
        now = self._now()
        for hold, (caller, lost) in tuple(self._holds.items()):
            reason = self._ended(caller, now, withdrawn)
            if reason:
                self._holds.pop(hold, None)
                lost(reason)

    async def look(self) -> None:
        """Read the certificate authorities again, and tell every caller whose credential has ended. Where their file
        changed, each chain is verified once, in a thread, so that new streams are not kept waiting for all of them.
        """
        withdrawn = set()
        if self._authorities is not None:
            await self._authorities.refresh()
            chains = {caller.chain.digest: caller.chain for caller, _ in self._holds.values() if caller.chain}
            withdrawn = {digest for digest, chain in chains.items() if not await self._authorities.admits(chain)}
        self.sweep(withdrawn)

    async def run(self) -> None:
        """Call `look` again and again, until cancelled. When one call fails, the next is made all the same."""
        while True:
            await asyncio.sleep(SWEEP_PERIOD_S)
            try:
                await self.look()
            except Exception:
                log.exception("callers.failed")
                self.sweep()

    def close(self) -> None:
        """Stop verifying certificates, because the server stopped."""
        if self._authorities is not None:
            self._authorities.close()

    def _ended(self, caller: Caller, now: float, withdrawn: Collection[bytes]) -> str:
        if caller.expires_at <= now:
            return EXPIRED
        if caller.chain is not None and caller.chain.digest in withdrawn:
            return WITHDRAWN
        return REVOKED if caller.token and self.find(caller.token) is None else ""
