"""What people do about a rollout. A second call of the same changes nothing and returns False; what is not possible now
is a Conflict with the reason.
"""

from controlplane.accounts.principal import Principal


def rollout_advance(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Go on with the next step, or promote after the last, whatever the gates wait for. Names that the judge blames go
    back first. Raises NotFound, and Conflict for a rollout that is paused, on hold or over.
    """
    raise NotImplementedError


def rollout_pause(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Stop a rollout for now: nothing of it goes on or back by itself. Raises NotFound, and Conflict where it is
    over.
    """
    raise NotImplementedError


def rollout_resume(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Let a paused rollout go on. Raises NotFound, and Conflict where it is over."""
    raise NotImplementedError


def rollout_approve(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Say that the present step may go on. Raises NotFound; Conflict where the step asks for nobody's word or the
    rollout is over; and Forbidden where the environment asks for four eyes and the actor wrote one of the changes.
    """
    raise NotImplementedError


def rollout_reject(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Say that the present step must not go on: everything is taken back. Raises NotFound, and Conflict where the step
    asks for nobody's word or the rollout is over.
    """
    raise NotImplementedError


def rollout_abort(*, public_id: str, reason: str, actor: Principal, request_id: str = "") -> bool:
    """Take everything back that is not promoted, as one change. Raises NotFound, and Conflict where the rollout ended
    otherwise.
    """
    raise NotImplementedError
