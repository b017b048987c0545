"""The role of a process is read off its command."""

import pytest

from controlplane.logs.origin import SERVING, role_of

SITE = "/opt/parley/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("command", "role"),
    [
        (f"{SITE}/uvicorn/__main__.py controlplane.asgi:application --port 8000", "web"),
        ("/opt/parley/bin/gunicorn -k uvicorn.workers.UvicornWorker controlplane.asgi:application", "web"),
        (f"{SITE}/celery/__main__.py --quiet --app controlplane.celery worker --pool prefork", "worker"),
        ("/opt/parley/bin/celery --app controlplane.celery worker --beat", "worker"),
        (f"{SITE}/celery/__main__.py --app controlplane.celery beat --schedule /var/lib/parley/beat.schedule", "beat"),
        ("manage.py ads", "ads"),
        ("manage.py ads --help", "help"),
        ("manage.py ads -h", "help"),
        ("/opt/parley/manage.py prepare --verbosity 0", "prepare"),
        ("manage.py", "manage"),
        ("/srv/parley/controlplane/ops/demo/__main__.py", "demo"),
        ("/opt/parley/bin/pytest tests/api/controlplane.py", "pytest"),
        ("-c", "-c"),
    ],
)
def test_role__of_a_command__is_what_it_starts(command: str, role: str) -> None:
    assert role_of(command.split()) == role


def test_role__of_no_arguments__is_no_serving_one() -> None:
    assert role_of([]) not in SERVING
