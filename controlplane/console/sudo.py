"""Asks again who somebody is before an act by which an installation could be taken over (sudo mode).

What was typed is kept: the question repeats the fields of the form, and its answer sends them to the same page, which
then does what was asked. A proof holds for `sudo_s` in its session. REST is not asked: a token has nobody to ask.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict

from controlplane.accounts.logins import login_record, password_confirm
from controlplane.accounts.vouching import provider
from controlplane.common.errors import ControlPlaneError, InputInvalid, TooManyAttempts
from controlplane.console.guarding import repeated
from controlplane.console.pages import Page
from controlplane.console.sign_in import caller_of_request
from controlplane.factors.proof import proof_holds, proof_note
from controlplane.factors.security_keys import key_ask, key_try
from controlplane.factors.selectors import factors_of
from controlplane.factors.services import code_try
from controlplane.factors.values import Factors, Way
from controlplane.oidc.gates import SESSION_KEY

P = ParamSpec("P")
ThisPage = TypeVar("ThisPage", bound=Page)
Answers = Callable[Concatenate[ThisPage, HttpRequest, P], HttpResponse]

PASSWORD: Final = "sudo_password"  # noqa: S105  the name of a field
CODE: Final = "sudo_code"
KEY: Final = "sudo_key"
ASKED: Final = "sudo_asked"
_OWN: Final = (PASSWORD, CODE, KEY, ASKED)


_NOT_RIGHT: Final = {
    PASSWORD: "That is not your password.",
    CODE: "That is not the code that the app shows now, or it was used already.",
    KEY: "That key is none of yours, or its answer came too late.",
    "": "Nothing was typed.",
}


@dataclass(frozen=True, slots=True)
class SudoQuestion:
    """The question who somebody is. `fields`: those of the form that led here, to be sent again with the answer.
    `provider`: the name of the identity provider that answers it; empty: a password or a second factor does.
    `minutes`: how long a right answer holds.
    """

    fields: tuple[tuple[str, str], ...]
    factors: Factors
    provider: str
    minutes: int


def sudo(
    acts: Callable[[HttpRequest], bool] = lambda _request: True,
) -> Callable[[Answers[ThisPage, P]], Answers[ThisPage, P]]:
    """A decorator for a page's `post`, which is called only where whoever sends the form proved lately who they are;
    others are asked first. `acts`: whether this form is one that needs it.
    """

    def guarding(post: Answers[ThisPage, P]) -> Answers[ThisPage, P]:
        @wraps(post)
        def guarded(page: ThisPage, request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if proof_holds(request.session) or not acts(request):
                return post(page, _without_answer(request), *args, **kwargs)
            return _asked(page, request) or post(page, _without_answer(request), *args, **kwargs)

        return cast(Answers[ThisPage, P], guarded)  # functools.wraps hides of what it is a method

    return guarding


def _asked(page: Page, request: HttpRequest) -> HttpResponse | None:
    """The question or, where its answer came with the form and is right, None."""
    if ASKED not in request.POST:
        return _question(page, request)
    try:
        if _is_right(request):
            proof_note(request.session)
            return None
    except TooManyAttempts as error:
        answer = _question(page, request, error)
        answer.headers["Retry-After"] = str(error.retry_after_s)
        return answer
    return _question(page, request, InputInvalid(_wrong(request)))


def _is_right(request: HttpRequest) -> bool:
    """Whether the answer proves who somebody is. Raises TooManyAttempts."""
    if _by_provider(request):
        return False  # the way back from the provider notes it in the session
    user, caller, given, by = cast(User, request.user), caller_of_request(request), request.POST, _typed(request)
    if by == PASSWORD:
        return password_confirm(user, given[by], session=request.session.session_key or "", caller=caller)
    if by == KEY:
        way, right = Way.KEY, key_try(request.session, user, given[by], caller=caller)
    elif by == CODE:
        way, right = Way.APP, code_try(user, Way.APP, given[by], caller=caller)
    else:
        return False
    if not right:
        login_record(username=user.get_username(), outcome="failed", caller=caller, detail={"second_factor": way.words})
    return right


def _typed(request: HttpRequest) -> str:
    """The field by which somebody answers; empty where all are. The password comes last: browsers fill it in."""
    return next((name for name in (KEY, CODE, PASSWORD) if request.POST.get(name, "").strip()), "")


def _wrong(request: HttpRequest) -> str:
    oidc = provider()
    if _by_provider(request) and oidc is not None:
        return f"{oidc.name} has not confirmed it yet: do that first, in the other tab. Nothing was changed."
    return f"{_NOT_RIGHT[_typed(request)]} Nothing was changed."


def _question(page: Page, request: HttpRequest, error: ControlPlaneError | None = None) -> HttpResponse:
    oidc = provider() if _by_provider(request) else None
    question = SudoQuestion(
        repeated(request.POST, without=_OWN),
        factors_of(int(request.user.pk or 0)),
        oidc.name if oidc is not None else "",
        settings.PARLEY.limits.sudo_s // 60,
    )
    ask = None if oidc is not None else key_ask(request.session, cast(User, request.user))
    context = {"question": question, "problem": error, "leave": page.leave, "ask": ask}
    answer = page.page(context, template="console/sudo.html", status=error.status if error is not None else 200)
    answer.headers["Cache-Control"] = "no-store"  # what was typed stands in it
    return answer


def _by_provider(request: HttpRequest) -> bool:
    return isinstance(request.session.get(SESSION_KEY), str)


def _without_answer(request: HttpRequest) -> HttpRequest:
    """The request without what answered the question: no page repeats a password."""
    if ASKED in request.POST:
        left = QueryDict(mutable=True)
        for name, values in request.POST.lists():
            if name not in _OWN:
                left.setlist(name, values)
        left._mutable = False  # noqa: SLF001  as Django's own
        request.POST = left  # type: ignore[assignment]
    return request
