"""What can be done with many resources at once, in words."""

from dataclasses import dataclass
from typing import Final

from controlplane.accounts.principal import Role
from controlplane.bulk.values import QUARANTINES, ROLE_OF, BulkAct


@dataclass(frozen=True, slots=True)
class ActWords:
    """An act in words. `does`: what it is, as a heading and on its button; `follows`: what becomes of each resource;
    `done`: what clients learn of it.
    """

    act: BulkAct
    does: str
    follows: str
    done: str
    icon: str
    dangerous: bool = False

    @property
    def needs_reason(self) -> bool:
        """Whether whoever asks for the act has to say why."""
        return self.act in QUARANTINES

    @property
    def needs_operator(self) -> bool:
        """Whether the act needs an operator of the whole environment."""
        return ROLE_OF[self.act] is Role.OPERATOR


ACTS: Final = (
    ActWords(
        BulkAct.LABELS,
        "Set labels",
        "gets these labels",
        "Labels reach no client, and make no revision and no snapshot.",
        "notes",
    ),
    ActWords(
        BulkAct.OWNER,
        "Set owner",
        "gets this owner",
        "An owner reaches no client. Whose role is limited to an owner may write what belongs to that owner.",
        "user",
    ),
    ActWords(
        BulkAct.RESTORE,
        "Restore the revision before",
        "becomes what it was before its newest revision",
        "Clients are sent the earlier content, as a new revision.",
        "arrow-back-up",
    ),
    ActWords(
        BulkAct.QUARANTINE,
        "Quarantine",
        "is put into quarantine at its newest revision",
        "Clients are served the last revision before it that any of them acknowledged, or nothing where there is none.",
        "ban",
        dangerous=True,
    ),
    ActWords(
        BulkAct.RELEASE,
        "Release from quarantine",
        "is served at its newest revision again",
        "Clients are sent again what was in quarantine, those that refused it, too.",
        "lock-open",
    ),
    ActWords(
        BulkAct.DELETE,
        "Delete",
        "is deleted",
        "Clients that ask for them will hear NOT_FOUND. Their history stays, and any revision can be restored.",
        "trash",
        dangerous=True,
    ),
)

LABELS: Final = ACTS[0]
"""The act that sets labels, also those of clients."""
