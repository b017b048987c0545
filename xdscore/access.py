"""Who may read what, compiled: the table that `decision` asks before anything else.

Access is decided on the name alone, before existence, so that a refusal says nothing about what exists (reliability
threat 6).
"""

from dataclasses import dataclass
from enum import Enum

from xdscore.resource_types import ResourceType


class Effect(Enum):
    """What a rule, or an environment's default, says about a name."""

    ALLOW = "allow"
    DENY = "deny"
    HIDE = "hide"


@dataclass(frozen=True, slots=True)
class Audience:
    """The client groups a stream belongs to, as a bit mask. Streams of one audience share every view and its bytes."""

    environment: str
    mask: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The effect for one name, the number of the rule that said so (0: the environment's default) and the rule's words
    for clients.
    """

    effect: Effect
    rule: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class AccessTable:
    """The compiled access rules of one environment: the first rule that matches wins, `default` closes the list."""

    default: Effect

    def verdict(self, audience: Audience, kind: ResourceType, name: str) -> Verdict:  # noqa: ARG002 - rules look at all
        """What this audience may do with this name, whether or not the name exists."""
        return Verdict(self.default)

    @property
    def allows_everything(self) -> bool:
        """Whether no name of any type can be refused to anybody; lets a view share the snapshot's own mapping."""
        return self.default is Effect.ALLOW
