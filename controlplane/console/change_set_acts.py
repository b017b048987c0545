"""What the forms on the page of a change set do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import QueryDict
from django.utils import timezone

from controlplane.accounts.principal import Principal
from controlplane.catalog.guarding import Consent
from controlplane.changesets.machine import Act
from controlplane.changesets.rights import require
from controlplane.changesets.services import (
    Place,
    SetChanges,
    Stays,
    change_set_approve,
    change_set_cancel,
    change_set_comment,
    change_set_delete,
    change_set_edit,
    change_set_publish,
    change_set_reject,
    change_set_schedule,
    change_set_submit,
)
from controlplane.changesets.values import (
    ACCESS_WORDS,
    MAX_MESSAGE_CHARS,
    MAX_REASON_CHARS,
    MAX_TITLE_CHARS,
    Merge,
    Take,
)
from controlplane.common.errors import InputInvalid
from controlplane.console.posted import number_of, one_line, whole_of
from controlplane.console.times import moment_given
from xdscore.codes import shown
from xdscore.names import canonical, name_problem
from xdscore.resource_types import by_word

_MAX_LINE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a form. `says`: a sentence for who sent it; `change`: the id of the change that was published, empty
    for none; `gone`: the change set is deleted.
    """

    changed: bool
    says: str
    change: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """A form that was sent about a change set: what it holds, the version that its page showed, and who sent it."""

    given: QueryDict
    public_id: str
    version: int
    actor: Principal
    request_id: str
    consent: Consent

    @property
    def reason(self) -> str:
        """The reason in the form, on one line; empty where there is none. Raises InputInvalid."""
        text = self.given.get("reason", "")
        return one_line(text, "A reason", MAX_REASON_CHARS) if text.strip() else ""

    @property
    def key(self) -> tuple[str, str]:
        """The type and the name of the resource, rule or group that the form is about. Raises InputInvalid where none
        can have them.
        """
        word, name = self.given.get("type", ""), self.given.get("name", "")
        if word in ACCESS_WORDS:
            return word, name
        if word not in by_word or name_problem(name):
            raise InputInvalid("The form names no resource of the change set. Nothing was changed.")
        return word, canonical(name)


def acted(
    given: QueryDict, public_id: str, actor: Principal, environment_key: str, request_id: str, consent: Consent
) -> Done:
    """Do what the button of the form says. Raises ControlPlaneError."""
    action = given.get("action", "")
    if action not in ACTS:
        raise InputInvalid(f"There is nothing called '{shown(action, 20)}' to do here. Nothing was changed.")
    require(actor, ACTS[action], environment_key)
    return _DO[action](Sent(given, public_id, number_of(given, "version"), actor, request_id, consent))


def _simply(service: Callable[..., bool], says: str) -> Callable[[Sent], Done]:
    """What needs no more than a reason."""

    def do(sent: Sent) -> Done:
        changed = service(
            public_id=sent.public_id,
            reason=sent.reason,
            version=sent.version,
            actor=sent.actor,
            request_id=sent.request_id,
        )
        return Done(changed, says if changed else "It was so already. Nothing was changed.")

    return do


def _publish(sent: Sent) -> Done:
    made = change_set_publish(
        public_id=sent.public_id,
        reason=sent.reason,
        version=sent.version,
        actor=sent.actor,
        request_id=sent.request_id,
        consent=sent.consent,
    )
    if made is None:
        return Done(changed=False, says="It was published already. Nothing was changed.")
    if made.change is None:
        return Done(changed=True, says="It is published. Nothing had to change: all of it was so already.")
    return Done(changed=True, says="The change set is published, as this change.", change=made.change_id)


