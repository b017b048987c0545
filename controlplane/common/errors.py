"""The exception tree of the control plane, split by who must act.

    ControlPlaneError
    ├── OperatorError             the input must change          4xx
    │   ├── InputInvalid          400, 413, 422: findings say what and where
    │   ├── NotFound              404
    │   ├── Forbidden             403
    │   ├── Conflict              409: held, name taken, base moved
    │   │   └── Occupied          something else goes on that ends by itself
    │   ├── Gone                  410: not kept any more
    │   ├── PreconditionFailed    412: If-Match or If-None-Match does not hold
    │   └── Busy                  429: too many at once, or too often
    │       └── TooManyAttempts   a password or a code was tried too often
    └── DependencyError           try again later                503

Findings are not exceptions: an exception carries all of them when nothing can go on.
"""

from typing import ClassVar

from xdscore.codes import CATALOGUE
from xdscore.findings import Finding


class ControlPlaneError(Exception):
    """Parley refused to do something, or could not.

    `code`: a stable code for programs, such as XDS1021.
    `status`: the HTTP status.
    `detail`: one sentence for a person.
    """

    code: ClassVar[str]
    status: ClassVar[int]

    def __init__(self, detail: str, *, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.findings = findings

    @property
    def title(self) -> str:
        """What the code stands for, in words; the same for every error with this code (RFC 9457 section 3.1.4)."""
        return CATALOGUE[self.code].title


class OperatorError(ControlPlaneError):
    """An error that the caller can correct."""


class InputInvalid(OperatorError):
    """The input was understood, but something in it is not valid; nothing was stored."""

    code = "XDS1000"
    status = 422


class InputUnreadable(OperatorError):
    """The body is not JSON or YAML."""

    code = "XDS1001"
    status = 400


class InputTooLarge(OperatorError):
    """The request's body, or a list in it, is larger than allowed."""

    code = "XDS1004"
    status = 413


class NotFound(OperatorError):
    """The thing that was asked for does not exist, or the caller may not know that it does."""

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


class Occupied(Conflict):
    """Something else goes on that does not allow it and ends by itself; the caller may ask again after `retry_after_s`
    seconds.
    """

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class Gone(OperatorError):
    """The thing existed and is not stored any more."""

    code = "XDS3010"
    status = 410


class PreconditionFailed(OperatorError):
    """The condition of If-Match or If-None-Match does not hold. `etag`: the current ETag; empty when the thing does not
    exist, and where the write was of several things.
    """

    code = "XDS3012"
    status = 412

    def __init__(self, detail: str, *, etag: str, findings: tuple[Finding, ...] = ()) -> None:
        super().__init__(detail, findings=findings)
        self.etag = etag


class Busy(OperatorError):
    """Too many callers do this at the moment, or this one did it too often; the caller may ask again after
    `retry_after_s` seconds.
    """

    code = "XDS3029"
    status = 429

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class TooManyAttempts(Busy):
    """A password or a code was tried too often; `wait` says in words when it may be tried again."""

    def __init__(self, *, wait_s: int) -> None:
        minutes = wait_s // 60
        self.wait = f"{wait_s} seconds" if wait_s <= 60 else f"{minutes} minute{'s' if minutes != 1 else ''}"
        super().__init__(
            f"Too many attempts with a wrong password or code. Wait {self.wait}, then try again. Nothing was changed.",
            retry_after_s=wait_s,
        )


class DependencyError(ControlPlaneError):
    """Something Parley needs is down; the same call may succeed later."""

    code = "XDS9003"
    status = 503
