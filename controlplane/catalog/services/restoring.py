"""Brings an earlier revision back, as a new one: history only grows."""

from django.utils import timezone

from controlplane.accounts.principal import Principal
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.models import Blob, Revision
from controlplane.catalog.selectors import blob_plaintext
from controlplane.catalog.services.changes import change_apply
from controlplane.catalog.values import ChangeMade, Existing, Expectation, Put
from controlplane.common.errors import InputInvalid, NotFound
from xdscore.resource_types import ResourceType
from xdscore.schema import Expected, Manifest, ParsedResource, Refused, parse, to_json_with_secrets


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
    """Make the content of `revision` current again, under today's rules and policies; secrets come back with it.

    No change when it is current already. Raises NotFound, InputInvalid (the revision is a deletion, or is refused
    today, with every finding), and what `change_apply` raises.
    """
    parsed = _parsed(environment_key, kind, name, revision)
    return change_apply(
        environment_key=environment_key,
        edits=[Put(parsed, expect)],
        actor=actor,
        message=message or f"restore of {kind.word} '{name}' r{revision}"[:1000],
        request_id=request_id,
        consent=consent,
    )


def parsed_again(blob: Blob, word: str, name: str, *, ttl_ms: int) -> ParsedResource | Refused:
    """The content of an earlier revision parsed under the rules of today, its secrets included."""
    tree = to_json_with_secrets(blob_plaintext(blob), xds_name=name, ttl_ms=ttl_ms)
    return parse(Manifest(tree), Expected(word, name), now=timezone.now())


def _parsed(environment_key: str, kind: ResourceType, name: str, number: int) -> ParsedResource:
    row = (
        Revision.objects.select_related("blob")
        .filter(
            resource__environment__key=environment_key,
            resource__type=kind.word,
            resource__name=name,
            number=number,
        )
        .first()
    )
    if row is None:
        raise NotFound(f"There is no revision r{number} of the {kind.word} '{name}' in '{environment_key}'.")
    if row.blob is None:
        raise InputInvalid(
            f"r{number} of the {kind.word} '{name}' is its deletion. Restore an earlier one, or delete it. "
            "Nothing was changed."
        )
    result = parsed_again(row.blob, kind.word, name, ttl_ms=row.ttl_ms)
    if isinstance(result, Refused):
        raise InputInvalid(
            f"r{number} of the {kind.word} '{name}' is not valid any more. Nothing was changed.",
            findings=result.findings,
        )
    return result
