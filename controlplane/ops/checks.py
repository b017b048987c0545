"""What `manage.py check --deploy` says of this configuration: by the variables that settle it, in place of Django's
settings that follow from them (`settings.SILENCED_SYSTEM_CHECKS`).
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register  # noqa: A004 - Django's name


@register(Tags.security, deploy=True)
def https_is_kept(**_arguments: Any) -> Sequence[Warning]:
    """Django's check that people reach the console over https; cookies for TLS alone, HSTS and the redirection to https
    follow from that.
    """
    config = settings.PARLEY
    if not config.https:
        return [
            Warning(
                f"PARLEY_PUBLIC_URL is {config.public_url}: sessions of people travel where others can read them.",
                hint="Put a proxy that ends TLS in front of web, and set PARLEY_PUBLIC_URL=https://… and "
                "PARLEY_TRUSTED_PROXIES to its address. On this machine alone it may stay.",
                id="parley.W001",
            )
        ]
    if not config.trusted_proxies:
        return [
            Warning(
                "PARLEY_TRUSTED_PROXIES is empty: who comes over plain http is not sent to https.",
                hint="Set it to the address of the proxy that ends TLS; or let that proxy redirect.",
                id="parley.W002",
            )
        ]
    return []
