"""The two database aliases, in Django's words (decisions D6a, C30; reliability.md part (e), "DB").

`default` writes. `snapshot_reader` is the same database for one purpose: reading many rows as of one moment, which the
builder does. With SQLite that is a deferred transaction, because an immediate one takes the only writer lock; with
PostgreSQL it is REPEATABLE READ.
"""

from pathlib import Path
from typing import Final, TypedDict

from controlplane.config.home import Home
from controlplane.config.loading import Config
from controlplane.config.values import Postgres
from xdscore.limits import Limits

READER: Final = "snapshot_reader"

# WAL lets readers go on beside the writer; NORMAL loses no committed change when the process dies, and after a power
# loss the lineage (D5b) tells replicas that epochs went back.
_SQLITE_INIT: Final = "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;"

# A thread that waits longer than this for a connection fails fast (F7).
_POOL_WAIT_S: Final = 5
# A server that swallows packets must not hold a starting ADS for minutes: it serves from disk within P9's ten seconds.
_CONNECT_S: Final = 3
# A look at a file takes less time than to open it. Not for ever: the file may be another one by then. To a server each
# look of ADS is a new connection, which finds out within _CONNECT_S that nobody answers.
_FILE_KEPT_OPEN_S: Final = 60
# A server that went away is looked for every second: with the library's default, twice as long after each try, a write
# right after the server came back waited as long as the server had been away.
_LOOK_AGAIN_FACTOR: Final = 1.0
_POOL_SIZE_MAX: Final = 20  # PostgreSQL's default of 100 connections serves a few such processes

Settings = dict[str, object]


class _Test(TypedDict, total=False):
    NAME: str
    MIRROR: str


def databases(config: Config, *, pooled: bool) -> dict[str, Settings]:
    """Django's setting DATABASES, with two aliases for one database.

    `pooled`: keep PostgreSQL connections in a pool: more requests may run at once than there should be connections. In
        other processes each thread keeps its own. A file is kept open by each thread everywhere.
    """
    if config.database is None:
        writer = _sqlite(config, mode="IMMEDIATE", test=_Test())
        reader = _sqlite(config, mode="DEFERRED", test=_Test(MIRROR="default"))
    else:
        writer = _postgres(config.database, config.limits, pooled=pooled, reader=False)
        reader = _postgres(config.database, config.limits, pooled=pooled, reader=True)
    return {"default": writer, READER: reader}


def _sqlite(config: Config, *, mode: str, test: _Test) -> Settings:
    home = Home(config.home)
    return {
        "ENGINE": "controlplane.database.sqlite",
        "NAME": str(home.database),
        "OPTIONS": {
            "transaction_mode": mode,
            "timeout": config.limits.sqlite_busy_ms / 1000,
            "init_command": _SQLITE_INIT,
        },
        "CONN_MAX_AGE": _FILE_KEPT_OPEN_S,
        # A file, as in production: a shared database in memory locks tables where a file makes writers wait.
        "TEST": test or _Test(NAME=str(Path(home.run / "test.sqlite3"))),
    }


def _postgres(database: Postgres, limits: Limits, *, pooled: bool, reader: bool) -> Settings:
    session = {
        "statement_timeout": limits.statement_timeout_ms,
        "lock_timeout": limits.lock_timeout_ms,
        "idle_in_transaction_session_timeout": limits.idle_in_transaction_ms,
    }
    parameters = [f"-c {name}={milliseconds}" for name, milliseconds in session.items()]
    options: Settings = {"connect_timeout": _CONNECT_S, **dict(database.options)}
    if reader:
        parameters += [r"-c default_transaction_isolation=repeatable\ read", "-c default_transaction_read_only=on"]
    options["options"] = " ".join(parameters)
    if pooled:
        # Here: only who keeps a pool has the library. It takes no option for this.
        from psycopg_pool.base import AttemptWithBackoff  # noqa: PLC0415

        AttemptWithBackoff.DELAY_BACKOFF = _LOOK_AGAIN_FACTOR
        options["pool"] = {"min_size": 0, "max_size": _POOL_SIZE_MAX, "timeout": _POOL_WAIT_S}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database.name,
        "USER": database.user,
        "PASSWORD": database.password,
        "HOST": database.host,
        "PORT": database.port,
        "OPTIONS": options,
        # A connection that died while it lay in the pool is found there, not by the request that is given it.
        "CONN_HEALTH_CHECKS": pooled,
        "TEST": _Test(MIRROR="default") if reader else _Test(),
    }
