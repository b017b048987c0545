"""Keeps how the own words of data planes compare with what Parley believes: the newest, and since when they differ."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from django.db import transaction
from django.db.models import Q

from controlplane.catalog.contents import sealed_lately, secrets_sealed
from controlplane.clients.clock import database_now
from controlplane.clients.comparing import Comparison, Difference
from controlplane.clients.foreign_text import KeptText, nack_text, one_line
from controlplane.clients.models import VERSION_CHARS, Client, Report, SaidDifference
from controlplane.common.errors import NotFound
from xdscore.redaction import NO_SECRETS, Secrets
from xdscore.resource_types import by_word
from xdscore.said import SaidSource
from xdscore.snapshot import EntryKey

# Of one client; more are counted. A page shows no more, and a client that differs in so much has one cause.
MAX_DIFFERENCES: Final = 200
_MAX_REPORTS: Final = 50
_MAX_ERROR_BYTES: Final = 1_024
# Of one report: a text about many secrets takes a tenth of a second.
_READING_S: Final = 2.0

Revisions = Mapping[tuple[EntryKey, str], int]
"""The number of the revision with that content, by (type, name) and version."""


def report_keep(
    *,
    client: str,
    source: SaidSource,
    by: str,
    comparison: Comparison,
    revisions: Revisions,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Store a comparison in place of the client's previous one. A name that still differs keeps the time since when;
    what was not compared this time stays as it was. Raises NotFound for a client that was forgotten meanwhile. `clock`
    is monotonic.
    """
    environment = Client.objects.filter(pk=client).values_list("environment__key", flat=True).first()
    # Before anything is locked: others write meanwhile.
    errors = _errors(environment or "", comparison.differences[:MAX_DIFFERENCES], clock)
    with transaction.atomic():
        row = Client.objects.select_for_update().filter(pk=client).first()
        if row is None:
            raise NotFound("The client was forgotten meanwhile: that is done a day after its last stream.")
        _keep(row, source, by, comparison, revisions, errors)


def _keep(
    row: Client,
    source: SaidSource,
    by: str,
    comparison: Comparison,
    revisions: Revisions,
    errors: Mapping[EntryKey, KeptText],
) -> None:
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
    SaidDifference.objects.bulk_create(
        SaidDifference(
            client=row, since=since.get((each.type, each.name), now), seen_at=now, **_columns(each, revisions, errors)
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


def _errors(
    environment: str, differences: Iterable[Difference], clock: Callable[[], float]
) -> Mapping[EntryKey, KeptText]:
    """The error texts that the client reports, redacted for storing, by type and name. Texts about secrets are read for
    a bounded time, one by one; what is left then is withheld.
    """
    said = {(each.type, each.name): each.said.error for each in differences if each.said and each.said.error}
    sealed = sealed_lately(environment_key=environment, keys=said.keys())
    ends = clock() + _READING_S
    kept = {}
    for key, words in said.items():
        held: Secrets | None = NO_SECRETS
        if key in sealed:
            held = secrets_sealed(addresses=sealed[key]) if clock() < ends else None
        secret, names = by_word[key[0]].secret, (key[1],)
        kept[key] = nack_text(words, secret=secret, held=held, max_bytes=_MAX_ERROR_BYTES, names=names)
    return kept


def _columns(difference: Difference, revisions: Revisions, errors: Mapping[EntryKey, KeptText]) -> dict[str, object]:
    key, said, believed = (difference.type, difference.name), difference.said, difference.believed
    version = said.version if said is not None else ""
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
        "error": errors.get(key, ""),
    }
