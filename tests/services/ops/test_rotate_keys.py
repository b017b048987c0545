"""Moving what is stored to a newer key, on both databases."""

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.builder.services import builds_sweep
from controlplane.catalog.manifests import manifest_of
from controlplane.catalog.models import Blob
from controlplane.catalog.selectors import resource_get
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.factors.models import AuthenticatorApp
from controlplane.factors.sealing import secret_open, secret_seal
from controlplane.journal.models import AuditEvent
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel
from controlplane.notify.sealing import channel_secret
from controlplane.notify.services import channel_create
from controlplane.ops.keys import foreign_keys_sentence
from controlplane.snapshots.models import SnapshotRow
from controlplane.snapshots.selectors import snapshot_heads
from tests.support.keys import FOREIGN_KEY, NEW_KEY, UseKeys
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody
from xdscore.resource_types import SECRET

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"]),
    pytest.mark.usefixtures("database"),
]

DANA = somebody("dana", ADMIN_SCOPES)


def put(*trees: dict[str, object]) -> bool:
    made = change_apply(environment_key="default", edits=[Put(parsed(tree)) for tree in trees], actor=DANA)
    builds_sweep()
    return made.changed


def secret() -> bytes:
    return resource_get(environment_key="default", kind=SECRET, name="key-7").any_bytes


def test_rotate__new_key_in_front__everything_is_under_it_and_the_old_one_can_go(
    use_keys: UseKeys, old_key: bytes
) -> None:
    put(cluster(), *(tls_secret(f"key-{number}", f"hunter{number}") for number in range(250)))
    before = dict(Blob.objects.filter(kind="secret").values_list("hash", "data"))
    rows = list(SnapshotRow.objects.values_list("epoch", "root_id"))

    use_keys(NEW_KEY, old_key)
    call_command("rotate_keys")

    assert not put(tls_secret("key-7", "hunter7"))  # unchanged stays unchanged: no new version on the wire (D18)
    use_keys(NEW_KEY)
    after = dict(Blob.objects.filter(kind="secret").values_list("hash", "data"))
    assert after.keys() == before.keys()
    assert all(bytes(after[address]) != bytes(before[address]) for address in before)
    assert b"hunter7" in secret()
    assert all(head.genuine for head in snapshot_heads())
    assert list(SnapshotRow.objects.values_list("epoch", "root_id")) == rows
    rotated = {"secrets": 250, "channels": 0, "authenticator apps": 0, "sign-ins": 0, "snapshots": len(rows)}
    assert AuditEvent.objects.get(verb="keys.rotated").detail == rotated


def test_rotate__old_keys_dropped_again_and_again__unchanged_secrets_stay_unchanged(
    use_keys: UseKeys, old_key: bytes
) -> None:
    put(tls_secret("key-7", "hunter7"))
    blobs = set(Blob.objects.filter(kind="secret").values_list("hash", flat=True))
    kept = manifest()
    for before, after in ((old_key, NEW_KEY), (NEW_KEY, FOREIGN_KEY)):
        use_keys(after, before)
        call_command("rotate_keys")
        use_keys(after)

        # C31: neither a new version on the wire, nor another placeholder in anybody's files.
        assert not put(tls_secret("key-7", "hunter7"))
        assert manifest() == kept
    assert set(Blob.objects.filter(kind="secret").values_list("hash", flat=True)) == blobs


def test_rotate__secret_of_a_channel__is_under_the_new_key_too(use_keys: UseKeys, old_key: bytes) -> None:
    wanted = NewChannel("c", ChannelKind.WEBHOOK, "https://hooks.example.com/x", (), ())
    _made, secret = channel_create(wanted=wanted, actor=DANA)

    use_keys(NEW_KEY, old_key)
    call_command("rotate_keys")
    use_keys(NEW_KEY)

    assert channel_secret(Channel.objects.get()) == secret.encode()


def test_rotate__secret_of_an_authenticator_app__is_under_the_new_key_too_or_its_owner_is_named(
    use_keys: UseKeys, old_key: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    ana = User.objects.create_user("ana")
    sealed = secret_seal(ana.pk, "JBSWY3DPEHPK3PXP")
    AuthenticatorApp.objects.create(user=ana, sealed=sealed, last_step=0)

    use_keys(FOREIGN_KEY)
    told = foreign_keys_sentence()
    use_keys(NEW_KEY, old_key)
    call_command("rotate_keys")
    use_keys(NEW_KEY)

    assert "1 secret of an authenticator app" in told
    assert secret_open(ana.pk, bytes(AuthenticatorApp.objects.get().sealed)) == "JBSWY3DPEHPK3PXP"
    assert "1 secrets of authenticator apps" in capsys.readouterr().out


def manifest() -> dict[str, object]:
    return dict(manifest_of(resource_get(environment_key="default", kind=SECRET, name="key-7")))


def test_rotate__again__moves_nothing(use_keys: UseKeys, old_key: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    put(tls_secret("key-7", "hunter7"))
    use_keys(NEW_KEY, old_key)
    call_command("rotate_keys")
    capsys.readouterr()

    call_command("rotate_keys")

    assert (
        "Sealed anew: 0 secrets, 0 secrets of channels, 0 secrets of authenticator apps, 0 sign-ins. Signed anew: 0 "
        "snapshots." in capsys.readouterr().out
    )


def test_foreign_keys__wrong_key_and_the_right_one__are_told_by_what_they_made(
    use_keys: UseKeys, old_key: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    put(cluster(), tls_secret("key-7", "hunter7"), tls_secret("key-8", "hunter8"))
    wanted = NewChannel("c", ChannelKind.WEBHOOK, "https://hooks.example.com/x", (), ())
    channel_create(wanted=wanted, actor=DANA)
    well = foreign_keys_sentence()
    use_keys(FOREIGN_KEY)

    with pytest.raises(SystemExit) as caught:
        call_command("prepare")

    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert "open nothing of what this database holds" in told
    assert (
        "Made with keys that are not configured: 2 secrets, 1 secret of a channel, 1 snapshot. Nobody can open" in told
    )
    assert "add the missing keys behind the first one of PARLEY_ENCRYPTION_KEYS" in told
    use_keys(FOREIGN_KEY, old_key)
    assert (well, foreign_keys_sentence()) == ("", "")


def test_rotate__key_that_is_missing__says_so_and_makes_nothing_genuine(
    use_keys: UseKeys, old_key: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tls_secret("key-7", "hunter7"))
    use_keys(NEW_KEY, FOREIGN_KEY)

    with pytest.raises(SystemExit) as caught:
        call_command("rotate_keys")

    assert caught.value.code == 1
    assert "Left behind" in capsys.readouterr().err
    assert not any(head.genuine for head in snapshot_heads())
    use_keys(old_key)
    assert b"hunter7" in secret()
