"""`Idempotency-Key`: the same POST under the same key is carried out once and answered twice alike.

A key belongs to a principal, by its id. Answers are kept sealed; one that told a secret is not kept at all, so that it
can be told once only: of that one, all that is known later is that it was given. The same holds of a request that was
carried out by a process that died before it answered.
"""

from hashlib import blake2b
from http import HTTPStatus
from typing import Final

from django.http import HttpResponse
from rest_framework.request import Request

from controlplane.api.bodies import body_of
from controlplane.api.errors import AnswerLost, ToldOnce
from controlplane.api.paths import path_to
from controlplane.catalog.sealing import SealError, key_ring
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.common.principal_ids import PrincipalId
from controlplane.journal.answers import Claim, Kept, Lost, answer_claim, answer_forget, answer_keep
from xdscore.snapshot import content_hash

HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "Idempotency-Replayed"
_MAX_CHARS: Final = 255
_KEPT_HEADERS: Final = ("Content-Type", "Location", "ETag")


def claim(
    request: Request, principal: PrincipalId, *, told_once: bool, within: str = ""
) -> Claim | HttpResponse | None:
    """Reserve the request's Idempotency-Key for its answer. Returns the earlier answer where the key has one, and None
    where the request has no key. Called once it is known that the caller may do this.

    `told_once`: the answer tells a secret. `within`: the limits of the caller's rights, empty for none: under others it
    is another request. Raises ToldOnce where such an answer was given already, AnswerLost,
    InputInvalid, Conflict, and what reading the body raises.
    """
    key = request.headers.get(HEADER)
    if key is None or request.method != "POST":
        return None
    if not key or len(key) > _MAX_CHARS or not key.isascii() or not key.isprintable():
        raise InputInvalid(f"{HEADER} must be 1 to {_MAX_CHARS} printable ASCII characters. Nothing was changed.")
    found = answer_claim(principal=principal, key=key, digest=_digest(request, within))
    if isinstance(found, Claim):
        return found
    if isinstance(found, Lost):
        raise AnswerLost(path_to("changes", found.change) if found.change else "")
    if told_once and found.status < HTTPStatus.BAD_REQUEST:
        raise ToldOnce(found.headers.get("Location", ""))
    try:
        body = key_ring().open(found.body, _address(principal, key))
    except SealError as error:
        raise Conflict(
            f"The answer under this {HEADER} cannot be told again: the encryption key it was kept under was dropped. "
            "What was asked for then was done; look before you send it under another key."
        ) from error
    return HttpResponse(body, status=found.status, headers={**found.headers, REPLAYED_HEADER: "true"})


def settle(taken: Claim, response: HttpResponse, *, told_once: bool) -> None:
    """Store the answer under the reserved Idempotency-Key; or free the key where the next try may end otherwise (such
    as 409 or 503). `told_once`: the answer tells a secret, so only its status and headers are stored.
    """
    if response.status_code in _SENT_AGAIN:
        answer_forget(claim=taken)
        return
    body = b"" if told_once else key_ring().seal(response.content, _address(taken.principal, taken.key))
    headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
    answer_keep(claim=taken, answer=Kept(response.status_code, headers, body))


# What may end otherwise the next time, although the request is the same.
_SENT_AGAIN: Final = frozenset({401, 403, 408, 409, 429, 500, 503})


def _digest(request: Request, within: str) -> str:
    seen = blake2b(digest_size=16)
    texts = (request.get_full_path(), request.headers.get("Content-Type", ""), *([within] if within else []))
    for part in (*(text.encode() for text in texts), body_of(request)):
        seen.update(len(part).to_bytes(8))
        seen.update(part)
    return seen.hexdigest()


def _address(principal: PrincipalId, key: str) -> bytes:
    return content_hash(f"{principal}\0{key}".encode())
