"""Client groups: which clients an access rule speaks of (decisions A10)."""

from dataclasses import dataclass
from enum import Enum

from xdscore.selectors import ClientFacts, Selector


class Trust(Enum):
    """What membership rests on: what the transport proved, or also what clients say of themselves."""

    VERIFIED = "verified"
    DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """Clients that any of the matchers fits. A group that is not verified counts for less: see `Audience.verified`."""

    key: str
    matchers: tuple[Selector, ...]
    trust: Trust = Trust.DECLARED

    def has(self, client: ClientFacts) -> bool:
        """Whether the client belongs to it; a verified group has no client of which nothing was verified."""
        if self.trust is Trust.VERIFIED and not client.verified:
            return False
        return any(matcher.fits(client) for matcher in self.matchers)

    def may_have(self, client: ClientFacts) -> bool:
        """Whether it does not have this client as far as is known, but would with metadata that is not known of it."""
        matchers = [matcher for matcher in self.matchers if matcher.metadata]
        if not matchers or self.has(client) or (self.trust is Trust.VERIFIED and not client.verified):
            return False
        return any(matcher.but_for_metadata(client) for matcher in matchers)
