"""Why streams end, as the client and the operator read it (protocol.md J2)."""

from dataclasses import dataclass

import grpc

from adsserver.ports import MOVED_CAUSE
from xdscore import stream_ends
from xdscore.codes import shown


@dataclass(frozen=True, slots=True)
class End:
    """Why a stream ends: the status that the client receives, and the cause as an operator reads it."""

    code: grpc.StatusCode
    text: str

    @property
    def cause(self) -> str:
        """The reason as it is recorded with the stream."""
        return self.text or stream_ends.CLIENT_ENDED


# Closing and cancelling look alike here: which of the two is noticed first is chance.
CLIENT_ENDED = End(grpc.StatusCode.OK, "")
DRAINING = End(grpc.StatusCode.UNAVAILABLE, "This server is shutting down; reconnect.")
MOVED = End(grpc.StatusCode.UNAVAILABLE, MOVED_CAUSE)
TOO_OLD = End(
    grpc.StatusCode.UNAVAILABLE, "Ended on purpose: this stream reached its greatest age (connection_age_s); reconnect."
)
NOTHING_LOADED = End(grpc.StatusCode.UNAVAILABLE, "This server has nothing to serve yet; reconnect.")
TOO_SLOW = End(grpc.StatusCode.UNAVAILABLE, "The client took too long to read a response.")
NOT_POLLED = End(grpc.StatusCode.UNAVAILABLE, "The client has not polled for too long.")
BEGAN_ANEW = End(grpc.StatusCode.UNAVAILABLE, "The client was started anew, or asked another server meanwhile.")
BROKEN = End(grpc.StatusCode.INTERNAL, "This server failed to handle the stream; reconnect.")


def not_in(environment: str, identity: str) -> End:
    """The end of a stream whose token is good for one environment only, while its client belongs to another one. The
    text holds what the token says and nothing else, so it does not tell whether that environment exists nor which one
    the client belongs to (threat 2).
    """
    return End(
        grpc.StatusCode.PERMISSION_DENIED,
        f"The environment: this token is good in '{environment}' only, and selectors do not lead its subject "
        f"'{_brief(identity)}' there; ask whoever runs this server.",
    )


def not_as(node_id: str, identity: str) -> End:
    """The end of a stream whose identity may not use this node id in its environment. The text holds what the caller
    said and proved and nothing else: not which environment that is, nor which node ids are allowed there (threat 2).
    """
    return End(
        grpc.StatusCode.PERMISSION_DENIED,
        f"The node id: '{_brief(identity)}' may not use '{_brief(node_id)}' in the environment it belongs to (its "
        "node_ids say which it may); use another, or ask whoever runs this server.",
    )


def _brief(text: str) -> str:
    # Two of them and the sentence stay below 300 characters (texts.md section 8).
    return shown(text, 60)


def no_request(limit_ms: int) -> End:
    """The end of a stream whose first request did not come within `limit_ms`. Its status is UNAVAILABLE, which every
    client takes for "try again later"; some would take DEADLINE_EXCEEDED for their own timeout and give up.
    """
    return End(
        grpc.StatusCode.UNAVAILABLE,
        f"No request came within {limit_ms} ms (first_request_ms); reconnect when there is one to send.",
    )


def lost(reason: str) -> End:
    """The end of a stream whose caller's credential ended; `reason` is sent to the client."""
    return End(grpc.StatusCode.UNAUTHENTICATED, reason)


class StreamEndError(Exception):
    """Raised while requests are read, to end the stream; `end` says with which status and text."""

    def __init__(self, end: End) -> None:
        super().__init__(end.text)
        self.end = end
