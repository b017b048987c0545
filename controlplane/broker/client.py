"""The Redis client for hints. Timeouts are short: nothing waits for Redis on purpose (architecture.md law 4)."""

from functools import cache

from django.conf import settings
from redis import Redis

from controlplane.config import home


@cache
def redis_client() -> Redis:
    """The Redis client of this process, with a connection pool of its own. It connects when it is first used."""
    limits = settings.PARLEY.limits
    return Redis.from_url(
        client_url(),
        socket_timeout=limits.redis_timeout_ms / 1000,
        socket_connect_timeout=limits.redis_timeout_ms / 1000,
        health_check_interval=limits.redis_health_check_s,
    )


def client_url() -> str:
    """The URL of the broker, as clients of Redis take it."""
    return home.redis_client_url(home.broker_url(settings.PARLEY))