def _schedule(sent: Sent) -> Done:
    at = moment_given(sent.given, "not_before", timezone.now())
    changed = change_set_schedule(
        public_id=sent.public_id,
        not_before=at,
        reason=sent.reason,
        version=sent.version,
        actor=sent.actor,
        request_id=sent.request_id,
        consent=sent.consent,
    )
    says = "It is scheduled: it is published by itself at its time, by your rights of then."
    return Done(changed, says if changed else "It was scheduled so already. Nothing was changed.")


def _comment(sent: Sent) -> Done:
    place = sent.key if sent.given.get("name") else ("", "")
    line = whole_of(sent.given, "line", minimum=1, maximum=_MAX_LINE) if sent.given.get("line", "").strip() else None
    change_set_comment(
        public_id=sent.public_id,
        reason=one_line(sent.given.get("text", ""), "A comment", MAX_REASON_CHARS),
        place=Place(*place, line),
        version=sent.version,
        actor=sent.actor,
        request_id=sent.request_id,
    )
    return Done(changed=True, says="Your comment stands below.")


def _delete(sent: Sent) -> Done:
    change_set_delete(
        public_id=sent.public_id,
        reason=sent.reason,
        version=sent.version,
        actor=sent.actor,
        request_id=sent.request_id,
    )
    return Done(changed=True, says="The change set is deleted.", gone=True)


def _edit(sent: Sent) -> Done:
    given = sent.given
    message = given.get("message", "")
    changes = SetChanges(
        title=one_line(given.get("title", ""), "The title of a change set", MAX_TITLE_CHARS),
        message=one_line(message, "The message of a change set", MAX_MESSAGE_CHARS) if message.strip() else "",
        not_before=_time_edited(given, "not_before"),
        expires=_time_edited(given, "expires"),
    )
    return _edited(sent, changes, "It is as you say, and a draft.")


def _merge(sent: Sent) -> Done:
    """Take for each name that moved what the form chooses; names for which it chooses nothing stay as they are."""
    keys = zip(sent.given.getlist("moved_type"), sent.given.getlist("moved_name"), strict=False)
    takes = {each.value: each for each in Take}
    merges = []
    for index, (word, name) in enumerate(keys):
        take = takes.get(sent.given.get(f"take-{index}", ""))
        if take is not None:
            merges.append(Merge(word, name, take))
    if not merges:
        raise InputInvalid("Choose for at least one name which content the change set has. Nothing was changed.")
    return _edited(sent, SetChanges(merges=merges), "You decided about these names; it is a draft.")


def _remove(sent: Sent) -> Done:
    return _edited(
        sent, SetChanges(removes=(sent.key,)), "The change set does nothing with it any more; it is a draft."
    )


def _edited(sent: Sent, changes: SetChanges, says: str) -> Done:
    changed = change_set_edit(
        public_id=sent.public_id,
        changes=changes,
        version=sent.version,
        actor=sent.actor,
        request_id=sent.request_id,
    )
    return Done(changed, says if changed else "Nothing had to change.")


def _time_edited(given: QueryDict, field: str) -> datetime | Stays | None:
    """The time in a field as an edit takes it: one that is as the page showed it stays, to the second."""
    if given.get(field, "").strip() == given.get(f"{field}_was", "").strip():
        return Stays.AS_IT_IS
    return moment_given(given, field, timezone.now())


# By the word in the form: what it is an act of, by which rights and buttons go.
ACTS: Final[Mapping[str, Act]] = {
    **{each.value: each for each in Act},
    "merge": Act.EDIT,
    "remove": Act.EDIT,
}
_DO: Final[Mapping[str, Callable[[Sent], Done]]] = {
    "submit": _simply(change_set_submit, "It waits for review now."),
    "approve": _simply(change_set_approve, "You approved it."),
    "reject": _simply(change_set_reject, "You turned it down."),
    "cancel": _simply(change_set_cancel, "The last step is taken back."),
    "publish": _publish,
    "schedule": _schedule,
    "comment": _comment,
    "delete": _delete,
    "edit": _edit,
    "merge": _merge,
    "remove": _remove,
}
