"""A sign-in on its way: what a browser keeps while the identity provider asks who somebody is.

It is sealed, so that nobody reads or makes one, and the database holds nothing for somebody who only begins. What comes
back is believed in the browser that began alone, within ten minutes, and once.
"""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from controlplane.accounts.models import SpentState
from controlplane.catalog.sealing import SealError, key_ring

LASTS_S: Final = 600  # RFC 6749 section 4.1.2: a code lasts ten minutes at most
_MAX_NEXT_BYTES: Final = 1_000  # within a cookie, also where every byte is escaped
_MAX_CHARS: Final = 4_000  # what a browser keeps in one cookie
_ADDRESS: Final = b"oidc-attempt"
_RANDOM_BYTES: Final = 32  # RFC 7636 section 4.1: a verifier has 256 random bits


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign-in that a browser began. `state`: comes back with the answer. `nonce`: stands in the id token. `verifier`:
    proves that whoever shows the code began here. `leads_to`: the page to go to then. `began_at`: Unix time. `again`:
    somebody who is signed in proves once more who they are, and nobody is signed in by it.
    """

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    leads_to: str
    began_at: float
    again: bool = False


def attempt_begin(*, leads_to: str, again: bool = False) -> Attempt:
    """A new attempt to sign in or, with `again`, to prove once more who one is. `leads_to`: a page of Parley's own,
    which the caller has checked; a longer one than a cookie holds is left out.
    """
    state, nonce, verifier = (secrets.token_urlsafe(_RANDOM_BYTES) for _ in range(3))
    fits = len(leads_to.encode()) <= _MAX_NEXT_BYTES
    return Attempt(state, nonce, verifier, leads_to if fits else "", timezone.now().timestamp(), again)


def attempt_seal(attempt: Attempt) -> str:
    """The attempt as the value of a cookie."""
    parts = [attempt.state, attempt.nonce, attempt.verifier, attempt.leads_to, attempt.began_at, attempt.again]
    return urlsafe_b64encode(key_ring().seal(json.dumps(parts, ensure_ascii=False).encode(), _ADDRESS)).decode()


def attempt_open(kept: str) -> Attempt | None:
    """What the value of a browser's cookie says; None unless Parley sealed it in the last ten minutes."""
    if not kept or len(kept) > _MAX_CHARS:
        return None
    try:
        opened = key_ring().open(urlsafe_b64decode(kept.encode("ascii")), _ADDRESS)
    except (SealError, ValueError):
        return None
    attempt = Attempt(*json.loads(opened))
    age_s = timezone.now().timestamp() - attempt.began_at
    return attempt if age_s <= LASTS_S else None


def attempt_spend(attempt: Attempt, state: str) -> bool:
    """Whether `state`, which came back, is that of the attempt, and comes back for the first time. A second call
    returns False.
    """
    if not constant_time_compare(attempt.state.encode(), state.encode("utf-8", "replace")):
        return False
    now = timezone.now()
    SpentState.objects.filter(at__lte=now - timedelta(seconds=LASTS_S)).delete()
    try:
        with transaction.atomic():
            SpentState.objects.create(digest=hashlib.sha256(state.encode()).hexdigest(), at=now)
    except IntegrityError:
        return False
    return True
