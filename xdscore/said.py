"""What a data plane says of itself, name by name: the words that whoever reads one and whoever compares share. Pure.

The states are those of CSDS (envoy.admin.v3.ClientResourceStatus), and three that only Envoy's admin page tells apart.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NO_HOSTS: Final = "none"
"""The digest of an assignment without hosts. Envoy shows one also for a cluster whose endpoints never came."""


class SaidState(StrEnum):
    """The state of one resource, as a data plane says it of itself."""

    ACKED = "ACKED"
    NACKED = "NACKED"  # it refused the newest content; what it holds besides is older
    RECEIVED_ERROR = "RECEIVED_ERROR"
    DOES_NOT_EXIST = "DOES_NOT_EXIST"
    TIMEOUT = "TIMEOUT"
    REQUESTED = "REQUESTED"
    UNKNOWN = "UNKNOWN"
    WARMING = "WARMING"  # taken, and not in use before what it needs is there
    DRAINING = "DRAINING"  # on its way out
    STATIC = "STATIC"  # of its own bootstrap, not of any control plane


class SaidSource(StrEnum):
    """The interface through which a data plane says what it has."""

    ENVOY_ADMIN = "envoy-admin"
    CSDS = "csds"


@dataclass(frozen=True, slots=True)
class Said:
    """One resource, as a data plane says it of itself. A name may occur more than once: in use and warming, or in
    several channels.

    held: whether it has content under this name.
    version: the version that Parley gives the content shown; empty where none can be compared: it is redacted, holds
      secrets, or was put together anew.
    version_info: the version that the data plane reports, which is that of a response in SotW and of the resource in
      delta.
    endpoints: the digest of the hosts (`schema.endpoints_digest`), for content that was put together anew.
    error: in the data plane's words.
    """

    type: str
    name: str
    state: SaidState
    held: bool = False
    version: str = ""
    version_info: str = ""
    endpoints: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """Everything that one data plane says it has. `types`: the types of which its source shows every name, so that a
    name that is not in `names` is not there.
    """

    source: SaidSource
    node_id: str
    types: frozenset[str]
    names: tuple[Said, ...]
