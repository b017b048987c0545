"""Whether `manage.py prepare` can be skipped: a second start must take under 5 s, and looking takes 2 of them.

The mark says which tables this code wants and which database file had them. A file that was replaced, new migrations,
another release of Django or a lost token file make it void. PostgreSQL belongs to others too, so it is always asked.
"""

from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from controlplane.config.home import Home, private_replace
from controlplane.config.loading import Config
from controlplane.ops.supervisor.programs import ROOT


def prepared(config: Config, home: Home) -> bool:
    """Whether this home was prepared by this code."""
    wanted = [home.admin_token, *([home.client_token] if config.ads_auth.facts.tokens else [])]
    if config.database is not None or not all(file.exists() for file in wanted):
        return False
    try:
        return _mark(home).read_text(encoding="ascii").strip() == _state(home)
    except OSError:
        return False


def prepared_note(config: Config, home: Home) -> None:
    """Store the mark by which `prepared` sees that this home is prepared."""
    if config.database is None:
        private_replace(_mark(home), _state(home))


def _mark(home: Home) -> Path:
    return home.run / "prepared"


def _state(home: Home) -> str:
    """A hash that changes when the database file or the migrations do. Raises OSError when there is no database
    file.
    """
    database = home.database.stat()
    migrations = sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("controlplane/*/migrations/*.py"))
    parts = (version("django"), str(database.st_dev), str(database.st_ino), *migrations)
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
