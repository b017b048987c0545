"""Takes in what a data plane says of itself: holds it against what Parley believes, and remembers where they differ."""

from collections.abc import Iterable, Mapping

from controlplane.catalog.selectors import revision_numbers
from controlplane.clients.comparing import Comparison, compare, with_own_versions
from controlplane.clients.reports import ClientWord, client_word
from controlplane.clients.selectors import ClientSummary, client_streams
from controlplane.clients.services import report_keep
from controlplane.common.errors import NotFound
from controlplane.explain.beliefs import beliefs_of
from xdscore.names import canonical, name_problem
from xdscore.said import SaidState, Word
from xdscore.snapshot import EntryKey

_DELTA = "delta"


def word_take(*, client: ClientSummary, word: Word, by: str) -> ClientWord:
    """Compare a client's report with what Parley believes now, and store the result in place of the one before; `by`
    brought the report.

    Raises NotFound for a client that was forgotten meanwhile.
    """
    said = tuple(each for each in word.names if not name_problem(each.name))
    believed = beliefs_of(
        client=client,
        types=word.types,
        said={(each.type, canonical(each.name)) for each in said if each.state is not SaidState.STATIC},
        limit=len(said) + _MORE_THAN_SAID,
    )
    variants = {stream.variant for stream in client_streams(public_id=client.id) if stream.closed_at is None}
    own = variants == {_DELTA}
    comparison = compare(map(with_own_versions, said) if own else said, believed, word.types)
    report_keep(
        client=client.id,
        source=word.source,
        by=by,
        comparison=comparison,
        revisions=_revisions(client.environment, comparison),
    )
    kept = client_word(public_id=client.id)
    if kept is None:
        raise NotFound("The client was forgotten meanwhile: that is done a day after its last stream.")
    return kept


# Of everything that a wildcard asks for, the client may miss some: so many more names than it has are looked at.
_MORE_THAN_SAID = 1_000


def _revisions(environment: str, comparison: Comparison) -> Mapping[tuple[EntryKey, str], int]:
    """The numbers of the revisions with the contents that differ, by (type, name) and version."""
    sides: tuple[dict[EntryKey, str], dict[EntryKey, str]] = ({}, {})
    for each in comparison.differences:
        key = (each.type, each.name)
        sides[0][key] = each.believed.version
        sides[1][key] = each.said.version if each.said is not None else ""
    return {(key, version): number for side in sides for (key, version), number in _numbered(environment, side)}


def _numbered(environment: str, versions: Mapping[EntryKey, str]) -> Iterable[tuple[tuple[EntryKey, str], int]]:
    known = {key: version for key, version in versions.items() if version}
    numbers = revision_numbers(environment_key=environment, versions=known)
    return [((key, known[key]), number) for key, number in numbers.items()]
