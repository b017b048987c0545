"""What clients have of a resource after they refused its update: the same words everywhere (protocol.md F17a)."""

from controlplane.catalog.selectors import revision_origin
from controlplane.clients.selectors import NackView
from xdscore.after_nack import NowRuns, after_nack, now_runs
from xdscore.resource_types import by_word


def now_of(nack: NackView, name: str) -> NowRuns | None:
    """The content that the client of this NACK has of a name that it refused; None where that was not written down."""
    if nack.kept is None:
        return None
    after = after_nack(nack.family, by_word[nack.type], drops=None)
    version = dict(nack.kept).get(name)
    if version is None:
        return now_runs(after, "", healed=False)
    origin = revision_origin(environment_key=nack.environment, word=nack.type, name=name, version=version)
    kept = f"r{origin.number}" if origin is not None else "an earlier revision"
    return now_runs(after, kept, healed=nack.healing)
