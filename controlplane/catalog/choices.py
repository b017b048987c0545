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
    """What a change is about: resources, settings of the environment, a quarantine, or access."""

    RESOURCES = "resources"
    POLICY = "policy"
    QUARANTINE = "quarantine"
    ACCESS = "access"


class QuarantinePolicy(Enum):
    """What becomes of a revision that clients refuse: it is never put into quarantine, when an operator says so, or
    automatically.
    """

    OFF = "off"
    SUGGEST = "suggest"
    AUTOMATIC = "automatic"


class QuarantineCause(Enum):
    """Whether an operator or Parley itself put a revision into quarantine."""

    OPERATOR = "operator"
    AUTOMATIC = "automatic"
