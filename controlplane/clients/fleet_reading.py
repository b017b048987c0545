"""Reads a fleet for the loss guard: every connected client with what it asks for, in as few rows as there are streams.

Plain SQL: one text for each stream, put together by the database, is a fifth of the time that a row for each type
takes. A type of which a stream acknowledged nothing, and refused what it was sent, is left out: the client has nothing
of it. What was read is kept as long as no ADS process reports that its clients or what they ask for became others.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

from django.db import connection

from controlplane.clients.clock import database_now
from controlplane.clients.facts import unpack_names
from controlplane.clients.fleet import Fleet, Member, NameSet
from controlplane.clients.models import NameSet as NameSetRow
from controlplane.clients.models import Replica, Stream
from controlplane.clients.services.upkeep import DIED

# The streams of an ADS process that stopped reporting are closed, but its clients may well be connected to it still.
DOUBT = timedelta(minutes=10)
_CHUNK = 500
# Fleets that are kept: each takes some 500 B a client.
_MAX_KEPT = 4

_ONE_TEXT = {"sqlite": "group_concat", "postgresql": "string_agg"}
_MEMBERS = """
    SELECT client.id, environment.key, client.identity, client.node_id, client.node_cluster, client.user_agent,
        client.user_agent_version,
        {one_text}(sub.type || CASE WHEN sub.wildcard THEN ':1' ELSE ':0' END
            || CASE WHEN sub.state = 'nacked' AND sub.acked = '' THEN ':1:' ELSE ':0:' END || sub.name_set_id, ',')
    FROM clients_stream stream
    JOIN clients_client client ON client.id = stream.client_id
    JOIN catalog_environment environment ON environment.id = client.environment_id
    LEFT JOIN clients_subscription sub ON sub.stream_id = stream.id
    WHERE {which} {where}
    GROUP BY stream.id, client.id, environment.key
"""
_OPEN = "stream.closed_at IS NULL"
_LEFT = """stream.closed_at >= %s AND stream.cause = %s AND NOT EXISTS (
    SELECT 1 FROM clients_stream other WHERE other.client_id = client.id AND other.closed_at IS NULL)"""

_Row = tuple[str, str, str, str, str, str, str, str | None]
_Stamp = tuple[object, ...]
_kept: dict[str, tuple[_Stamp, Fleet]] = {}


def fleet_read(*, environment_key: str = "") -> Fleet:
    """The clients connected to an environment (empty: to any), with those of which nobody knows any more whether they
    are. Their metadata is not kept.
    """
    stamp = _stamp()
    known = _kept.get(environment_key)
    if known is not None and known[0] == stamp:
        return known[1]
    fleet = _read(environment_key)
    if all(member.certain for member in fleet.members):  # the others are forgotten as time goes by
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        _kept[environment_key] = (stamp, fleet)
    return fleet


def _stamp() -> _Stamp:
    """A value that is different after anything that changes who is connected or what is asked for: a report of an ADS
    process, streams that were closed for it, or another database.
    """
    columns = ("pk", "started_at", "fleet_batches", "seen_at", "stopped_at")
    replicas = Replica.objects.order_by("pk").values_list(*columns)
    said = tuple((pk, started, batches or seen, stopped) for pk, started, batches, seen, stopped in replicas)
    return (connection.settings_dict["NAME"], Stream.objects.filter(closed_at=None).count(), *said)


def _read(environment_key: str) -> Fleet:
    members: dict[str, Member] = {}
    since = database_now() - DOUBT
    for which, values, certain in ((_OPEN, (), True), (_LEFT, (since, DIED), False)):
        for client, key, identity, node_id, cluster, agent, version, asks in _rows(which, values, environment_key):
            known = members.get(client)
            whole = ",".join(filter(None, (known.asks if known is not None else "", asks)))  # of all its streams
            members[client] = Member(client, key, identity, node_id, cluster, (agent, version), whole, certain)
    ordered = sorted(members.values(), key=attrgetter("node_id", "client"))
    return Fleet(tuple(ordered), _names({member.asks for member in members.values()}))


def _rows(which: str, values: Sequence[str | datetime], environment_key: str) -> list[_Row]:
    where = "AND environment.key = %s" if environment_key else ""
    text = _MEMBERS.format(one_text=_ONE_TEXT[connection.vendor], which=which, where=where)
    with connection.cursor() as cursor:
        cursor.execute(text, [*values, *([environment_key] if environment_key else [])])
        rows: list[_Row] = cursor.fetchall()
        return rows


def _names(asks: Collection[str]) -> dict[str, NameSet]:
    wanted = sorted({part.rpartition(":")[2] for text in asks for part in text.split(",") if part})
    return {
        key: NameSet(unpack_names(bytes(packed)))
        for start in range(0, len(wanted), _CHUNK)
        for key, packed in NameSetRow.objects.filter(pk__in=wanted[start : start + _CHUNK]).values_list("pk", "names")
    }
