"""What only HTTP can say no to. The rest of the tree is in `controlplane.common.errors`.

OperatorError
├── Unauthenticated        401: nobody is known to be asking
├── MethodRefused          405: the path exists, not for this verb
├── MediaRefused           415: the body is written in something else than JSON or YAML
├── ToldOnce               409: it was done under this key, and answered with a secret that is told once
└── ConditionMissing       428: the environment wants to know which revision a write was made from
ControlPlaneError
└── InternalError          500: a fault of Parley's own
"""

from controlplane.common.errors import ControlPlaneError, OperatorError


class Unauthenticated(OperatorError):
    """The request has no credential, or one that is not valid."""

    code = "XDS3001"
    status = 401


class MethodRefused(OperatorError):
    """The path does not take the request's HTTP method; it takes those in `allowed`."""

    code = "XDS3005"
    status = 405

    def __init__(self, detail: str, *, allowed: tuple[str, ...]) -> None:
        super().__init__(detail)
        self.allowed = allowed


class MediaRefused(OperatorError):
    """The request's body has a media type or an encoding that this path does not read."""

    code = "XDS3015"
    status = 415


class ToldOnce(OperatorError):
    """The request was carried out before under its Idempotency-Key. Its answer told a secret, so it is not told again.
    `location`: the path of what was made then.
    """

    code = "XDS3032"
    status = 409

    def __init__(self, location: str) -> None:
        super().__init__(
            f"This was done under the same Idempotency-Key before, and made {location}. Its secret was told then, and "
            "is told only once. If you do not have it, end that one and make another under a new key. Nothing was "
            "changed."
        )
        self.location = location


class AnswerLost(OperatorError):
    """The request was carried out before under its Idempotency-Key, and its answer was not kept.
    `location`: the path of the change that it made; empty where it made none.
    """

    code = "XDS3033"
    status = 409

    def __init__(self, location: str) -> None:
        where = f"{location} shows the change that it made" if location else "The audit log says what it did"
        super().__init__(
            f"This was done under the same Idempotency-Key before, and its answer was lost. {where}. "
            "Nothing was done again."
        )
        self.location = location


class ConditionMissing(OperatorError):
    """The request writes one resource without If-Match or If-None-Match, which the environment demands."""

    code = "XDS3028"
    status = 428


class InternalError(ControlPlaneError):
    """The request failed through a fault of Parley. The log has the reason, under the request's id."""

    code = "XDS9000"
    status = 500
