"""What a revision's certificates have to say today: a certificate expires without anybody writing anything."""

from dataclasses import replace
from datetime import datetime

from controlplane.catalog.models import Revision
from controlplane.catalog.values import finding_from_json
from xdscore.findings import Finding
from xdscore.schema.certificates import Expiry
from xdscore.schema.codes import CERTIFICATE_EXPIRED, CERTIFICATE_EXPIRING
from xdscore.schema.parse import ParsedResource
from xdscore.snapshot import EntryKey

_OF_EXPIRY = frozenset({CERTIFICATE_EXPIRED.code, CERTIFICATE_EXPIRING.code})


def expiries_to_json(parsed: ParsedResource) -> list[dict[str, str]]:
    """The times at which a resource's certificates expire, each with the pointer of its field, as JSON for the
    database.
    """
    return [{"pointer": pointer, "field": each.field, "end": each.end.isoformat()} for pointer, each in parsed.expiries]


def findings_at(revision: Revision, key: EntryKey, now: datetime) -> tuple[Finding, ...]:
    """The findings about a revision at the time `now`: those stored when it was written, and those about certificates
    that have expired or will soon. `key` is the resource's type and name.
    """
    stored = tuple(finding_from_json(each) for each in revision.findings)
    if not revision.expiries:
        return stored
    kept = tuple(each for each in stored if each.code not in _OF_EXPIRY)
    said = (
        (each["pointer"], Expiry(each["field"], datetime.fromisoformat(each["end"])).finding(now))
        for each in revision.expiries
    )
    return (*kept, *(replace(found, pointer=pointer).about(*key) for pointer, found in said if found is not None))
