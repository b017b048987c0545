"""The secret with which rollouts of an environment sign what they ask webhooks.

It is made of a key that is not in the database and of a salt that is: whoever reads the database alone cannot sign, a
rotation of the encryption keys changes nothing, and another salt is another secret.
"""

import base64
import secrets
from typing import Final

from django.db import transaction

from controlplane.accounts.principal import Principal
from controlplane.catalog.lasting import lasting_keys
from controlplane.catalog.services import environment_lock
from controlplane.journal.services import audit_record
from controlplane.outside.posting import SECRET_MARK
from controlplane.rollouts.models import WebhookKey

_SALT_BYTES: Final = 32


def webhook_secret_make(*, environment_key: str, actor: Principal, request_id: str = "") -> str:
    """Make another secret, with which rollouts of the environment sign from now on, and return it as the text that is
    shown once. Raises NotFound.
    """
    with transaction.atomic(durable=True):
        environment = environment_lock(key=environment_key)
        salt = secrets.token_hex(_SALT_BYTES)
        WebhookKey.objects.update_or_create(environment=environment, defaults={"salt": salt})
        audit_record(
            actor=actor,
            verb="rollout.secret_made",
            subject=f"environment/{environment.key}",
            environment=environment.key,
            request_id=request_id,
            detail={},
        )
    return _secret(salt)


def webhook_secret(environment_id: int) -> bytes:
    """The secret with which rollouts of the environment with this row id sign; where none was made yet, one that nobody
    was shown.
    """
    row, _ = WebhookKey.objects.get_or_create(
        environment_id=environment_id, defaults={"salt": secrets.token_hex(_SALT_BYTES)}
    )
    return _secret(row.salt).encode()


def _secret(salt: str) -> str:
    return SECRET_MARK + base64.urlsafe_b64encode(lasting_keys().webhook_secret(salt)).rstrip(b"=").decode()
