"""Writes a batch of facts in one transaction and without ORM (decisions part 7, dependencies.md 20).

The statements are read alike by SQLite (3.35 or later) and PostgreSQL, but for how they name what is in JSON. Each
names the row it refers to in its own WHERE or JOIN: a fact about a client of an environment that was deleted meanwhile
writes nothing, instead of failing the batch for ever. Rows are sorted by key, so that two replicas never wait for each
other, but for what streams ask for: those are one replica's alone.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final, cast

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from controlplane.clients.clock import database_now
from controlplane.clients.facts import MAX_BATCH_KEYS, FactBatch, Interned, Serving, SubscriptionFact
from controlplane.clients.services.holding import held_sets_write, moves_write
from controlplane.clients.services.replacing import predecessors_replace, replica_back
from controlplane.history.services import tallies_add

Value = str | int | bool | bytes | datetime | None
Row = tuple[Value, ...]


class _Field:
    """A value of each row, for use in a statement with `str.format`: `{3}` is the fourth, `{3:moment}` gives its type,
    too.
    """

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def __format__(self, kind: str) -> str:
        """The SQL expression for the value, cast to the type `kind` (empty: no cast). For SQLite, which needs none,
        never cast.
        """
        return self._expression + (_TYPES[kind] if connection.vendor == "postgresql" else "")


_TYPES: Final = {"": "", "moment": "::timestamptz", "boolean": "::boolean"}
_ROWS: Final = {
    "sqlite": "json_each(%(rows)s) AS each",
    "postgresql": "json_array_elements(%(rows)s::json) AS each(row)",
}
_OF_ROW: Final = {"sqlite": "json_extract(each.value, '$[{}]')", "postgresql": "(each.row ->> {})"}

_REPLICA: Final = """
    INSERT INTO clients_replica
        (id, host, pid, started_at, seen_at, stopped_at, nacks_dropped, serves, fleet_batches, place)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (id) DO UPDATE SET
        seen_at = excluded.seen_at, stopped_at = excluded.stopped_at, nacks_dropped = excluded.nacks_dropped,
        serves = excluded.serves, fleet_batches = clients_replica.fleet_batches + excluded.fleet_batches
    RETURNING replaced_at
"""
# Rows of thousands of clients that come at once, or take a change, are one statement. With one for each, Python's lock
# goes back and forth between this thread and the event loop as often, which costs both more than the writing does.
_CLIENTS: Final = """
    INSERT INTO clients_client
        (id, environment_id, identity, node_id, node_cluster, family, user_agent, user_agent_version, first_seen,
        last_seen, accountable)
    SELECT {0}, environment.id, {1}, {2}, {3}, {4}, {5}, {6}, {7:moment}, {7:moment}, {9}
    FROM {rows} JOIN catalog_environment AS environment ON environment.key = {8}
    WHERE true ORDER BY 1
    ON CONFLICT (id) DO UPDATE SET
        node_cluster = excluded.node_cluster, family = excluded.family, user_agent = excluded.user_agent,
        user_agent_version = excluded.user_agent_version, accountable = excluded.accountable,
        last_seen = CASE
            WHEN excluded.last_seen > clients_client.last_seen THEN excluded.last_seen ELSE clients_client.last_seen END
"""
# A stream that is reported again was taken for dead while its replica could not write: it is open after all.
_STREAMS: Final = """
    INSERT INTO clients_stream (id, client_id, replica_id, variant, peer, opened_at, cause)
    SELECT {0}, client.id, {1}, {2}, {3}, {4:moment}, ''
    FROM {rows} JOIN clients_client AS client ON client.id = {5}
    WHERE true ORDER BY 1
    ON CONFLICT (id) DO UPDATE SET closed_at = NULL, cause = ''
"""
_NAME_SET: Final = "INSERT INTO clients_nameset (id, count, names) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING"
_CONTENT_LIST: Final = (
    "INSERT INTO clients_contentlist (id, count, contents) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING"
)
_SUBSCRIPTIONS: Final = """
    INSERT INTO clients_subscription
        (stream_id, type, name_set_id, wildcard, state, sent, sent_at, acked, acked_at, holding_set_id, held_at)
    SELECT stream.id, {1}, {2}, {3:boolean}, {4}, {5}, {6:moment}, {7}, {8:moment}, {9}, {10:moment}
    FROM {rows} JOIN clients_stream AS stream ON stream.id = {0}
    WHERE true
    ON CONFLICT (stream_id, type) DO UPDATE SET
        name_set_id = excluded.name_set_id, wildcard = excluded.wildcard, state = excluded.state, sent = excluded.sent,
        sent_at = excluded.sent_at, acked = excluded.acked, acked_at = excluded.acked_at,
        holding_set_id = excluded.holding_set_id, held_at = excluded.held_at
