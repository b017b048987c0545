"""Every limit of Parley, in one table.

`Limits` is the table: a field is one limit, and from it come the variable `PARLEY_LIMIT_<FIELD>`, its check, its
reference page and its boundary tests (decisions U26). `controlplane.config` reads the variables; whoever enforces a
limit is given the value. Defaults and reasons are those of reliability.md part (e), unless a row says otherwise.

Some rows of part (e) have no variable. Protocol rules and not numbers: one outstanding push per stream and type (I3),
and rejected content that is never sent again on its stream (N3). Fixed, because replicas and pages must say the same:
the 300 characters of an error text (decisions A4). What benchmarks and alerts hold the product to: the
time in which a name is answered (T1). Connections from one source address: behind a balancer, all of them have one.
What a connection without a call costs is bounded by its handshake and its idle time instead, what a caller costs by the
budgets of its identity or address (`adsserver.limits.budgets`); a firewall or a balancer can count connections.
"""

from dataclasses import dataclass, field, fields
from typing import Final

VARIABLE_PREFIX: Final = "PARLEY_LIMIT_"

_KIB: Final = 1024
_MIB: Final = 1024 * 1024
# "No more than this" for counts that have no natural ceiling: a value above it is a typing mistake.
_MANY: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Limit:
    """One configurable limit. `unit` is the word that people read; the environment variable's value is a whole number
    of that unit. `source` cites where the default is from.
    """

    name: str
    default: int
    unit: str
    minimum: int
    maximum: int
    meaning: str
    source: str

    @property
    def variable(self) -> str:
        """The environment variable that sets this limit."""
        return VARIABLE_PREFIX + self.name.upper()


def _limit(default: int, unit: str, minimum: int, maximum: int, meaning: str, source: str) -> int:
    # The declared type of a field is the type of its value; dataclasses.field() is typed the same way.
    metadata = {"unit": unit, "minimum": minimum, "maximum": maximum, "meaning": meaning, "source": source}
    value: int = field(default=default, metadata=metadata)
    return value


