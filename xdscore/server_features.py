"""What a bootstrap may say of Parley to gRPC: the server features that implementations read, spelled as they read them
(gRFCs A30, A81, A88; clients.md section 1), and the sentence by which somebody decides whether to ask for one.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class BootstrapFeature(StrEnum):
    """The server features that a bootstrap for Parley can list, in the order in which bootstraps list them."""

    XDS_V3 = "xds_v3"
    RESOURCE_TIMER_IS_TRANSIENT_ERROR = "resource_timer_is_transient_error"
    FAIL_ON_DATA_ERRORS = "fail_on_data_errors"
    TRUSTED_XDS_SERVER = "trusted_xds_server"


# A88: not having heard of a resource is no proof that it does not exist, as Parley would have said so (TP3).
DEFAULT_FEATURES: Final = frozenset({BootstrapFeature.XDS_V3, BootstrapFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR})

# Of the others, when to ask for each. A88, "xDS Error Handling", leaves its choice to how well a server alerts people:
# Parley does, and a client that drops what it had makes an outage of a refused change.
CRITERIA: Final[Mapping[BootstrapFeature, str]] = MappingProxyType(
    {
        BootstrapFeature.FAIL_ON_DATA_ERRORS: (
            "A client with it treats an update that it refuses, a deletion and a denial as data errors and drops what "
            "it had: only for a control plane that cannot be depended on to alert people (gRFC A88)."
        ),
        BootstrapFeature.TRUSTED_XDS_SERVER: (
            "A client with it lets this control plane rewrite the authority of its calls (gRFC A81) and choose the "
            "services of side channels and their credentials (gRFC A102, a draft): only where whoever may change "
            "resources here may also redirect and read its traffic."
        ),
    }
)
