"""What is said of keys that do not fit, wherever it shows. Pure."""

from collections.abc import Sequence


def foreign_sentence(ours: Sequence[str], noted: Sequence[str]) -> str:
    """A sentence for operators: this process has none of the database's encryption keys, and what to do. `ours` are the
    ids of the process's keys, `noted` those stored in the database.
    """
    return (
        f"The encryption keys of this process ({', '.join(ours)}) open nothing of what this database holds, which is "
        f"under {', '.join(noted)}: set PARLEY_ENCRYPTION_KEYS (without a server database: encryption.keys in the "
        "home) to the keys that the other processes have, and start it again. If those keys are lost for good: "
        "manage.py rotate_keys --give-up-lost."
    )
