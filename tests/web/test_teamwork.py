"""Comments, ticket links, assignees and mutes on pages: what people type, see, and may not."""

from collections.abc import Callable

import pytest
from django.test import Client

from controlplane.accounts.principal import Role
from controlplane.catalog.services import change_apply
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from controlplane.discussion.models import Comment, TicketLink
from controlplane.discussion.values import MAX_TEXT_CHARS
from controlplane.incidents.models import Incident
from controlplane.incidents.services import digest
from tests.services.incidents.fleet import DANA, Fleet, publish
from tests.support.manifests import cluster, parsed
from tests.web.conftest import USERS, assert_harmless, page, queries

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

PAY = "/e/default/resource?type=cluster&name=pay&tab=comments"
MARKUP = "<img src=x onerror=alert(1)> {% debug %} https://e.example/\"><script>alert(1)</script> PAY-7'"


def the_id() -> str:
    return str(Incident.objects.get().public_id)


def say(client: Client, text: str, about: str = "resource", key: str = "cluster/pay") -> str:
    sent = {"about": about, "key": key, "environment": "default", "text": text}
    answer = client.post("/comments", sent, follow=True)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def test_comment__by_a_viewer__stands_on_the_page_of_what_it_is_about(
    person: Callable[..., Client], fleet: Fleet
) -> None:
    viewer = person(Role.VIEWER)
    change = publish(cluster("pay", connect_timeout="9s"))

    assert "Why 9s?" in say(viewer, "Why 9s?")
    assert "On the change" in say(viewer, "On the change", "change", change)
    shown = say(viewer, "First line\nsecond line", "incident", the_id())

    assert "First line\nsecond line</p>" in shown
    assert "Why 9s?" not in shown
    assert "</b> commented" in shown
    assert "Why 9s?" in page(viewer, PAY)


def test_comments__newest_last_and_paged(admin: Client, fleet: Fleet) -> None:
    for number in range(55):
        admin.post("/comments", {"about": "incident", "key": the_id(), "text": f"said {number:02}"})

    shown = page(admin, f"/incidents/{the_id()}")
    earlier = page(admin, f"/incidents/{the_id()}?comments_before={Comment.objects.order_by('pk')[5].pk}")

    assert shown.index("said 05") < shown.index("said 54")
    assert "said 04" not in shown
    assert "Earlier comments" in shown
    assert earlier.index("said 00") < earlier.index("said 04")
    assert "said 05" not in earlier


@pytest.mark.parametrize("text", ["", " \n", "x" * (MAX_TEXT_CHARS + 1), "a\x1b[2J"])
def test_comment__that_cannot_be_kept__is_asked_for_again_with_what_was_typed(
    admin: Client, fleet: Fleet, text: str
) -> None:
    answer = admin.post("/comments", {"about": "incident", "key": the_id(), "text": text})

    shown = answer.content.decode()
    assert answer.status_code == 422
    assert "There is a problem" in shown
    assert not Comment.objects.exists()
    if len(text) > MAX_TEXT_CHARS:
        assert text in shown


def test_comment__edited_and_deleted__by_its_author(person: Callable[..., Client], fleet: Fleet) -> None:
    author, other = person(Role.VIEWER), person(Role.EDITOR)
    say(author, "First", "incident", the_id())
    path = f"/comments/{Comment.objects.get().public_id}"

    assert "First</textarea>" in page(author, path)
    assert page(other, path, 403)
    assert other.post(path, {"text": "no"}).status_code == 403
    assert other.post(path, {"action": "delete"}).status_code == 403
    wrong = author.post(path, {"text": " "})
    assert wrong.status_code == 422
    author.post(path, {"text": "Second"})
    shown = page(author, f"/incidents/{the_id()}")
    assert "Second" in shown
    assert "edited" in shown
    author.post(path, {"action": "delete"})
    assert not Comment.objects.exists()
    assert "deleted a comment" in page(author, f"/incidents/{the_id()}")


