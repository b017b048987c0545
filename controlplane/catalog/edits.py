"""What a change wrote, as it is listed: its edits, and what was said of them."""

from dataclasses import dataclass
from itertools import chain, islice

from django.db import models
from django.db.models.functions import RowNumber

from controlplane.catalog.models import Change, Revision
from controlplane.catalog.values import EditedResource, finding_from_json
from xdscore.findings import Finding
from xdscore.schema.leniency import is_spelling


@dataclass(frozen=True, slots=True)
class ChangeEdits:
    """The first edits of a change, by type and name, with their findings; how many edits it has in all; and the first
    warnings and notes about the change and whatever it wrote.
    """

    edits: tuple[EditedResource, ...]
    count: int
    findings: tuple[Finding, ...]


def change_edits(*, change: Change, limit: int, findings: int = 0, told: bool = True) -> ChangeEdits:
    """What a change wrote, in one query: its first `limit` edits, and the first `findings` warnings and notes. `told`:
    with those that name resources which the change did not write.
    """
    order = ("resource__type", "resource__name")
    gone_before = Revision.objects.filter(
        resource=models.OuterRef("resource"), number=models.OuterRef("number") - 1, blob=None
    )
    new = models.Case(
        models.When(models.Q(blob=None), then=models.Value("deleted")),
        models.When(models.Q(number=1) | models.Exists(gone_before), then=models.Value("created")),
        default=models.Value("updated"),
    )
    shown = models.Q(place__lte=limit)
    rows = (
        Revision.objects.filter(change=change)
        # How many there are comes along: it is asked for with each look at a change.
        .annotate(total=models.Window(models.Count("pk")), place=models.Window(RowNumber(), order_by=order))
        .filter(shown | ~models.Q(findings=[]) if findings else shown)
        .annotate(action=new)
        .order_by("place")
    )
    found = list(rows.values_list(*order, "action", "number", "findings", "total")[: limit + findings])
    edits = tuple(
        EditedResource(word, name, action, number, tuple(map(finding_from_json, said)))
        for word, name, action, number, said, _ in found
    )
    of_write = (each for each in map(finding_from_json, change.findings) if told or is_spelling(each))
    said = chain(of_write, chain.from_iterable(each.findings for each in edits))
    return ChangeEdits(edits[:limit], found[0][-1] if found else 0, tuple(islice(said, findings)))
