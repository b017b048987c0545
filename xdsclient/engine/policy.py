"""What the features of a server mean for errors and timers (A88), as plain numbers and choices."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsclient.engine.values import CacheState, ServerFeature, Status, StatusCode

# A88, "Changes to Resource Timer Behavior".
DOES_NOT_EXIST_TIMER_S = 15.0
TRANSIENT_TIMER_S = 30.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How a client treats the errors, removals and silence of one server (A88).

    reads_resource_errors: whether `resource_errors` of responses are read.
    drops_on_data_error, drops_on_deletion: whether a cached resource is dropped for a data error, for a deletion.
    timer_s: the seconds that the server may be silent about a name.
    timer_state, timer_error: the state and error of the name after that.
    """

    reads_resource_errors: bool
    drops_on_data_error: bool
    drops_on_deletion: bool
    timer_s: float
    timer_state: CacheState
    timer_error: Status


def policy_of(features: AbstractSet[ServerFeature], *, data_error_handling: bool) -> Policy:
    """The policy for a server with these features.

    `data_error_handling` is A88's guard, GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING. When it is off, neither
    `resource_errors` nor A88's two features are read, and a deletion drops the resource (A88, "Temporary environment
    variable protection") unless the server has A53's feature `ignore_resource_deletion`.
    """
    if not data_error_handling:
        keeps_deleted = ServerFeature.IGNORE_RESOURCE_DELETION in features
        return _policy(reads=False, drops=False, drops_deleted=not keeps_deleted, timer_is_transient=False)
    # A88, "Deprecating ignore_resource_deletion": that feature is accepted and means nothing.
    drops = ServerFeature.FAIL_ON_DATA_ERRORS in features
    transient = ServerFeature.RESOURCE_TIMER_IS_TRANSIENT_ERROR in features
    return _policy(reads=True, drops=drops, drops_deleted=drops, timer_is_transient=transient)


def _policy(*, reads: bool, drops: bool, drops_deleted: bool, timer_is_transient: bool) -> Policy:
    if timer_is_transient:
        timer_s, state, code = TRANSIENT_TIMER_S, CacheState.TIMEOUT, StatusCode.UNAVAILABLE
        text = f"the xDS server said nothing about it within {timer_s:.0f} s"
    else:
        timer_s, state, code = DOES_NOT_EXIST_TIMER_S, CacheState.DOES_NOT_EXIST, StatusCode.NOT_FOUND
        text = f"does not exist: the xDS server did not send it within {timer_s:.0f} s"
    return Policy(reads, drops, drops_deleted, timer_s, state, Status(code, text))
