"""In which browsers somebody is signed in, and how that is ended.

Sessions are Django's; beside each stands when and where it was last seen, as often as is worth a write. A session that
is ended is deleted, and its browser is nobody's with the next request. What the identity provider vouched for in it
counts no more either.
"""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth import SESSION_KEY as USER_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from controlplane.accounts.browser_words import browser_words
from controlplane.accounts.models import ProviderSignIn, SignedInBrowser
from controlplane.common.errors import NotFound
from controlplane.common.principal_ids import Actor
from controlplane.journal.services import audit_record

PROVIDER_KEY: Final = "provider_sign_in"
"""The key in a session of the sign-in by the identity provider that began it."""

SEEN_EVERY_S: Final = 300
_MAX_REMEMBERED: Final = 10_000
_MAX_SHOWN: Final = 50
_MAX_ID: Final = 2**63


@dataclass(frozen=True, slots=True)
class BrowserOf:
    """A browser in which somebody is signed in. `software`: what kind it is, in words. `this`: it is the one that
    asks.
    """

    id: int
    software: str
    address: str
    began_at: datetime
    seen_at: datetime
    this: bool


class _Seen:
    """When this process last wrote down which session, so that it does so now and then only. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: OrderedDict[str, float] = OrderedDict()

    def is_noted(self, session_key: str) -> bool:
        """Whether the session was written down lately."""
        before = self._at.get(session_key)
        return before is not None and time.monotonic() - before < SEEN_EVERY_S

    def is_due(self, session_key: str) -> bool:
        """Whether the session is to be written down now; it counts as written from then on."""
        with self._lock:
            if self.is_noted(session_key):
                return False
            self._at[session_key] = time.monotonic()
            self._at.move_to_end(session_key)
            if len(self._at) > _MAX_REMEMBERED:
                self._at.popitem(last=False)
            return True


_seen = _Seen()


def browser_is_noted(session_key: str) -> bool:
    """Whether `browser_seen` has nothing to note of this session now. No query, and no wait."""
    return _seen.is_noted(session_key)


def browser_seen(*, user_id: int, session_key: str, address: str, user_agent: str) -> None:
    """Note that somebody's browser asked for something: at most once in `SEEN_EVERY_S`, by this process. Costs no query
    in between.
    """
    if not _seen.is_due(session_key):
        return
    now = timezone.now()
    facts = {"seen_at": now, "address": address[:45], "software": browser_words(user_agent)}
    if SignedInBrowser.objects.filter(session_key=session_key, user_id=user_id).update(**facts):
        return
    row = SignedInBrowser(user_id=user_id, session_key=session_key, began_at=now, **facts)
    # Another process may have noted it at this moment, too.
    SignedInBrowser.objects.bulk_create([row], ignore_conflicts=True)
    oldest = now - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    SignedInBrowser.objects.filter(seen_at__lte=oldest).exclude(
        session_key__in=Session.objects.values("session_key")
    ).delete()


def browsers_of(*, user: User, this: str = "") -> tuple[BrowserOf, ...]:
    """The browsers in which a person is signed in now, the one last seen first. `this`: the key of the session that
    asks. Two queries.
    """
    rows = SignedInBrowser.objects.filter(user=user).order_by("-seen_at")[:_MAX_SHOWN]
    good = _sessions(user, [row.session_key for row in rows])
    return tuple(
        BrowserOf(row.pk, row.software, row.address, row.began_at, row.seen_at, row.session_key == this)
        for row in rows
        if row.session_key in good
    )


@transaction.atomic
def browser_end(*, user: User, browser_id: int, actor: Actor, reason: str = "", request_id: str = "") -> None:
    """Sign a person out of one browser. Raises NotFound where it is none of theirs."""
    rows = SignedInBrowser.objects.filter(user=user, pk=browser_id) if browser_id < _MAX_ID else None
    row = rows.first() if rows is not None else None
    if row is None:
        raise NotFound("That browser is signed in no more. Nothing was changed.")
    session = Session.objects.filter(session_key=row.session_key).first()
    if session is not None:
        _end(session, user, actor, reason, request_id)
    row.delete()


@transaction.atomic
def browsers_end(*, user: User, keep: str = "", actor: Actor, reason: str = "", request_id: str = "") -> int:
    """Sign a person out of every browser but the one whose session has the key `keep`; returns out of how many. Reads
    all sessions that last: one that asked for nothing since browsers are noted stands in no list.
    """
    lasting = Session.objects.filter(expire_date__gt=timezone.now()).exclude(session_key=keep)
    own = [session for session in lasting.iterator() if session.get_decoded().get(USER_KEY) == str(user.pk)]
    good = _sessions(user, [session.session_key for session in own])
    for session in own:
        _end(session, user, actor, reason, request_id)
    SignedInBrowser.objects.filter(user=user).exclude(session_key=keep).delete()
    return len(good)


def _sessions(user: User, keys: list[str]) -> dict[str, Session]:
    """The sessions with these keys in which this person is signed in now: none from before their password changed."""
    hashed = user.get_session_auth_hash()
    found = {}
    for session in Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now()):
        data = session.get_decoded()
        if data.get(USER_KEY) == str(user.pk) and constant_time_compare(data.get(HASH_SESSION_KEY, ""), hashed):
            found[session.session_key] = session
    return found


def _end(session: Session, user: User, actor: Actor, reason: str, request_id: str) -> None:
    seen = SignedInBrowser.objects.filter(session_key=session.session_key).first()
    if key := session.get_decoded().get(PROVIDER_KEY):
        ProviderSignIn.objects.filter(key=key).delete()
    session.delete()
    audit_record(
        actor=actor,
        verb="session.ended",
        subject=user.get_username(),
        request_id=request_id,
        detail={
            "reason": reason,
            "browser": seen.software if seen is not None else "",
            "address": seen.address if seen is not None else "",
        },
    )
