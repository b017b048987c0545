"""The exception tree of the control plane, split by who must act.

    ControlPlaneError
    ├── OperatorError             the input must change          4xx
    │   ├── InputInvalid          400, 413, 422: findings say what and where
    │   ├── NotFound              404
    │   ├── Forbidden             403
    │   ├── Conflict              409: held, name taken, base moved
    │   ├── Gone                  410: not kept any more
    │   ├── PreconditionFailed    412: If-Match or If-None-Match does not hold
    │   └── Busy                  429: too many at once, or too often
    │       └── TooManyAttempts   a password was tried too often
    └── DependencyError           try again later                503

Findings are not exceptions: an exception carries all of them when nothing can go on.
"""

from typing import ClassVar

from xdscore.codes import CATALOGUE
from xdscore.findings import Finding


class ControlPlaneError(Exception):
    """Parley refused to do something, or could not. `code` is stable; `status` is the HTTP status; `detail` is one
    sentence for a person.
    """

    code: ClassVar[str]
    status: ClassVar[int]

    def __init__(self, detail: str, *, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.findings = findings

    @property
    def title(self) -> str:
        """The catalogue's words for the code, the same for every occurrence (RFC 9457 section 3.1.4)."""
        return CATALOGUE[self.code].title


class OperatorError(ControlPlaneError):
    """An error that the caller can mend."""


class InputInvalid(OperatorError):
    """The input was understood, but something in it is not valid; nothing was stored."""

    code = "XDS1000"
    status = 422


class InputUnreadable(OperatorError):
    """The body is not JSON or YAML."""

    code = "XDS1001"
    status = 400


class InputTooLarge(OperatorError):
    """The body or the list in it is over the limit."""

    code = "XDS1004"
    status = 413


class NotFound(OperatorError):
    """There is no such thing, or none that this caller may know of."""

    code = "XDS3004"
    status = 404


class Forbidden(OperatorError):
    """The caller is known and may not do this."""

    code = "XDS3003"
    status = 403


class Conflict(OperatorError):
    """The current state does not allow what was asked."""

    code = "XDS3009"
    status = 409


class Gone(OperatorError):
    """The thing existed and is not stored any more."""

    code = "XDS3010"
    status = 410


class PreconditionFailed(OperatorError):
    """The condition of If-Match or If-None-Match does not hold; `etag` is the current one, empty when there is
    nothing.
    """

    code = "XDS3012"
    status = 412

    def __init__(self, detail: str, *, etag: str) -> None:
        super().__init__(detail)
        self.etag = etag


class Busy(OperatorError):
    """As many callers as may do this do it already, or this one did it as often as it may; `retry_after_s` is the
    seconds after which to ask again.
    """

    code = "XDS3029"
    status = 429

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class TooManyAttempts(Busy):
    """A password was tried too often; `wait` says in words when it may be tried again."""

    def __init__(self, *, wait_s: int) -> None:
        minutes = wait_s // 60
        self.wait = f"{wait_s} seconds" if wait_s <= 60 else f"{minutes} minute{'s' if minutes != 1 else ''}"
        super().__init__(
            f"Too many attempts with a wrong password. Wait {self.wait}, then try again. Nothing was changed.",
            retry_after_s=wait_s,
        )


class DependencyError(ControlPlaneError):
    """Something Parley needs is down; the same call may succeed later."""

    code = "XDS9003"
    status = 503
