"""The changes of an environment, newest first."""

from django.db import models

from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.models import Change, Revision


def changes_of_generations(*, environment_key: str, after: int, up_to: int, limit: int) -> tuple[Change, ...]:
    """The changes of an environment that were written after the generation `after`, up to and including `up_to`; newest
    first, at most `limit` of them.
    """
    rows = Change.objects.filter(environment__key=environment_key, generation__gt=after, generation__lte=up_to)
    return tuple(rows.order_by("-generation")[:limit])


def change_list(
    *, environment_key: str, kind: ChangeKind | None = None, author: str = "", text: str = ""
) -> models.QuerySet[Change]:
    """The changes of an environment with this kind, author and text, newest first; each has an attribute `edits`, the
    number of resources that it wrote. `text` is looked for in messages and in the names of resources.
    """
    rows = Change.objects.filter(environment__key=environment_key).select_related("environment")
    if kind is not None:
        rows = rows.filter(kind=kind.value)
    if author:
        rows = rows.filter(author=author)
    if text:
        written = Revision.objects.filter(change=models.OuterRef("pk"), resource__name__contains=text)
        rows = rows.filter(models.Q(message__contains=text) | models.Exists(written))
    return rows.annotate(edits=models.Count("revisions")).order_by("-generation")