"""
# Of those that are there already: cheaper than to insert them.
_SAID: Final = """
    UPDATE clients_subscription SET
        name_set_id = {2}, wildcard = {3:boolean}, state = {4}, sent = {5}, sent_at = {6:moment}, acked = {7},
        acked_at = {8:moment}, holding_set_id = {9}, held_at = {10:moment}
    FROM {rows}
    WHERE clients_subscription.stream_id = {0} AND clients_subscription.type = {1}
"""
# So many that differ only in who they are and when are worth a statement of their own.
_MANY_ALIKE: Final = 8
_END: Final = "UPDATE clients_stream SET closed_at = %s, cause = %s WHERE id = %s AND closed_at IS NULL"
_CLIENT_OF_END: Final = """
    UPDATE clients_client SET last_seen = %s
    WHERE last_seen < %s AND id = (SELECT stream.client_id FROM clients_stream AS stream WHERE stream.id = %s)
"""
_NACK: Final = """
    INSERT INTO clients_nack
        (client_id, stream, type, version, code, text, resources_id, suspects_id, kept_id, healing, evidence, repeats,
        at, accountable)
    SELECT client.id, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
    FROM clients_client AS client WHERE client.id = %s
"""
# `at` moves on, so that a proof that comes while the same one is being digested is not deleted with it.
_PROOFS: Final = """
    INSERT INTO clients_contentproof (environment, type, name, version, at)
    SELECT {0}, {1}, {2}, {3}, {4:moment} FROM {rows}
    WHERE true ORDER BY 1, 2, 3, 4
    ON CONFLICT (environment, type, name, version) DO UPDATE SET at = excluded.at
"""
_PROBE: Final = """
    INSERT INTO clients_contentprobe (client_id, type, name, version)
    SELECT client.id, %s, %s, %s FROM clients_client AS client WHERE client.id = %s
