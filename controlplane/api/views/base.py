"""What every view of the API shares: who asks, what they may do, and that every refusal is a problem document.

Denied by default: a view says in `needs` what each of its verbs needs, and a verb it does not name is refused.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any, ClassVar, NoReturn

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.accounts.principal import Principal, Role
from controlplane.api.authentication import BearerToken, SignedIn
from controlplane.api.errors import MethodRefused, Unauthenticated
from controlplane.api.problems import answer_for
from controlplane.api.replay import claim, settle
from controlplane.catalog.guarding import LossRefused
from controlplane.catalog.rights import environment_visible, require
from controlplane.catalog.selectors import environment_list
from controlplane.journal.answers import Claim


class Needs(Enum):
    """Who may use a verb of a view, where that is not a question of one role."""

    NOBODY = "nobody"  # open to all: says nothing about this installation
    ANYBODY = "anybody"  # who is known; the view shows each what they may see
    KNOWN = "known"  # who is known, whoever it is; the answer is the same for all of them
    CHECK = "check"  # what the view's `check` says, for it depends on more than the path


class _AnsweredBefore(Exception):
    """Raised to end a request that was carried out before, with the answer that it had then."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


class ApiView(APIView):
    """The base class of all views of the API.

    A role in `needs` is needed in the environment of the path, or everywhere when the path has none.

    An answer that is kept under an Idempotency-Key is told again only behind the same authorisation as the first time.
    So a POST never decides that itself: it needs a role, or has a `check`, or is the same for everybody; anything else
    is no class at all (TypeError).
    """

    authentication_classes = (BearerToken, SignedIn)
    permission_classes = ()  # `_authorise` decides, for every verb
    parser_classes = ()  # bodies are read by `bodies`
    http_method_names = ["get", "post", "put", "patch", "delete", "head"]
    needs: ClassVar[Mapping[str, Role | Needs]] = {}
    tells_secret: ClassVar[frozenset[str]] = frozenset()
    """The verbs whose answer tells a secret at the only moment when it is told. Nobody keeps such an answer: no cache
    between here and there, and no Idempotency-Key.
    """
    _claim: Claim | None = None  # DRF makes a view for each request

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.needs.get("POST") is Needs.ANYBODY:
            raise TypeError(f"POST of {cls.__name__} must need a role, Needs.CHECK or Needs.KNOWN: answers are kept")
        if (Needs.CHECK in cls.needs.values()) != (cls.check is not ApiView.check):
            raise TypeError(f"{cls.__name__} must have a `check` where, and only where, a verb needs Needs.CHECK")

    def check(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise NotFound or Forbidden unless the caller may do this. Called for verbs with Needs.CHECK, before the
        verb's method.
        """
        raise NotImplementedError

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], HttpResponse]:
        """The function that turns every exception, also Django's and the database's, into a problem document."""
        return lambda error, _context: answer_for(error, path=type(self).__name__)

    def http_method_not_allowed(  # type: ignore[override]  # never answers; the verb is all it reads
        self, request: Request, *_args: object, **_kwargs: object
    ) -> NoReturn:
        """Refuse a verb this path does not take. Raises MethodRefused."""
        raise MethodRefused(f"{request.method} is not possible here.", allowed=tuple(self.allowed_methods))

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]  # a Django response, not DRF's
        """The problem document for an exception. DRF would rewrite 401 to 403 and add headers of its own; the document
        is complete.
        """
        if isinstance(exc, _AnsweredBefore):
            return exc.response
        if isinstance(exc, LossRefused):
            exc.loss = exc.loss.seen_by(principal_of(self.request))
        return self.get_exception_handler()(exc, {})

    def initial(self, request: Request, *_args: object, **kwargs: Any) -> None:
        """Authenticate, then authorise. Raises Unauthenticated, NotFound, Forbidden."""
        verb = "GET" if request.method == "HEAD" else str(request.method)
        need = self.needs.get(verb)
        if need is Needs.NOBODY:
            return
        self.perform_authentication(request)
        if not isinstance(request.auth, Principal):
            raise Unauthenticated("This needs a token or a signed-in user. Send 'Authorization: Bearer TOKEN'.")
        if need is None:
            self.http_method_not_allowed(request)
        key = kwargs.get("environment_key")
        if key is not None:
            environment_visible(request.auth, key)
        if isinstance(need, Role):
            require(request.auth, need, key)
        if need is Needs.CHECK:
            self.check(request, **kwargs)
        found = claim(request, request.auth.id, told_once=verb in self.tells_secret)
        if isinstance(found, HttpResponse):
            raise _AnsweredBefore(found)
        self._claim = found

    def finalize_response(  # type: ignore[override]  # Django responses, not DRF's
        self, request: Request, response: HttpResponse, *args: object, **kwargs: object
    ) -> HttpResponse:
        """The answer, which is kept where the request has an Idempotency-Key; of one with a secret, only that it was
        told.
        """
        told_once = request.method in self.tells_secret and response.status_code < HTTPStatus.BAD_REQUEST
        if told_once:
            response["Cache-Control"] = "no-store"
        if self._claim is not None:
            settle(self._claim, response, told_once=told_once)
        plain: Any = response
        finished: HttpResponse = super().finalize_response(request, plain, *args, **kwargs)
        return finished


def principal_of(request: Request) -> Principal:
    """The principal that sent the request; `initial` made sure that one is known."""
    principal = request.auth
    if not isinstance(principal, Principal):
        raise Unauthenticated("This needs a token or a signed-in user.")
    return principal


def seen_environments(request: Request, wanted: str) -> tuple[str, ...]:
    """The environments from which the caller may list: all they may see, or the one they name. Raises NotFound for one
    they may not see.
    """
    if wanted:
        return (environment_visible(principal_of(request), wanted).key,)
    return principal_of(request).sees(state.key for state in environment_list())