@dataclass(frozen=True, slots=True)
class Limits:
    """The values of all limits of a process, each a field that is described by its own row. `Limits()` has the
    defaults.
    """

    # Streams and connections of one ADS process
    streams_per_replica: int = _limit(5_000, "streams", 1, 1_000_000, "Open streams of one ADS process.", "(e)")
    memory_mib: int = _limit(
        0,
        "MiB",
        0,
        1_000_000,
        "Memory of one ADS process; at 80 % of it no new stream. "
        "0: a worker's share of what its cgroup or machine has; 1000000: as good as no bound.",
        "F32",
    )
    streams_admitted_per_s: int = _limit(1_500, "streams/s", 1, 100_000, "Ceiling on new streams.", "(e), C12")
    admission_pause_lag_ms: int = _limit(
        100, "ms", 1, 10_000, "Event loop lag above which accepting pauses.", "(e), C12"
    )
    admission_wait_ms: int = _limit(5_000, "ms", 0, 15_000, "Longest wait for admission before a refusal.", "(e), C12")
    streams_per_node: int = _limit(64, "streams", 1, _MANY, "Streams of one (identity, node id).", "(e), C14")
    streams_per_identity: int = _limit(
        2_000, "streams", 1, _MANY, "Open calls of one identity, from the moment they arrive.", "(e), C14"
    )
    # Where nobody has an identity, a balancer or a sidecar in front gives a whole fleet one address, and a lower
    # default would lock most of it out. Where data planes come from addresses of their own, a lower number keeps one of
    # them from taking every place.
    streams_per_address: int = _limit(
        0,
        "streams",
        0,
        _MANY,
        "Open calls of one address (IPv6: /64) without an identity. "
        "0: as many streams as a process may hold, and those of one more connection.",
        "threat 10",
    )
    # Of callers among others, as below. An identity may open as many at once as it ever had at once, three times over.
    caller_openings_per_s: int = _limit(
        50, "calls/s", 1, 100_000, "Calls that one identity opens anew, again and again.", "threat 10"
    )
    first_request_ms: int = _limit(
        5_000, "ms", 100, 120_000, "Time a call has for its first request; then it ends.", "threat 10"
    )
    connection_idle_s: int = _limit(60, "s", 1, 3_600, "Age at which a connection without calls is closed.", "(e)")
    handshake_timeout_ms: int = _limit(
        10_000, "ms", 100, 120_000, "Time a new connection has for its handshake.", "(e)"
    )
    client_certificates: int = _limit(
        10, "certificates", 1, 20, "Certificates that a client presents in its handshake, its own among them.", "S2"
    )
    client_certificates_bytes: int = _limit(
        32 * _KIB, "bytes", 4 * _KIB, _MIB, "Size of these certificates (PEM).", "S2"
    )
    concurrent_streams: int = _limit(100, "streams", 1, 10_000, "HTTP/2 streams of one connection.", "(e)")
    keepalive_time_ms: int = _limit(15_000, "ms", 1_000, 3_600_000, "Silence before a keepalive ping.", "(e)")
    keepalive_timeout_ms: int = _limit(10_000, "ms", 100, 600_000, "Wait for the answer to a keepalive ping.", "(e)")
    ping_timeout_ms: int = _limit(
        10_000, "ms", 100, 600_000, "Wait for the answer to an HTTP/2 ping.", "(e), finding 10"
    )
    ping_interval_ms: int = _limit(5_000, "ms", 0, 600_000, "Shortest interval of a client's pings.", "(e)")
    ping_strikes: int = _limit(10, "pings", 0, 10_000, "Pings that may come too early before GOAWAY.", "(e)")
    connection_age_s: int = _limit(3_600, "s", 1, 604_800, "Age at which a connection is asked to reconnect.", "(e)")
    connection_age_jitter_percent: int = _limit(10, "%", 0, 50, "Spread of that age, up and down.", "(e)")
    connection_grace_s: int = _limit(60, "s", 0, 3_600, "Time a connection has to end after that age.", "(e)")

    # Requests of a stream
    request_bytes: int = _limit(32 * _MIB, "bytes", 64 * _KIB, 1024 * _MIB, "Largest message ADS receives.", "(e)")
    metadata_bytes: int = _limit(8 * _KIB, "bytes", _KIB, _MIB, "Metadata of one call.", "(e)")
    requests_per_s: int = _limit(50, "requests/s", 1, 100_000, "Requests read from one stream.", "(e)")
    request_burst: int = _limit(300, "requests", 1, 1_000_000, "Requests read at once before that rate applies.", "(e)")
    names_per_type: int = _limit(10_000, "names", 1, 1_000_000, "Names subscribed on one stream and type.", "(e)")
    names_per_request: int = _limit(10_000, "names", 1, 1_000_000, "Names in one request.", "(e)")
    # A name of usual length counts some 400 bytes: a delta client may come back with 100,000 of them, each in another
    # version (resources_per_environment), and ask for 10,000 of each type; but not for 40,000 of the greatest length.
    name_bytes_per_stream: int = _limit(
        48 * _MIB,
        "bytes",
        64 * _KIB,
        1024 * _MIB,
        "Memory of the names that one stream asks for, and of its node.",
        "threat 10",
    )
    # A fleet of one identity, or behind one address: 2,000 streams that ask for 500 names each.
    name_bytes_per_identity: int = _limit(
        512 * _MIB,
        "bytes",
        64 * _KIB,
        4096 * _MIB,
        "The same of all streams of one identity, or of one address without an identity.",
        "threat 10",
    )
    # Of callers among others: who is alone may have all of the loop.
    caller_work_ms_per_s: int = _limit(
        300, "ms/s", 10, 1_000, "Event loop time of one identity while the loop is busy with others, too.", "threat 10"
    )
    caller_work_burst_ms: int = _limit(
        250, "ms", 1, 60_000, "Event loop time of an identity before that rate applies.", "threat 10"
    )
    caller_bytes_per_s: int = _limit(
        8 * _MIB, "bytes/s", 64 * _KIB, 1024 * _MIB, "Bytes read from one identity while others are there.", "threat 10"
    )
    caller_bytes_burst: int = _limit(
        64 * _MIB, "bytes", 64 * _KIB, 4096 * _MIB, "Bytes of an identity before that rate applies.", "threat 10"
    )
    name_bytes: int = _limit(1_024, "bytes", 16, 1_024, "Length of a resource name; the database's limit too.", "(e)")

    # Answers
    first_snapshot_wait_ms: int = _limit(
        10_000, "ms", 0, 14_999, "Silence kept while there is no snapshot.", "decisions C4, P9"
    )
    fan_out_slice_ms: int = _limit(
        5, "ms", 1, 1_000, "Event loop time of one slice of a fan-out.", "(e), decisions C11"
    )
    sotw_state_warning_bytes: int = _limit(2 * _MIB, "bytes", 1, 2048 * _MIB, "SotW state of a type: warn.", "(e)")
    sotw_state_bytes: int = _limit(3_670_016, "bytes", 1, 2048 * _MIB, "SotW state of a type: refuse.", "(e), D17")
    delta_response_bytes: int = _limit(
        _MIB, "bytes", _KIB, 4 * _MIB, "Responses that may be split are split here.", "(e), F23"
    )
    names_per_step: int = _limit(
        1_000,
        "names",
        1,
        1_000_000,
        "Names of a stream that are looked at before others have a turn.",
        "(e), decisions C11",
    )
    errors_per_response: int = _limit(1_000, "errors", 1, 1_000_000, "Resource errors of one response.", "(e)")
    unanswered_responses: int = _limit(
        8, "responses", 1, 1_000, "Outstanding nonces of one stream and type.", "decisions C5, I3"
    )
    silent_client_s: int = _limit(
        30, "s", 1, 3_600, "Silence after which a push may pass a client.", "decisions C5, I3"
    )
    unacknowledged_alarm_s: int = _limit(60, "s", 1, 86_400, "Age of an unanswered response that alarms.", "(e)")
    write_timeout_s: int = _limit(30, "s", 1, 3_600, "Time without progress that ends a slow stream.", "(e)")

    # Clients that poll, over REST or by Fetch
    polled_subscriptions: int = _limit(
        20_000, "subscriptions", 1, 1_000_000, "Subscriptions of polling clients that one ADS process remembers.", "L6"
    )
    polled_per_identity: int = _limit(10_000, "subscriptions", 1, 1_000_000, "Those of one identity.", "L6")
    polled_per_node: int = _limit(
        2_000, "subscriptions", 1, _MANY, "Those of one (identity or address, node id).", "L6"
    )
    poll_silence_s: int = _limit(
        180,
        "s",
        1,
        3_600,
        "Silence after the first poll of a subscription that ends it; later three times its pace.",
        "L5",
    )
    poll_wait_s: int = _limit(60, "s", 0, 600, "Longest wait of a poll for something new (Prefer: wait).", "L7")
    poll_waits_per_identity: int = _limit(
        500, "polls", 0, 1_000_000, "Polls of one identity that wait; the next is answered at once.", "L7"
    )
    rest_connections: int = _limit(
        2_000, "connections", 1, 1_000_000, "Open connections of the REST port of one ADS process.", "L8"
    )
    rest_request_bytes: int = _limit(2 * _MIB, "bytes", 4 * _KIB, 64 * _MIB, "Largest body of a poll over REST.", "L8")

    # The status service (CSDS)
    status_entries: int = _limit(50_000, "entries", 1, 10_000_000, "Clients and resources of one CSDS answer.", "K2")
    status_bytes: int = _limit(16 * _MIB, "bytes", _KIB, 1024 * _MIB, "Size of one CSDS answer.", "K2")
    status_calls: int = _limit(16, "calls", 1, 10_000, "CSDS calls of one API token at once.", "S6")

    # NACKs and facts
    isolation_resends: int = _limit(
        16, "responses", 0, 1_000, "Re-sends that isolate the suspects of a NACK.", "decisions C8, N3"
    )
    nack_text_bytes: int = _limit(4 * _KIB, "bytes", 256, 64 * _KIB, "Stored length of a NACK's text.", "(e)")
    nacks_per_type: int = _limit(20, "rows", 1, 10_000, "Stored NACKs of one client and type.", "(e)")
    nacks_per_environment: int = _limit(
        10_000, "rows", 1, 10_000_000, "Stored NACKs of an environment, those that wait and those digested.", "(e)"
    )
    nacks_waiting: int = _limit(
        10_000, "NACKs", 1, 1_000_000, "NACKs of one process that wait for the database.", "part 7, Facts"
    )
    clients_per_environment: int = _limit(
        50_000, "rows", 1, 10_000_000, "Clients of an environment that are remembered although they left.", "N8"
    )
    closed_streams_per_environment: int = _limit(
        200_000, "rows", 1, 10_000_000, "Ended streams of an environment that are remembered.", "N8"
    )
    incidents_per_environment: int = _limit(
        1_000, "incidents", 1, 100_000, "Unresolved refusals of an environment that are told apart.", "N8"
    )
    incidents_per_identity: int = _limit(
        200, "incidents", 1, 100_000, "Those of them that one identity, else one address, opened.", "N8"
    )
    incident_clients_per_identity: int = _limit(
        10_000, "clients", 1, 1_000_000, "Clients of one incident that one identity, else one address, is.", "N8"
    )
    resolved_incidents_per_environment: int = _limit(
        10_000, "incidents", 1, 1_000_000, "Resolved refusals of an environment that are remembered.", "N8"
    )
    messages_per_h: int = _limit(
        60,
        "messages/h",
        1,
        10_000,
        "Messages of an environment to channels: so many of what data planes cause, as many of the rest.",
        "texts.md 6",
    )
    messages_per_identity_h: int = _limit(
        20, "messages/h", 1, 10_000, "Those of them that one identity, else one address, caused.", "texts.md 6"
    )
    replica_forget_s: int = _limit(
        3_600, "s", 60, 86_400, "How long an ADS process that ended without a goodbye counts as silent.", "U15"
    )
    nack_retention_days: int = _limit(14, "days", 1, 3_650, "Age at which stored NACKs are removed.", "(e)")
    holding_history_h: int = _limit(
        24, "h", 1, 720, "Age at which it is forgotten what clients had before what they have.", "truth.md H6"
    )
    holding_moves_per_environment: int = _limit(
        50_000, "rows", 100, 10_000_000, "Stored moves of clients from what they had to what they have.", "truth.md H6"
    )
    history_minutes_h: int = _limit(
        24, "h", 1, 168, "For how long what fleets did is kept by the minute; then by ten.", "truth.md H6"
    )
    history_days: int = _limit(14, "days", 8, 365, "Age at which what fleets did is removed.", "truth.md H6")
    nack_writes_per_s: int = _limit(10, "writes/s", 1, 10_000, "Database writes for NACKs of one process.", "(e)")
    fleet_drop_percent: int = _limit(
        20,
        "%",
        1,
        100,
        "Share of an environment's clients that may leave in a minute before people are told.",
        "texts.md 6",
    )
    denied_names_per_h: int = _limit(
        100, "names/h", 1, _MANY, "Distinct denied names of an identity that alarm.", "(e)"
    )

    # What operators write
    resources_per_environment: int = _limit(100_000, "resources", 1, 10_000_000, "Resources of an environment.", "(e)")
    resource_bytes: int = _limit(_MIB, "bytes", _KIB, 64 * _MIB, "Size of one resource.", "(e)")
    # Renewed at a sixth of it at the latest, as often as a stream is looked at otherwise (reliability (e)).
    ttl_min_ms: int = _limit(15_000, "ms", 3_000, 3_600_000, "Shortest ttl of a resource.", "protocol.md G2")
    ttl_max_s: int = _limit(604_800, "s", 3_600, 604_800, "Longest ttl of a resource.", "protocol.md G2")
    ttls_per_environment: int = _limit(
        1_000, "resources", 1, 100_000, "Resources of an environment that have a ttl.", "protocol.md G2"
    )
    message_depth: int = _limit(64, "levels", 8, 100, "Nesting of protobuf messages.", "(e)")
    any_depth: int = _limit(8, "levels", 1, 64, "Nesting of Any in Any.", "(e)")
    json_depth: int = _limit(64, "levels", 8, 500, "Nesting of JSON and YAML.", "(e)")
    body_bytes: int = _limit(4 * _MIB, "bytes", _KIB, 1024 * _MIB, "Body of a REST request.", "(e)")
    bulk_items: int = _limit(1_000, "items", 1, 1_000_000, "Items of a bulk request other than apply.", "(e)")
    said_names: int = _limit(5_000, "names", 1, 100_000, "Names in one report of what a data plane says.", "N8")
    apply_bytes: int = _limit(64 * _MIB, "bytes", _KIB, 1024 * _MIB, "Body of an apply.", "U13")
    apply_items: int = _limit(20_000, "items", 1, 1_000_000, "Resources and deletions of an apply.", "U13")
    user_requests_per_s: int = _limit(20, "requests/s", 1, 100_000, "REST requests of one person.", "(e)")
    token_requests_per_s: int = _limit(50, "requests/s", 1, 100_000, "REST requests of one API token.", "(e)")
    token_burst: int = _limit(200, "requests", 1, 1_000_000, "Requests of a token before that rate applies.", "(e)")
    anonymous_requests_per_s: int = _limit(
        10, "requests/s", 1, 100_000, "REST requests of one address (IPv6: a /64) where nobody is known.", "threat 22"
    )
    anonymous_burst: int = _limit(
        200, "requests", 1, 1_000_000, "Such requests at once before that rate applies.", "threat 22"
    )
    writes_at_once: int = _limit(
        8, "requests", 1, 1_000, "Requests that write which one web process works on at once.", "F28"
    )
    writes_waiting: int = _limit(1_000, "requests", 1, 100_000, "Requests that write which may wait for that.", "F28")
    logins_per_min: int = _limit(
        5,
        "attempts/min",
        1,
        10_000,
        "Attempts to log in with one name from one address, or from a known browser.",
        "(e)",
    )
    logins_per_address_per_min: int = _limit(
        30, "attempts/min", 1, 10_000, "Attempts to log in from one address (IPv6: a /64), any names.", "threat 22"
    )
    logins_per_name_per_min: int = _limit(
        50, "attempts/min", 1, 10_000, "Attempts to log in with one name before newcomers slow down.", "threat 22"
    )
    logins_newcomer_wait_s: int = _limit(
        600, "s", 1, 86_400, "Time between two attempts of one network with such a name.", "threat 22"
    )
    logins_at_once: int = _limit(
        2, "requests", 1, 100, "Sign-ins that one web process works on at once; as many of known browsers.", "threat 22"
    )
    logins_waiting: int = _limit(20, "requests", 1, 10_000, "Sign-ins that may wait for that.", "threat 22")
    # Three of a million codes are right at a time: who has the password needs years for an even chance.
    codes_per_h: int = _limit(
        20, "codes/h", 5, 10_000, "Wrong second factors of one account; as many in a known browser.", "threat 22"
    )
    sudo_s: int = _limit(
        900, "s", 60, 43_200, "How long it holds that somebody proved again who they are.", "threat 22"
    )
    oidc_timeout_ms: int = _limit(
        5_000,
        "ms",
        100,
        10_000,
        "One question to the identity provider, from the look-up of the name to the end.",
        "threat 22",
    )
    oidc_recheck_s: int = _limit(
        45, "s", 1, 45, "How old the identity provider's word may be before it is asked again.", "threat 22"
    )
    oidc_outage_s: int = _limit(
        900, "s", 60, 86_400, "How long its last word holds while the identity provider cannot be asked.", "threat 22"
    )
    page_requests_per_s: int = _limit(20, "requests/s", 1, 100_000, "Pages of one person.", "threat 22")
    anonymous_pages_per_s: int = _limit(
        10, "requests/s", 1, 100_000, "Pages of one address (IPv6: a /64) where nobody is signed in.", "threat 22"
    )
    page_burst: int = _limit(200, "requests", 1, 1_000_000, "Pages at once before those rates apply.", "threat 22")
    delivery_timeout_ms: int = _limit(
        10_000, "ms", 100, 30_000, "One try of a notification, from the look-up of the name to the end.", "U22"
    )
    channel_tests_per_min: int = _limit(
        10, "samples/min", 1, 10_000, "Samples that one web process sends to channels.", "U22"
    )
    change_wait_s: int = _limit(60, "s", 1, 600, "Longest `?wait=` of a request.", "U25")
    change_waiters: int = _limit(200, "requests", 1, 100_000, "Requests that may wait at once.", "U25")
    tail_watchers: int = _limit(20, "requests", 1, 90, "Live tails that are open at once, of all callers.", "law 4")
    tail_watchers_each: int = _limit(4, "requests", 1, 90, "Those of them that one person or token has open.", "law 4")
    tail_events_per_s: int = _limit(
        50, "events/s", 1, 1_000, "Events that one ADS process tells one live tail; more are counted.", "law 4"
    )
    rules_per_environment: int = _limit(5_000, "rules", 1, 100_000, "Access rules of an environment.", "(e)")
    client_groups_per_environment: int = _limit(
        1_000, "groups", 1, 10_000, "Client groups of an environment; a new stream is tried against each.", "(e), D16"
    )
    pattern_chars: int = _limit(256, "characters", 1, 256, "Length of a name pattern; the database's limit too.", "(e)")
    pattern_wildcards: int = _limit(2, "wildcards", 0, 8, "Wildcards of a name pattern.", "(e)")
    regex_chars: int = _limit(1_024, "characters", 1, 65_536, "Length of a regular expression (RE2 only).", "(e)")

    # Builds, queues and stores
    # The worker's sweep and the replicas' poll come one after the other, and a change must arrive in 3 s without Redis
    # (P11, F1): 1 s each, where part (e) has 2 s.
    reconcile_poll_ms: int = _limit(
        1_000, "ms", 100, 60_000, "Poll of the database when no hint comes.", "(e), decisions D7"
    )
    deep_validation_ms: int = _limit(
        10_000, "ms", 100, 25_000, "Time of a build in which Envoy may read what is new.", "threat 20"
    )
    deep_validation_resources: int = _limit(
        2_000, "resources", 1, 100_000, "Resources that Envoy is shown at once.", "threat 20"
    )
    epochs_kept: int = _limit(1_000, "epochs", 1, 1_000_000, "Snapshots kept of an environment.", "(e), C21")
    epochs_kept_days: int = _limit(7, "days", 1, 3_650, "Days in which snapshots are kept.", "(e), C21")
    task_soft_s: int = _limit(30, "s", 1, 3_600, "Time after which a task is asked to end.", "(e)")
    task_hard_s: int = _limit(60, "s", 2, 7_200, "Time after which a task is killed.", "(e)")
    task_visibility_s: int = _limit(120, "s", 3, 86_400, "Time after which a lost task is delivered again.", "(e)")
    statement_timeout_ms: int = _limit(5_000, "ms", 100, 600_000, "Longest SQL statement (PostgreSQL).", "(e)")
    lock_timeout_ms: int = _limit(2_000, "ms", 10, 600_000, "Longest wait for a lock (PostgreSQL).", "(e)")
    idle_in_transaction_ms: int = _limit(10_000, "ms", 100, 600_000, "Longest pause in a transaction.", "(e)")
    sqlite_busy_ms: int = _limit(5_000, "ms", 100, 600_000, "Longest wait for SQLite's writer lock.", "C30, F28")
    redis_timeout_ms: int = _limit(2_000, "ms", 10, 60_000, "Connect and read timeout of Redis clients.", "(e), F3")
    redis_health_check_s: int = _limit(10, "s", 1, 3_600, "Interval of a Redis connection's check.", "(e)")
    encryption_keys: int = _limit(2, "keys", 1, 16, "Key-encryption keys active at once.", "(e)")


