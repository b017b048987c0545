"""Tables of rules that tests publish with."""

from xdscore.access import AccessTable, Effect, Rule

_LAST = 1_000_000
# A default never covers secrets.
SECRETS_FOR_ALL = Rule(_LAST, Effect.ALLOW, types=frozenset({"secret"}))
EVERYTHING_FOR_ALL = AccessTable(Effect.ALLOW, rules=(SECRETS_FOR_ALL,))
