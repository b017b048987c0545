"""Client groups: which clients an access rule speaks of (decisions A10)."""

from dataclasses import dataclass
from enum import Enum

from xdscore.environment_choice import ClientFacts, Selector


class Trust(Enum):
    """What membership in a client group rests on: only what the transport verified, or also what clients declare about
    themselves.
    """

    VERIFIED = "verified"
    DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """The clients that at least one of the matchers fits. A group that is not verified counts for less: see
    `Audience.verified`.
    """

    key: str
    matchers: tuple[Selector, ...]
    trust: Trust = Trust.DECLARED

    def has(self, client: ClientFacts) -> bool:
        """Whether the client belongs to this group. A client of which nothing was verified belongs to no verified
        group.
        """
        if self.trust is Trust.VERIFIED and not client.verified:
            return False
        return any(matcher.fits(client) for matcher in self.matchers)

    def may_have(self, client: ClientFacts) -> bool:
        """Whether the client does not belong to this group by what is known of it, but might if its metadata were
        known.
        """
        matchers = [matcher for matcher in self.matchers if matcher.metadata]
        if not matchers or self.has(client) or (self.trust is Trust.VERIFIED and not client.verified):
            return False
        return any(matcher.but_for_metadata(client) for matcher in matchers)