def _table() -> tuple[Limit, ...]:
    return tuple(Limit(name=each.name, default=int(str(each.default)), **each.metadata) for each in fields(Limits))


LIMITS: Final[tuple[Limit, ...]] = _table()

# (smaller, larger): pairs that make sense in this order only.
ORDERED: Final[tuple[tuple[str, str], ...]] = (
    ("sotw_state_warning_bytes", "sotw_state_bytes"),
    ("requests_per_s", "request_burst"),
    ("names_per_request", "names_per_type"),
    ("incidents_per_identity", "incidents_per_environment"),
    ("messages_per_identity_h", "messages_per_h"),
    ("name_bytes_per_stream", "name_bytes_per_identity"),
    ("request_bytes", "caller_bytes_burst"),
    ("resource_bytes", "sotw_state_bytes"),
    ("bulk_items", "apply_items"),
    ("body_bytes", "apply_bytes"),
    ("token_requests_per_s", "token_burst"),
    ("anonymous_requests_per_s", "anonymous_burst"),
    ("page_requests_per_s", "page_burst"),
    ("anonymous_pages_per_s", "page_burst"),
    ("tail_watchers_each", "tail_watchers"),
    ("task_soft_s", "task_hard_s"),
    ("task_hard_s", "task_visibility_s"),
    ("lock_timeout_ms", "statement_timeout_ms"),
)
