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
from controlplane.catalog.rights import OnSome, environment_visible, require, require_some
from controlplane.catalog.selectors import EnvironmentState, environment_list
from controlplane.journal.answers import Claim, effects_under


class Needs(Enum):
    """Who may use an HTTP method of a view, where one role in the path's environment is not the answer."""

    NOBODY = "nobody"  # open to all: says nothing about this installation
    ANYBODY = "anybody"  # who is known; the view shows each what they may see
    KNOWN = "known"  # who is known, whoever it is; the answer is the same for all of them
    CHECK = "check"  # what the view's `check` says, for it depends on more than the path


class _AnsweredBefore(Exception):
    """Raised where the request's Idempotency-Key has an answer already, to end the request with that answer."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


class ApiView(APIView):
    """The base class of all views of the API.

    `needs`: the role that each HTTP method needs, in the environment of the path or, where the path has none, in all
    environments; with `OnSome`, on some resources of the path's environment at least. A role with limits is enough for
    nothing else.

    An answer stored under an Idempotency-Key is given again only to callers who may do the same. So a POST has to need
    a role or Needs.KNOWN, or to have a `check`; any other subclass raises TypeError when it is defined.
    """

    authentication_classes = (BearerToken, SignedIn)
    permission_classes = ()  # `_authorise` decides, for every verb
    parser_classes = ()  # bodies are read by `bodies`
    http_method_names = ["get", "post", "put", "patch", "delete", "head"]
    needs: ClassVar[Mapping[str, Role | OnSome | Needs]] = {}
    tells_secret: ClassVar[frozenset[str]] = frozenset()
    """The verbs whose answer tells a secret at the only moment when it is told. Nobody keeps such an answer: no cache
    between here and there, and no Idempotency-Key.
    """
    _claim: Claim | None = None  # DRF makes a view for each request
    _environment: EnvironmentState | None = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.needs.get("POST") is Needs.ANYBODY:
            raise TypeError(f"POST of {cls.__name__} must need a role, Needs.CHECK or Needs.KNOWN: answers are kept")
        if (Needs.CHECK in cls.needs.values()) != (cls.check is not ApiView.check):
            raise TypeError(f"{cls.__name__} must have a `check` where, and only where, a verb needs Needs.CHECK")

    @property
    def environment(self) -> EnvironmentState:
        """The environment that the path names, as it was when the request came."""
        if self._environment is None:
            raise RuntimeError(f"no path of {type(self).__name__} names an environment")
        return self._environment

    def check(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise NotFound or Forbidden unless the caller may do what the request asks. Called before methods that need
        Needs.CHECK; views that have such a method override it.
        """
        raise NotImplementedError

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], HttpResponse]:
        """The function that makes the problem document for any exception, Django's and the database's included."""
        return lambda error, _context: answer_for(error, path=type(self).__name__)

    def http_method_not_allowed(  # type: ignore[override]  # never answers; the verb is all it reads
        self, request: Request, *_args: object, **_kwargs: object
    ) -> NoReturn:
        """Refuse an HTTP method that the path does not take. Always raises MethodRefused."""
        raise MethodRefused(f"{request.method} is not possible here.", allowed=tuple(self.allowed_methods))

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]  # a Django response, not DRF's
        """The problem document for an exception. Overridden because DRF would turn 401 into 403 and add headers of its
        own.
        """
        if isinstance(exc, _AnsweredBefore):
            return exc.response
        if isinstance(exc, LossRefused):
            exc.loss = exc.loss.seen_by(principal_of(self.request))
        return self.get_exception_handler()(exc, {})

    def initial(self, request: Request, *_args: object, **kwargs: Any) -> None:
        """Check who the caller is, then whether they may do this. Raises Unauthenticated, NotFound, Forbidden."""
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
            self._environment = environment_visible(request.auth, key, partly=isinstance(need, OnSome))
        if isinstance(need, Role):
            require(request.auth, need, key)
        within = ""
        if isinstance(need, OnSome):
            within = require_some(request.auth, need.role, str(key)).text
        if need is Needs.CHECK:
            self.check(request, **kwargs)
        found = claim(request, request.auth.id, told_once=verb in self.tells_secret, within=within)
        if isinstance(found, HttpResponse):
            raise _AnsweredBefore(found)
        self._claim = found
        effects_under(found)

    def finalize_response(  # type: ignore[override]  # Django responses, not DRF's
        self, request: Request, response: HttpResponse, *args: object, **kwargs: object
    ) -> HttpResponse:
        """The answer, which is stored where the request has an Idempotency-Key; of an answer that tells a secret, only
        that it was given.
        """
        told_once = request.method in self.tells_secret and response.status_code < HTTPStatus.BAD_REQUEST
        if told_once:
            response["Cache-Control"] = "no-store"
        effects_under(None)
        if self._claim is not None:
            settle(self._claim, response, told_once=told_once)
        plain: Any = response
        finished: HttpResponse = super().finalize_response(request, plain, *args, **kwargs)
        return finished


def principal_of(request: Request) -> Principal:
    """The principal that sent the request. Raises Unauthenticated where nobody known did."""
    principal = request.auth
    if not isinstance(principal, Principal):
        raise Unauthenticated("This needs a token or a signed-in user.")
    return principal


def seen_environments(request: Request, wanted: str) -> tuple[str, ...]:
    """The keys of the environments from which the caller may list: `wanted` alone, or all that they may see where it is
    empty. Raises NotFound for one they may not see.
    """
    if wanted:
        return (environment_visible(principal_of(request), wanted).key,)
    return principal_of(request).sees(state.key for state in environment_list())