def test_comment__deleted_by_an_administrator__who_may_not_edit_it(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    say(person(Role.VIEWER), "First", "incident", the_id())
    path = f"/comments/{Comment.objects.get().public_id}"

    assert "<textarea" not in page(admin, path).partition("<main")[2]
    assert admin.post(path, {"text": "mine now"}).status_code == 403
    assert admin.post(path, {"action": "delete"}, follow=True).status_code == 200
    assert not Comment.objects.exists()


def test_comment__on_what_others_see__is_not_found(person: Callable[..., Client], admin: Client, fleet: Fleet) -> None:
    say(admin, "secret plans", "incident", the_id())
    public_id, stranger = Comment.objects.get().public_id, person(Role.ADMIN, "prod")

    for about, key in (("incident", the_id()), ("resource", "cluster/pay"), ("nonsense", "x"), ("change", "x")):
        sent = {"about": about, "key": key, "environment": "default", "text": "t"}
        assert stranger.post("/comments", sent).status_code == 404, about
    assert "secret plans" not in page(stranger, f"/comments/{public_id}", 404)
    assert stranger.post(f"/comments/{public_id}", {"action": "delete"}).status_code == 404
    assert "Nothing is called so" in page(stranger, "/search?q=secret+plans")
    assert Comment.objects.count() == 1


def test_search__words_of_a_comment__lead_to_it(admin: Client, fleet: Fleet) -> None:
    say(admin, "the certificate of the bank", "incident", the_id())

    shown = page(admin, "/search?q=of the bank")

    assert f'href="/incidents/{the_id()}#comment-{Comment.objects.get().public_id}"' in shown


def test_texts__with_words_for_tickets__are_links_and_markup_stays_text(admin: Client, fleet: Fleet) -> None:
    sent = {"form": "PAY-{number}", "url": "https://jira.example/browse/PAY-{number}", "environment": "default"}
    assert "PAY-{number}" in admin.post("/ticket-links", sent, follow=True).content.decode()
    edits = [Put(parsed(cluster("pay", connect_timeout="8s")))]
    change = change_apply(environment_key="default", edits=edits, actor=DANA, message="Mends PAY-12").change_id

    link = '<a href="https://jira.example/browse/PAY-{0}" rel="noopener noreferrer nofollow">PAY-{0}</a>'
    assert f"Mends {link.format(12)}" in page(admin, f"/changes/{change}")
    shown = say(admin, MARKUP, "incident", the_id())
    assert_harmless(shown)
    assert link.format(7) in shown
    assert '<a href="https://e.example/" rel=' in shown
    assert "<script>alert(1)" not in shown


def test_ticket_links__without_the_role__are_read_and_not_written(admin: Client, person: Callable[..., Client]) -> None:
    admin.post("/ticket-links", {"form": "#{number}", "url": "https://e.example/{number}", "environment": ""})
    viewer, link = person(Role.VIEWER), TicketLink.objects.get()

    assert "#{number}" in page(viewer, "/ticket-links")
    sent = {"form": "X-{number}", "url": "https://evil.example/{number}", "environment": "default"}
    assert viewer.post("/ticket-links", sent).status_code == 403
    assert viewer.post("/ticket-links", {"action": "delete", "link": str(link.pk)}).status_code == 403
    wrong = admin.post("/ticket-links", {"form": "X", "url": "https://evil.example/{number}"})
    assert wrong.status_code == 422
    assert 'value="https://evil.example/{number}"' in wrong.content.decode()
    admin.post("/ticket-links", {"action": "delete", "link": str(link.pk)})
    assert not TicketLink.objects.exists()


def test_incident__assigned_on_its_page__is_found_by_whom(
    admin: Client, person: Callable[..., Client], fleet: Fleet
) -> None:
    person(Role.VIEWER)
    login = USERS.objects.exclude(is_superuser=True).get().username
    path = f"/incidents/{the_id()}"

    admin.post(path, {"action": "assign", "to": "person", "person": login})
    shown = page(admin, path)
    assert "is to look after it." in shown
    assert f'</b> assigned it to <span class="foreign">{login}</span>' in shown
    for question, found in (
        (f"person:{login}", True),
        ("nobody", False),
        ("me", False),
        ("team:payments", False),
    ):
        assert (the_id() in page(admin, f"/e/default/incidents?assignee={question}")) is found, question
    wrong = admin.post(path, {"action": "assign", "to": "person", "person": "nobody-there"})
    assert wrong.status_code == 422
    assert 'value="nobody-there"' in wrong.content.decode()
    admin.post(path, {"action": "assign", "to": "nobody"})
    assert Incident.objects.get().assignee == ""


def test_incident__muted_on_its_page__says_until_when_by_whom_and_why(admin: Client, fleet: Fleet) -> None:
    path = f"/incidents/{the_id()}"

    admin.post(path, {"action": "mute", "for": "8h", "reason": "r3 comes"})

    shown = page(admin, path)
    assert "Muted until" in shown
    assert "“r3 comes”" in shown
    assert "muted until" in page(admin, "/e/default/incidents")
    assert "muted until" in page(admin, "/")
    wrong = admin.post(path, {"action": "mute", "for": "9h", "until": "yesterday", "reason": "kept"})
    assert wrong.status_code == 422
    assert 'value="kept"' in wrong.content.decode()
    admin.post(path, {"action": "unmute"})
    assert "Muted until" not in page(admin, path)


def test_incident__to_be_mended_by_the_next_revision__says_who_said_so(admin: Client, fleet: Fleet) -> None:
    path = f"/incidents/{the_id()}"

    admin.post(path, {"action": "mended_next"})

    assert "says that the next revision mends it" in page(admin, path)
    publish(cluster("pay", connect_timeout="9s"))
    digest()
    assert Incident.objects.get().state == "resolved"


def test_pages__with_many_comments__cost_no_more(admin: Client, fleet: Fleet) -> None:
    paths = (PAY, f"/incidents/{the_id()}")
    say(admin, "the first, PAY-1")
    say(admin, "the first, PAY-1", "incident", the_id())
    few = [queries(admin, path) for path in paths]
    for number in range(40):
        admin.post("/comments", {"about": "incident", "key": the_id(), "text": f"PAY-{number} @admin"})
        admin.post(
            "/comments", {"about": "resource", "key": "cluster/pay", "environment": "default", "text": f"#{number}"}
        )

    assert [queries(admin, path) for path in paths] == few
    assert max(few) <= 25
