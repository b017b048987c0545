"""What a session has proved, and when: acts that could take the installation over ask for it again (sudo mode)."""

from typing import Final

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone

_PROVED_AT: Final = "proved_at"


def proof_note(session: SessionBase, *, at_s: float | None = None) -> None:
    """Note in a session that whoever has it proved just now, or at the Unix time `at_s` of another clock, who they
    are.
    """
    now_s = timezone.now().timestamp()
    session[_PROVED_AT] = now_s if at_s is None else min(at_s, now_s)


def proof_holds(session: SessionBase) -> bool:
    """Whether whoever has this session proved who they are in the last `sudo_s`."""
    at_s = session.get(_PROVED_AT)
    return isinstance(at_s, float) and 0 <= timezone.now().timestamp() - at_s < settings.PARLEY.limits.sudo_s
