"""Brings an earlier revision back, as a new one: history only grows."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

from django.db.models import F, OuterRef, Subquery
from django.utils import timezone

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.choices import BlobKind
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.limiting import write_check
from controlplane.catalog.models import Blob, Revision
from controlplane.catalog.reading import resource_limits
from controlplane.catalog.selectors import blob_plaintext
from controlplane.catalog.services.changes import change_apply
from controlplane.catalog.values import ChangeMade, Existing, Expectation, Put
from controlplane.common.errors import InputInvalid, NotFound
from xdscore.findings import Finding, Severity
from xdscore.resource_types import ResourceType
from xdscore.schema import Expected, Manifest, ParsedResource, Refused, parse, to_json_with_secrets
from xdscore.schema.content_policy import TAKES_UNKNOWN
from xdscore.schema.convert import ResourceLimits
from xdscore.schema.pool import Schema
from xdscore.schema.types_registry import schema

_BATCH: Final = 500
# At most 32 MiB of contents that no change can alter: their hash is their address.
_MAX_KNOWN: Final = 2_000
_MAX_KNOWN_BYTES: Final = 16_384
_knowing: Final = Lock()
_known: Final[dict[tuple[Schema, ResourceLimits, str, str, str, int], ParsedResource | Refused]] = {}


def resource_restore(  # noqa: PLR0913 - what one request may say of it
    *,
    environment_key: str,
    kind: ResourceType,
    name: str,
    revision: int,
    actor: Principal,
    message: str = "",
    expect: Expectation = Existing.ANY,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Store the content of `revision` as the resource's next revision, if today's rules and policies allow it; secrets
    come back with it.

    Makes no change when that content is current already. Raises Forbidden, NotFound, InputInvalid with every finding
    (the revision is a deletion, or not allowed today), and what `change_apply` raises.
    """
    # Before anything is told of its revisions.
    write_check(actor, environment_key, (Role.EDITOR,), writes={(kind.word, name): None})
    parsed = revision_parsed(environment_key=environment_key, kind=kind, name=name, revision=revision)
    return change_apply(
        environment_key=environment_key,
        edits=[Put(parsed, expect)],
        actor=actor,
        message=message or f"restore of {kind.word} '{name}' r{revision}"[:1000],
        request_id=request_id,
        consent=consent,
    )


def parsed_again(blob: Blob, word: str, name: str, *, ttl_ms: int) -> ParsedResource | Refused:
    """Parse the content of an earlier revision, secrets included, by the rules of today. `word` is the type's; `ttl_ms`
    the revision's time to live in milliseconds.

    What it comes to is remembered for contents of ordinary size in which nothing is secret and nothing expires: a draft
    of hundreds is looked at again and again.
    """
    limits = resource_limits()
    key = (schema(), limits, blob.hash, word, name, ttl_ms)
    known = _known.get(key)
    if known is not None:
        return known
    tree = to_json_with_secrets(blob_plaintext(blob), xds_name=name, ttl_ms=ttl_ms)
    result = parse(Manifest(tree), Expected(word, name), limits, now=timezone.now(), policy=TAKES_UNKNOWN)
    lasting = isinstance(result, ParsedResource) and not result.expiries
    if lasting and blob.kind == BlobKind.RESOURCE.value and blob.size <= _MAX_KNOWN_BYTES:
        with _knowing:
            if len(_known) >= _MAX_KNOWN or next(iter(_known), key)[0] is not key[0]:
                _known.clear()  # full, or by a schema that is not in use any more
            _known[key] = result
    return result


def earlier_parsed(
    *, environment_key: str, keys: Sequence[tuple[str, str]]
) -> Mapping[tuple[str, str], ParsedResource]:
    """For each of these types and names, the content that it had before its newest revision, secrets included, by the
    rules of today. Raises NotFound with each that never had another, and InputInvalid with every finding.
    """
    found: dict[tuple[str, str], ParsedResource] = {}
    refused: list[Finding] = []
    for start in range(0, len(keys), _BATCH):
        batch = set(keys[start : start + _BATCH])
        of_batch = Revision.objects.filter(
            resource__environment__key=environment_key,
            resource__name__in={name for _, name in batch},
            number__lt=F("resource__counter"),
            blob__isnull=False,
        )
        newest = of_batch.filter(resource=OuterRef("resource")).order_by("-number").values("pk")[:1]
        for row in of_batch.filter(pk=Subquery(newest)).select_related("blob", "resource"):
            word, name = key = row.resource.type, row.resource.name
            if key not in batch or row.blob is None:
                continue
            result = parsed_again(row.blob, word, name, ttl_ms=row.ttl_ms)
            if isinstance(result, Refused):
                refused += [finding.about(word, name) for finding in result.findings]
            else:
                found[key] = result
    if refused:
        raise InputInvalid("An earlier revision is not valid any more. Nothing was changed.", findings=tuple(refused))
    missing = [key for key in keys if key not in found]
    if missing:
        raise NotFound(
            f"{len(missing)} of {len(keys)} resources have no earlier revision to restore. Nothing was changed.",
            findings=tuple(
                Finding(NotFound.code, Severity.ERROR, f"The {word} '{name}' has no earlier revision.").about(
                    word, name
                )
                for word, name in missing
            ),
        )
    return found


def revision_parsed(*, environment_key: str, kind: ResourceType, name: str, revision: int) -> ParsedResource:
    """The content of an earlier revision, secrets included, by the rules of today. Raises NotFound, and InputInvalid
    with every finding (the revision is a deletion, or not allowed today).
    """
    row = (
        Revision.objects.select_related("blob")
        .filter(
            resource__environment__key=environment_key,
            resource__type=kind.word,
            resource__name=name,
            number=revision,
        )
        .first()
    )
    if row is None:
        raise NotFound(f"There is no revision r{revision} of the {kind.word} '{name}' in '{environment_key}'.")
    if row.blob is None:
        raise InputInvalid(
            f"r{revision} of the {kind.word} '{name}' is its deletion. Restore an earlier one, or delete it. "
            "Nothing was changed."
        )
    result = parsed_again(row.blob, kind.word, name, ttl_ms=row.ttl_ms)
    if isinstance(result, Refused):
        raise InputInvalid(
            f"r{revision} of the {kind.word} '{name}' is not valid any more. Nothing was changed.",
            findings=result.findings,
        )
    return result
