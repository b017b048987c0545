"""Which listener has an address already."""

from collections.abc import Set as AbstractSet

from controlplane.catalog.models import Resource
from xdscore.resource_types import LISTENER


def claimed_by(*, environment_key: str, claims: AbstractSet[str]) -> str:
    """The name of a listener of the environment that has one of these addresses, which are written as
    `xdscore.schema.claims` writes them; empty where none has.
    """
    if not claims:
        return ""
    rows = Resource.objects.filter(environment__key=environment_key, type=LISTENER.word, deleted=False)
    named = rows.order_by("name").values_list("name", "head__claims")
    return next((name for name, lines in named if not claims.isdisjoint((lines or "").split("\n"))), "")
