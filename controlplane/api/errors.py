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
    """No credential came with the request, or none that counts."""

    code = "XDS3001"
    status = 401


class MethodRefused(OperatorError):
    """The path does not take this verb; `allowed` are the verbs it takes."""

    code = "XDS3005"
    status = 405

    def __init__(self, detail: str, *, allowed: tuple[str, ...]) -> None:
        super().__init__(detail)
        self.allowed = allowed


class MediaRefused(OperatorError):
    """The body is in a media type or encoding that this request does not read."""

    code = "XDS3015"
    status = 415


class ToldOnce(OperatorError):
    """The request was carried out under its Idempotency-Key before, and its answer told a secret, which is told once.
    `location` is the path of what was made then.
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


class ConditionMissing(OperatorError):
    """A write of one resource does not say which revision it was made from, where the environment demands that."""

    code = "XDS3028"
    status = 428


class InternalError(ControlPlaneError):
    """Parley failed to answer through its own fault. The log has the reason, under the request's id."""

    code = "XDS9000"
    status = 500
