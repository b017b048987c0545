"""Request bodies: bytes to documents to values, with every problem located by pointer, line and column.

All texts go through `xdscore.schema.read_text`, whose limits hold before anything is built (reliability threat 12).
"""

from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from controlplane.api.body_limit import body_limit
from controlplane.api.errors import MediaRefused
from controlplane.api.fields import StrictSerializer, findings_of
from controlplane.catalog.reading import NOTHING_CHANGED, manifest_limits, manifests_in
from controlplane.common.errors import InputInvalid, InputTooLarge, InputUnreadable
from xdscore.findings import Finding, Severity
from xdscore.limits import Limits
from xdscore.schema import Document, Manifest, Media, read_text
from xdscore.schema.codes import SYNTAX
from xdscore.schema.positions import Path, pointer_of

_MEDIA: Final[dict[str, Media]] = {
    "application/json": Media.JSON,
    "application/yaml": Media.YAML,  # RFC 9512
    "application/x-yaml": Media.YAML,
    "text/yaml": Media.YAML,
    "text/x-yaml": Media.YAML,
}
_NO_BODY: Final = Finding(code=SYNTAX.code, severity=Severity.ERROR, detail="The body is empty.")
_WRITE_IT_SO: Final = "Send 'Content-Type: application/json' or 'application/yaml'."


def media_of(request: Request) -> Media:
    """Whether the request's body is JSON or YAML, by its Content-Type alone. Raises MediaRefused for any other."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise MediaRefused(
            "Compressed bodies are not read. Send it without a Content-Encoding."
        )  # threat 12, gzip bombs
    given, _semicolon, parameters = request.headers.get("Content-Type", "").partition(";")
    media = _MEDIA.get(given.strip().lower())
    if media is None:
        said = (
            f"'{given[:100].strip()}' is not a form of body that is read here."
            if given.strip()
            else "The body's form is not said."
        )
        raise MediaRefused(f"{said} {_WRITE_IT_SO}")
    charset = [
        each.partition("=")[2].strip(' "').lower()
        for each in parameters.split(";")
        if each.strip().lower().startswith("charset")
    ]
    if charset not in ([], ["utf-8"], ["utf8"]):
        raise MediaRefused(f"Bodies are UTF-8. {_WRITE_IT_SO}")
    return media


def body_of(request: Request) -> bytes:
    """The bytes of the request's body. Raises InputTooLarge; a body whose Content-Length is too large is not even
    read.
    """
    limit = body_limit(request._request.path, _limits())  # noqa: SLF001  DRF offers no other way to the path
    said = request.headers.get("Content-Length", "")
    if said.isdigit() and int(said) > limit:
        raise InputTooLarge(f"The body has {said} bytes; at most {limit:,} are allowed here.")
    body: bytes = request._request.body  # noqa: SLF001  unparsed
    if len(body) > limit:
        raise InputTooLarge(f"The body has {len(body):,} bytes; at most {limit:,} are allowed here.")
    return body


def documents_of(request: Request) -> tuple[Document, ...]:
    """The JSON or YAML documents in the request's body. Raises MediaRefused, InputTooLarge, and InputUnreadable with
    every problem.
    """
    if not request.headers.get("Content-Type") and not body_of(request):
        raise InputUnreadable("The request has no body. Nothing was changed.", findings=(_NO_BODY,))
    media = media_of(request)
    read = read_text(body_of(request), media, manifest_limits())
    if read.findings:
        raise InputUnreadable(
            f"The body could not be read as {media.title}. Nothing was changed.", findings=read.findings
        )
    return read.documents


def document_of(request: Request) -> Document:
    """The one document in the request's body. Raises InputInvalid where there are none or several, and what
    `documents_of` raises.
    """
    documents = documents_of(request)
    if len(documents) != 1:
        raise InputInvalid(f"The body holds {len(documents)} documents; this request takes one. Nothing was changed.")
    return documents[0]


def one_manifest(request: Request) -> Manifest:
    """The one manifest in the request's body. Raises MediaRefused, InputTooLarge, InputUnreadable, and InputInvalid
    where there are none or several.
    """
    manifests, _notes = manifests_in(documents_of(request))
    if len(manifests) != 1:
        raise InputInvalid(
            f"The body holds {len(manifests)} resources; this request takes one. "
            f"POST several to the environment's apply. {NOTHING_CHANGED}"
        )
    return manifests[0]


def bulk_within_limit(document: Document, field: str, limited_by: str = "bulk_items") -> None:
    """Raise InputTooLarge where the list in `field` has more items than the limit named `limited_by` allows."""
    items = document.tree.get(field) if isinstance(document.tree, dict) else None
    limit: int = getattr(_limits(), limited_by)
    if isinstance(items, list) and len(items) > limit:
        raise InputTooLarge(
            f"'{field}' holds {len(items):,} items; at most {limit:,} are allowed ({limited_by}). Nothing was done."
        )


def values_of(document: Document, shape: type[StrictSerializer], *, partial: bool = False) -> dict[str, Any]:
    """The document's fields, checked and converted by `shape`. `partial`: fields may be missing. Raises InputInvalid
    with every problem.
    """
    serializer = shape(data=document.tree, partial=partial)
    try:
        serializer.is_valid(raise_exception=True)
    except ValidationError as error:
        found = findings_of(error)
        located = tuple(located_in(document, path, finding) for path, finding in found)
        raise InputInvalid(f"{_problems(len(found))} Nothing was changed.", findings=located) from None
    values: dict[str, Any] = serializer.validated_data
    return values


def located_in(document: Document, path: Path, finding: Finding) -> Finding:
    """A copy of the finding with the pointer, line and column of the place `path` in the document."""
    line, column = document.positions.at(path)
    return replace(finding, pointer=pointer_of(path), line=line, column=column)


def _problems(count: int) -> str:
    return "The body has a problem." if count == 1 else f"The body has {count} problems."


def _limits() -> Limits:
    limits: Limits = settings.PARLEY.limits
    return limits
