"""Keeps how the own words of data planes compare with what Parley believes: the newest, and since when they differ."""

from collections.abc import Mapping
from typing import Final

from django.db import transaction
from django.db.models import Q

from controlplane.catalog.contents import secrets_held
from controlplane.clients.clock import database_now
from controlplane.clients.comparing import Comparison, Difference
from controlplane.clients.foreign_text import nack_text, one_line
from controlplane.clients.models import VERSION_CHARS, Client, Report, SaidDifference
from controlplane.errors import NotFound
from xdscore.redaction import NO_SECRETS, Secrets
from xdscore.resource_types import by_word
from xdscore.said import SaidSource
from xdscore.snapshot import EntryKey

# Of one client; more are counted. A page shows no more, and a client that differs in so much has one cause.
MAX_DIFFERENCES: Final = 200
_MAX_REPORTS: Final = 50
_MAX_ERROR_BYTES: Final = 1_024

Revisions = Mapping[tuple[EntryKey, str], int]
"""By name and version, the number of the revision with that content."""


@transaction.atomic
def report_keep(*, client: str, source: SaidSource, by: str, comparison: Comparison, revisions: Revisions) -> None:
    """Remember a comparison in place of the one before. What still differs goes on since when it did; what was not
    compared this time stays as it was. Raises NotFound for a client that was forgotten meanwhile.
    """
    row = Client.objects.select_for_update().filter(pk=client).first()
    if row is None:
        raise NotFound("The client was forgotten meanwhile: that is done a day after its last stream.")
    now = database_now()
    Report.objects.create(
        client=row,
        at=now,
        source=source.value,
        by=by,
        compared=comparison.compared,
        differing=len(comparison.differences),
        by_presence=comparison.by_presence,
        unsure=len(comparison.unsure),
    )
    there = SaidDifference.objects.filter(client=row)
    since = {(word, name): at for word, name, at in there.values_list("type", "name", "since")}
    open_ones = {key for key in since if key in comparison.unsure or key[0] not in comparison.types}
    there.exclude(_any_of(open_ones)).delete()
    room = max(MAX_DIFFERENCES - len(open_ones), 0)
    speaking = {(each.type, each.name) for each in comparison.differences[:room] if each.said and each.said.error}
    secrets = secrets_held(environment_key=row.environment.key, keys=speaking)
    SaidDifference.objects.bulk_create(
        SaidDifference(
            client=row, since=since.get((each.type, each.name), now), seen_at=now, **_columns(each, revisions, secrets)
        )
        for each in comparison.differences[:room]
    )
    kept = Report.objects.filter(client=row).order_by("-id").values_list("pk", flat=True)[:_MAX_REPORTS]
    Report.objects.filter(client=row).exclude(pk__in=list(kept)).delete()


def _any_of(keys: set[EntryKey]) -> Q:
    found = Q(pk__in=[])
    for word, name in sorted(keys):
        found |= Q(type=word, name=name)
    return found


def _columns(
    difference: Difference, revisions: Revisions, secrets: Mapping[EntryKey, Secrets | None]
) -> dict[str, object]:
    key, said, believed = (difference.type, difference.name), difference.said, difference.believed
    version = said.version if said is not None else ""
    secret = by_word[difference.type].secret
    words = said.error if said is not None else ""
    held = secrets.get(key, NO_SECRETS)
    error = nack_text(words, secret=secret, held=held, max_bytes=_MAX_ERROR_BYTES, names=(difference.name,))
    return {
        "type": difference.type,
        "name": difference.name,
        "kind": difference.kind.value,
        "state": said.state.value if said is not None else "",
        "held": said is not None and said.held,
        "said_version": one_line(version, max_chars=VERSION_CHARS),
        "said_revision": revisions.get((key, version), 0),
        "believed_version": believed.version,
        "believed_revision": revisions.get((key, believed.version), 0),
        "error": error,
    }
