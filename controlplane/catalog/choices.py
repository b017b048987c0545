"""The closed sets of the catalogue, as its tables and services spell them."""

from enum import Enum


class BlobKind(Enum):
    """The kind of bytes that a blob holds. A secret's bytes are encrypted; all others are stored as they are."""

    RESOURCE = "resource"
    SECRET = "secret"  # noqa: S105 - a kind of blob, not a password
    CHUNK = "chunk"
    ROOT = "root"
    ACCESS = "access"
    ROLLOUT = "rollout"


class ChangeKind(Enum):
    """What a change is about: resources, settings of the environment, a quarantine, access, what a rollout took back
    (`rollback`; a rollback to an earlier snapshot writes resources), or labels and owners of resources alone.
    """

    RESOURCES = "resources"
    POLICY = "policy"
    QUARANTINE = "quarantine"
    ACCESS = "access"
    ROLLBACK = "rollback"
    LABELS = "labels"


class QuarantinePolicy(Enum):
    """What becomes of a revision that clients refuse: it is never put into quarantine, when an operator says so, or
    automatically.
    """

    OFF = "off"
    SUGGEST = "suggest"
    AUTOMATIC = "automatic"


class QuarantineCause(Enum):
    """Who put a revision into quarantine: an operator, Parley itself because clients refuse it, or a rollout that
    failed. The last is served on neither side, and what the stable side has stays (rollouts.md R7).
    """

    OPERATOR = "operator"
    AUTOMATIC = "automatic"
    ROLLOUT = "rollout"


class StagedState(Enum):
    """How far a name has come whose newest revision is not what the stable side has: it waits for the next rollout, the
    open one has it, or a rollout took it back.
    """

    WAITING = "waiting"
    CANDIDATE = "candidate"
    STOPPED = "stopped"


class StagedChangeState(Enum):
    """How far a change has come of which something was staged. `promoted`: nothing of it is staged any more."""

    WAITING = "waiting"
    CANDIDATE = "candidate"
    PROMOTED = "promoted"
    STOPPED = "stopped"
