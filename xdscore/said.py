"""What a data plane says of itself, name by name: the words that whoever reads one and whoever compares share. Pure.

The states are those of CSDS (envoy.admin.v3.ClientResourceStatus), and three that only Envoy's admin page tells apart.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NO_HOSTS: Final = "none"
"""The digest of an assignment without hosts. Envoy shows one also for a cluster whose endpoints never came."""


class SaidState(StrEnum):
    """The state of one resource by a data plane's own account."""

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
    """The interface by which a data plane gave its own account."""

    ENVOY_ADMIN = "envoy-admin"
    CSDS = "csds"


@dataclass(frozen=True, slots=True)
class Said:
    """One resource by a data plane's own account. A name may occur more than once: in use and warming, or in several
    channels.

    `held`: the data plane has content under this name. `version` is the version that Parley gives the content shown,
    empty where none is shown that can be compared: it is redacted, holds secrets, or was put together anew.
    `version_info` is the version that the data plane itself reports: that of a response in SotW, of the resource in
    delta. `endpoints` is the digest of its hosts (`schema.endpoints_digest`), where the content itself is put together
    anew. `error` is in the data plane's words.
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
    """The whole account that one data plane gave of itself. `types` are the types of which the source shows every name:
    the data plane has no other names of these.
    """

    source: SaidSource
    node_id: str
    types: frozenset[str]
    names: tuple[Said, ...]
