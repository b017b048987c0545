"""Says what is stored under keys that are not configured: before anything serves, not when somebody needs it."""

from controlplane.catalog.services import secrets_foreign
from controlplane.factors.sealing import secrets_foreign as app_secrets_foreign
from controlplane.notify.sealing import secrets_foreign as channel_secrets_foreign
from controlplane.snapshots.rotation import snapshots_foreign


def foreign_keys_sentence() -> str:
    """A sentence that says how much of what is stored no configured key decrypts or verifies, and what to do; empty
    when there is no such thing. A few queries.
    """
    counts = {
        "secret": secrets_foreign(),
        "secret of a channel": channel_secrets_foreign(),
        "secret of an authenticator app": app_secrets_foreign(),
        "snapshot": snapshots_foreign(),
    }
    found = [_count(number, what) for what, number in counts.items() if number]
    if not found:
        return ""
    return (
        f"Made with keys that are not configured: {', '.join(found)}. Nobody can open these secrets or serve these "
        "snapshots: add the missing keys behind the first one of PARLEY_ENCRYPTION_KEYS, or of encryption.keys in the "
        "home, and restart everything. Secrets whose key is lost must be written again."
    )


def _count(number: int, what: str) -> str:
    noun, of, rest = what.partition(" of ")
    return f"{number} {noun}{'s' if number != 1 else ''}{of}{rest}"
