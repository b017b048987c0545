"""The closed sets of the catalogue, as its tables and services spell them."""

from enum import Enum


class BlobKind(Enum):
    """What a blob's bytes are. A secret's are sealed; the others are stored as they are sent or read."""

    RESOURCE = "resource"
    SECRET = "secret"  # noqa: S105 - a kind of blob, not a password
    CHUNK = "chunk"
    ROOT = "root"
    ACCESS = "access"


class ChangeKind(Enum):
    """What a change is about."""

    RESOURCES = "resources"
    POLICY = "policy"
    QUARANTINE = "quarantine"
    ACCESS = "access"


class QuarantinePolicy(Enum):
    """Whether a rejected revision is taken out of service: never, after an operator's word, or by itself."""

    OFF = "off"
    SUGGEST = "suggest"
    AUTOMATIC = "automatic"


class QuarantineCause(Enum):
    """Who took a revision out of service."""

    OPERATOR = "operator"
    AUTOMATIC = "automatic"