"""
_ALL_ENDS: Final = "UPDATE clients_stream SET closed_at = %s, cause = %s WHERE replica_id = %s AND closed_at IS NULL"

STOPPED = "the ADS process stopped"


def facts_write(*, batch: FactBatch) -> bool:
    """Store a batch in one transaction. Returns whether the reporting ADS process had been taken for dead and replaced;
    then it must report its streams again. A batch that is stored twice leaves the same rows, except that NACKs and
    tallies count twice.

    Uses the connection of the calling thread. Raises ValueError for a batch above MAX_BATCH_KEYS, and whatever the
    database raises; the caller keeps the batch and tries again.
    """
    if batch.keys > MAX_BATCH_KEYS:
        raise ValueError(f"a batch of {batch.keys} keys; at most {MAX_BATCH_KEYS} are written at once")
    with transaction.atomic(durable=True):
        now = database_now()
        moments = _Moments(now)
        with connection.cursor() as cursor:
            replaced = _write_replica(cursor, batch, moments)
            _write_streams(cursor, batch, moments)
            _write_answers(cursor, batch, moments)
            tallies_add(cursor, batch.tallies, now)
            if batch.replica.stopping:
                cursor.execute(_ALL_ENDS, [moments.now, STOPPED, batch.replica.id])
    return replaced


_STEPS_PER_S: Final = 500


class _Moments:
    """Turns ages in seconds into times by the database's clock, in the form that the database takes: exact to 2 ms, and
    never too early, for what was sent right after a publication must not look as if it had been sent before
    (controlplane.clients.delivery).
    """

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._adapted = connection.ops.adapt_datetimefield_value
        # A change reaches a fleet within so few of them that each is made once for many rows.
        self._made: dict[int, datetime | str] = {}  # by age in steps
        self.now: datetime | str | None = self.ago(0.0)

    def ago(self, age_s: float | None) -> datetime | str | None:
        if age_s is None:
            return None
        steps = int(age_s * _STEPS_PER_S)
        made = self._made.get(steps)
        if made is None:
            # A string for SQLite, the moment itself for PostgreSQL; the stubs know of the first only.
            adapted = self._adapted(self._now - timedelta(seconds=steps / _STEPS_PER_S))
            made = self._made[steps] = cast("datetime | str", adapted)
        return made


def _serves(serves: Mapping[str, Serving] | None) -> str | None:
    """What an ADS process serves, as JSON text for the column `serves`; None where it does not say."""
    if serves is None:
        return None
    return json.dumps({key: asdict(each) for key, each in serves.items()})


def _write_replica(cursor: CursorWrapper, batch: FactBatch, moments: _Moments) -> bool:
    """Store the row of the ADS process that reports, as one that is not replaced. Returns whether it was marked as
    replaced before.
    """
    replica = batch.replica
    stopped_at = moments.now if replica.stopping else None
    cursor.execute(
        _REPLICA,
        [
            replica.id,
            replica.host,
            replica.pid,
            moments.ago(replica.age_s),
            moments.now,
            stopped_at,
            replica.nacks_dropped,
            _serves(replica.serves),
            int(bool(batch.clients or batch.streams or batch.ends or batch.subscriptions)),
            replica.place,
        ],
    )
    replaced = cursor.fetchone()[0] is not None
    if replaced:
        replica_back(cursor, replica=replica.id)
    if replica.begins and replica.place:
        predecessors_replace(cursor, place=replica.place, successor=replica.id, now=moments.now)
    return replaced


def _write_streams(cursor: CursorWrapper, batch: FactBatch, moments: _Moments) -> None:
    _at_once(
        cursor,
        _CLIENTS,
        [
            (
                each.id,
                each.identity,
                each.node_id,
                each.node_cluster,
                each.family.value,
                each.user_agent,
                each.user_agent_version,
                moments.ago(each.age_s),
                each.environment,
                each.accountable,
            )
            for each in batch.clients
        ],
    )
    _at_once(
        cursor,
        _STREAMS,
        [
            (each.id, batch.replica.id, each.variant, each.peer, moments.ago(each.age_s), each.client)
            for each in batch.streams
        ],
    )
    _many(cursor, _NAME_SET, _interned_rows(batch.name_sets))
    held_sets_write(cursor, rows=batch.held_sets)
    _write_subscriptions(cursor, batch, moments)
    moves_write(cursor, moves=[(each, moments.ago(each.age_s)) for each in batch.moves])
    ends = sorted(batch.ends, key=lambda each: each.id)
    _many(cursor, _END, ((moments.ago(each.age_s), each.cause, each.id) for each in ends))
    _many(cursor, _CLIENT_OF_END, (((seen := moments.ago(each.age_s)), seen, each.id) for each in ends))


def _write_subscriptions(cursor: CursorWrapper, batch: FactBatch, moments: _Moments) -> None:
    newcomers = {each.id for each in batch.streams}
    ago = moments.ago
    # What is equal is mostly one object, and it is seven values to compare.
    alike: dict[tuple[int, bool], list[SubscriptionFact]] = defaultdict(list)
    for each in batch.subscriptions:
        alike[id(each[1]), each[0] in newcomers].append(each)
    others: list[Row] = []
    for (_, new), facts in alike.items():
        word, names, wildcard, state, sent, acked, held = facts[0].says
        rows: list[Row] = [
            (stream, word, names, wildcard, state.value, sent, ago(sent_s), acked, ago(acked_s), held, ago(held_s))
            for stream, _, sent_s, acked_s, held_s in facts
        ]
        if len(rows) < _MANY_ALIKE:
            others += rows
        elif new or _at_once(cursor, _SAID, rows) < len(rows):
            _at_once(cursor, _SUBSCRIPTIONS, rows)
    _at_once(cursor, _SUBSCRIPTIONS, others)


def _write_answers(cursor: CursorWrapper, batch: FactBatch, moments: _Moments) -> None:
    _many(cursor, _CONTENT_LIST, _interned_rows(batch.content_lists))
    _many(
        cursor,
        _NACK,
        (
            (
                each.stream,
                each.word,
                each.version,
                each.code,
                each.text,
                each.resources,
                each.suspects,
                each.kept,
                each.healing,
                each.evidence.value,
                each.repeats,
                moments.ago(each.age_s),
                each.accountable,
                each.client,
            )
            for each in batch.nacks
        ),
    )
    _at_once(
        cursor,
        _PROOFS,
        [(each.environment, each.word, each.name, each.version, moments.now) for each in batch.proven],
    )
    _many(cursor, _PROBE, ((each.word, each.name, each.version, each.client) for each in batch.probes))


def _interned_rows(interned: Sequence[Interned]) -> Iterable[Row]:
    return ((each.id, each.count, each.packed) for each in sorted(interned, key=lambda each: each.id))


def _at_once(cursor: CursorWrapper, statement: str, rows: Sequence[Row]) -> int:
    """Execute a statement once for all of `rows`, which are passed as one JSON parameter. Returns how many rows it
    changed.

    A value that is equal in all rows is passed as a parameter of its own, so that it is not read out of JSON for each
    row.
    """
    if not rows:
        return 0
    vendor = connection.vendor
    parameters: dict[str, Value] = {}
    fields: list[_Field] = []
    differing: list[Row] = []
    for number, column in enumerate(zip(*rows, strict=True)):
        if column.count(column[0]) == len(rows):
            parameters[f"all_{number}"] = column[0]
            fields.append(_Field(f"%(all_{number})s"))
        else:
            fields.append(_Field(_OF_ROW[vendor].format(len(differing))))
            differing.append(column)
    # A single row differs from no other.
    parameters["rows"] = json.dumps(list(zip(*differing, strict=True)) or [()], default=str)
    cursor.execute(statement.format(*fields, rows=_ROWS[vendor]), parameters)
    changed: int = cursor.rowcount
    return changed


def _many(cursor: CursorWrapper, statement: str, rows: Iterable[Row]) -> None:
    listed = list(rows)
    if listed:
        cursor.executemany(statement, listed)
