"""Client groups: which clients an access rule speaks of (decisions A10)."""

from dataclasses import dataclass
from enum import Enum

from xdscore.environment_choice import ClientFacts, Selector


class Trust(Enum):
    """By what a client can belong to a group: only by what the transport verified, or also by what it declares about
    itself.
    """

    VERIFIED = "verified"
    DECLARED = "declared"


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """A group of clients: those that at least one of the matchers fits. A DECLARED group may count for less, because
    clients could make themselves members (`Audience.verified`).
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

    def as_json(self) -> dict[str, object]:
        """The group as a JSON object; equal groups give equal objects."""
        matchers = [matcher.as_json() for matcher in self.matchers]
        return {"key": self.key, "trust": self.trust.value, "matchers": matchers}

    @classmethod
    def from_json(cls, tree: object) -> "ClientGroup":
        """The group that `as_json` made this JSON object of. Raises ValueError for anything else."""
        match tree:
            case {"key": str() as key, "trust": trust, "matchers": list() as matchers, **others} if not others:
                return cls(key, tuple(Selector.from_json(matcher) for matcher in matchers), Trust(trust))
        raise ValueError("not a client group")

    def may_have(self, client: ClientFacts) -> bool:
        """Whether the client might belong to this group if its metadata were known: everything else fits, but what is
        known of it does not suffice.
        """
        matchers = [matcher for matcher in self.matchers if matcher.metadata]
        if not matchers or self.has(client) or (self.trust is Trust.VERIFIED and not client.verified):
            return False
        return any(matcher.but_for_metadata(client) for matcher in matchers)
