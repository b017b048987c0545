"""Which resources Envoy may be shown, and why not the others. Pure, and by the schema alone: whoever only says whether
an Envoy will be asked needs no generated classes.
"""

from typing import Final

from google.protobuf.any_pb2 import Any as AnyProto

from xdscore.resource_types import CLUSTER, LISTENER, ROUTE
from xdscore.schema.codes import LOCAL_FILE, LUA, MODULE, VARIABLE
from xdscore.schema.dangers import DangerSearch
from xdscore.schema.sensitive import holds_secrets
from xdscore.schema.traversal import everything_in
from xdscore.schema.walk import unpack

SHOWN: Final = frozenset({CLUSTER.word, LISTENER.word, ROUTE.word})
"""The words of the types that Envoy is shown. The others it judges only with what surrounds them, or not at all in this
mode.
"""

# Envoy reads a file, and secrets are never written to one in the clear.
SEALED: Final = "it holds a secret"
# Envoy runs and opens these while it validates (dependencies.md 3), on the machine of the worker.
_NEVER_SHOWN: Final = {
    LUA.code: "it brings Lua code",
    MODULE.code: "it brings a module of code",
    LOCAL_FILE.code: "it names a file",
    VARIABLE.code: "it reads an environment variable",
}


def why_not_shown(any_bytes: bytes) -> str:
    """Why Envoy is never shown a resource of one of the types SHOWN, as the end of a sentence; empty where it may be.
    `any_bytes`: its Any.
    """
    if holds_secrets(any_bytes):
        return SEALED
    known = unpack(AnyProto.FromString(any_bytes))
    if known is None:
        return "it cannot be read"
    if known.DESCRIPTOR.full_name == LISTENER.message and known.HasField("api_listener"):
        return "it is a listener for gRPC clients"
    search = DangerSearch()
    for path, each in everything_in(known):
        for _, finding in search.look(each, path):
            if finding.code in _NEVER_SHOWN:
                return _NEVER_SHOWN[finding.code]
    return ""
