"""Puts what clients have into the rows that every door shows (interfaces.md section 8)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.catalog.links import Content
from controlplane.catalog.selectors import revisions_of
from controlplane.clients.clock import database_now
from controlplane.clients.holding_history import History, Standing
from controlplane.clients.holding_words import SENTENCES, on_streams, went_away
from controlplane.clients.in_use import ANSWER_WITHIN, USERS, unused_sentence
from controlplane.clients.selectors import nacks_of, name_shown
from controlplane.clients.stream_holdings import Found, Key
from controlplane.clients.uses import Taking, Uses, unfollowed
from xdscore.holdings import Holding, HoldingState

_MAX_NACKS: Final = 2_000


@dataclass(frozen=True, slots=True)
class HeldResource:
    """What one client has of one resource (interfaces.md section 8).

    `version`, `revision`: of the content that it is to have or, once it answered, has. `acked_version`,
        `acked_revision`: of what it goes on with. Revisions are None where the content is of no revision known here.
    `code`: of the error that it was told. `message`: the error word for word, the client's own words where it refused,
        else a sentence where there is something to say.
    `since`: since when, at the latest, it is so. `stream`: the id of the stream that counts.
    `missing`: what it needs, (type, name), to use what it acknowledged, and did not ask for in time (truth.md H5).
    """

    client: str
    node_id: str
    type: str
    name: str
    state: HoldingState
    revision: int | None
    version: str
    acked_revision: int | None
    acked_version: str
    code: str
    message: str
    since: datetime | None
    stream: str
    missing: tuple[Key, ...] = ()


def rows_of(
    environment_key: str,
    nodes: Mapping[str, str],
    page: Collection[tuple[Key, Found]],
    history: History | None,
    *,
    at: datetime | None = None,
    gone_at: datetime | None = None,
    uses: Uses | None = None,
    numbers: Mapping[Content, int] | None = None,
) -> tuple[HeldResource, ...]:
    """What clients of an environment have, one row for each of `page`. `nodes`: their node ids, by client id.

    `history`: where to look up since when it is so; None: that is not said. `at`: the rows are of that time. `gone_at`:
        when the clients went away. `uses`, `numbers`: what was read before of who uses what, and the numbers of the
        revisions that have these contents; None: they are read here.
    """
    if numbers is None:
        held = [(key, each.holding) for key, each in page]
        numbers = revisions_of(environment_key=environment_key, contents=contents_of(held))
    refused = _refusals(page, at)
    since = _since(page, history) if history is not None and at is None and gone_at is None else {}
    unused = unfollowed(uses=uses or Uses(environment_key), taken=_taken(page, since))
    rows = []
    for key, found in page:
        standing, holding = found.standing, found.holding
        acked_revision = numbers.get((*key, holding.acked))
        message = holding.message or SENTENCES.get(holding.state, "")
        if gone_at is not None:
            message = went_away(gone_at, holding, acked_revision)
        elif holding.state is HoldingState.NACKED:
            message = refused.get((standing.client, *key, holding.version), message)
        missing = unused.get((standing.client, (*key, holding.version)), ())
        if missing:
            message = unused_sentence(missing)
        rows.append(
            HeldResource(
                client=standing.client,
                node_id=nodes.get(standing.client, ""),
                type=key[0],
                name=name_shown(key[1]),
                state=holding.state,
                revision=numbers.get((*key, holding.version)),
                version=holding.version,
                acked_revision=acked_revision,
                acked_version=holding.acked,
                code=holding.code,
                message=" ".join(filter(None, (message, on_streams(holding, found.all)))),
                since=gone_at or since.get((standing.stream, *key)),
                stream=standing.stream,
                missing=missing,
            )
        )
    return tuple(rows)


def contents_of(held: Iterable[tuple[Key, Holding]]) -> set[Content]:
    """What clients have, are to have, or go on with: contents whose revisions have numbers to be shown."""
    return {(*key, version) for key, holding in held for version in (holding.version, holding.acked) if version}


def _taken(page: Iterable[tuple[Key, Found]], since: Mapping[tuple[str, str, str], datetime]) -> list[Taking]:
    """What of the page clients acknowledged so long ago that they should use it by now."""
    found = [
        (since[standing.stream, *key], (standing.client, (*key, each.holding.version)))
        for key, each in page
        for standing in [each.standing]
        if key[0] in USERS and each.holding.state is HoldingState.ACKED and (standing.stream, *key) in since
    ]
    before = database_now() - ANSWER_WITHIN if found else None
    return [taking for at, taking in found if before is not None and at <= before]


def _since(page: Iterable[tuple[Key, Found]], history: History) -> Mapping[tuple[str, str, str], datetime]:
    """Since when, by stream, type and name."""
    names: dict[Standing, list[str]] = defaultdict(list)
    for (_, name), found in page:
        names[found.standing].append(name)
    history.read(names)
    return {
        (standing.stream, standing.type, name): at
        for standing, each in names.items()
        for name, at in history.since(standing, each).items()
    }


def _refusals(page: Iterable[tuple[Key, Found]], at: datetime | None) -> Mapping[tuple[str, str, str, str], str]:
    """What clients said when they refused contents, by client, type, name and version."""
    refusing = {
        (found.standing.client, word) for (word, _), found in page if found.holding.state is HoldingState.NACKED
    }
    if not refusing:
        return {}
    clients, words = {client for client, _ in refusing}, {word for _, word in refusing}
    nacks = nacks_of(clients=clients, words=words, until=at, limit=_MAX_NACKS)
    # The newest goes in last.
    return {
        (nack.client, nack.type, name, version): nack.text
        for nack in reversed(nacks)
        for name, version in nack.suspects
    }
