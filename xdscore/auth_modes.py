"""The ways in which a data plane proves who it is: the values of PARLEY_ADS_AUTH, and what follows from each.

This table and the function that verifies (`VERIFIERS` in `adsserver.identity.identification`) are all that is
particular to one way; configuration, bootstraps, pages and policies read a column here and compare no modes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthFacts:
    """What follows from one way of proving who a client is.

    `verified`: the identity is proved; without, the node that a client says it is is believed. `certificates`: clients
    show certificates of their own, so that ADS needs TLS, authorities and trust domains, and bootstraps name the files.
    `tokens`: clients show tokens that Parley issued, in the metadata where an operator's token is, too. `off_loopback`:
    what would happen if ADS listened beyond loopback, as a half of a sentence; empty: nothing bad. `check`: what to
    look at where a client is not let in, a sentence for the setup guide.
    """

    verified: bool
    certificates: bool
    tokens: bool
    off_loopback: str
    check: str


class AuthMode(StrEnum):
    """How a data plane proves who it is (interfaces.md section 2, PARLEY_ADS_AUTH)."""

    NONE = "none"
    MTLS = "mtls"
    TOKEN = "token"  # noqa: S105 - the name of a mode

    @property
    def facts(self) -> AuthFacts:
        """What follows from this mode."""
        return FACTS[self]

    @property
    def where(self) -> str:
        """The word, and in parentheses where ADS may listen with it, unless it may anywhere."""
        if self.facts.off_loopback:
            return f"{self.value} (loopback only)"
        # decisions U6: a bearer token on a plain connection is a token given away.
        return f"{self.value} (off loopback over TLS)" if self.facts.tokens else self.value


FACTS: Mapping[AuthMode, AuthFacts] = {
    AuthMode.NONE: AuthFacts(
        verified=False,
        certificates=False,
        tokens=False,
        off_loopback="anybody could read every resource",
        check="Nothing is verified: the node id is believed.",
    ),
    AuthMode.MTLS: AuthFacts(
        verified=True,
        certificates=True,
        tokens=False,
        off_loopback="",
        check="Its certificate must carry a SPIFFE ID of a trust domain that is configured.",
    ),
    AuthMode.TOKEN: AuthFacts(
        verified=True,
        certificates=False,
        tokens=True,
        off_loopback="",
        check="Its token must be of this environment, and neither expired nor revoked.",
    ),
}
"""The table: a row for each mode."""
