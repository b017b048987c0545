"""What an operator decides about the engine."""

from dataclasses import dataclass, field

from xdscore.limits import Limits


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Fixed for the life of a process.

    `repeat_errors`: full states repeat the errors that last (F9). `public_url`: where the links in error
    texts lead. `limits`: of the product's table, those that bound requests, responses and waiting.
    """

    repeat_errors: bool = True
    public_url: str = ""
    limits: Limits = field(default_factory=Limits)
