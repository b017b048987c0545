"""What an operator decides about the engine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Fixed for the life of a process.

    `repeat_errors`: LDS and CDS responses repeat the errors that last (F9). `public_url`: where the links in error
    texts lead. `max_names`: per request, and per type of a stream (C11).
    """

    repeat_errors: bool = True
    public_url: str = ""
    # reliability (e): a wildcard is better above that.
    max_names: int = 10_000
