"""Receivers behind TLS: who is who they should be is told, by mail and by webhook, and nobody else."""

import socket
import ssl
import threading
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import SYSTEM
from controlplane.config.values import Mail, MailSecurity, WebhookAllow
from controlplane.database.aliases import READER
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.services import channel_create, channel_test
from controlplane.notify.services.sending import Sent
from tests.support.certificates import Authority
from tests.support.slow_peers import Behaviour, after, slow_peer

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

TAKEN = [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]
# After the greeting: EHLO, MAIL, RCPT, DATA, the message, QUIT.
MAILED = [b"250 hello\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n", b"250 queued\r\n", b"221 bye\r\n"]


def end(peer: socket.socket, over: threading.Event) -> None:
    """Reads what is left, so that closing loses no answer."""
    del over
    peer.recv(4_096)


def secured(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, then: Behaviour) -> Behaviour:
    """Behaves so under TLS, as somebody of this name whom this machine trusts."""
    authority = Authority("authority")
    key, certificate = authority.issue(dns=name)
    (folder / "authority.pem").write_bytes(authority.pem())
    (folder / "server.pem").write_bytes(key + certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem")

    def behave(peer: socket.socket, over: threading.Event) -> None:
        with context.wrap_socket(peer, server_side=True) as hidden:
            then(hidden, over)

    return behave


def sample(settings: Settings, kind: ChannelKind, target: str) -> Sent:
    settings.PARLEY = replace(
        settings.PARLEY,
        webhook_allow=WebhookAllow(networks=(ip_network("127.0.0.0/8"), ip_network("::1/128"))),
        limits=replace(settings.PARLEY.limits, channel_tests_per_min=10_000),
    )
    made, _ = channel_create(wanted=NewChannel("ops", kind, target), actor=SYSTEM)
    return channel_test(public_id=made.public_id)


@pytest.mark.parametrize("name", ["localhost", "somebody.example"])
def test_webhook__over_tls__is_sent_to_who_has_the_name_only(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with slow_peer(secured(name, tmp_path, monkeypatch, after(TAKEN, end))) as port:
        sent = sample(settings, ChannelKind.WEBHOOK, f"https://localhost:{port}/")

    if name == "localhost":
        assert sent == Sent(True, "200 ok")
    else:
        assert "CERTIFICATE_VERIFY_FAILED" in sent.answer


@pytest.mark.parametrize("name", ["localhost", "somebody.example"])
@pytest.mark.parametrize("security", [MailSecurity.TLS, MailSecurity.STARTTLS])
def test_mail__over_tls__is_given_to_who_has_the_name_only(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: MailSecurity, name: str
) -> None:
    if security is MailSecurity.TLS:
        server = secured(name, tmp_path, monkeypatch, after([b"220 hi\r\n", *MAILED], end))
    else:
        hidden = secured(name, tmp_path, monkeypatch, after([b"", *MAILED], end))
        server = after([b"220 hi\r\n", b"250-hello\r\n250 STARTTLS\r\n", b"220 go\r\n"], hidden)
    with slow_peer(server) as port:
        settings.PARLEY = replace(settings.PARLEY, mail=Mail("localhost", port, security, "parley@example.org"))
        settings.EMAIL_BACKEND = "controlplane.notify.mailing.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "localhost", port
        settings.EMAIL_USE_SSL = security is MailSecurity.TLS
        settings.EMAIL_USE_TLS = security is MailSecurity.STARTTLS

        sent = sample(settings, ChannelKind.MAIL, "ops@example.org")

    if name == "localhost":
        assert sent == Sent(True, "accepted by the mail server")
    else:
        assert "CERTIFICATE_VERIFY_FAILED" in sent.answer
