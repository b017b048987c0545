"""What Envoy answered to a configuration, kept in the database for every worker: the same question costs one row, not
most of a second. An answer depends on nothing but the version of Envoy and the bytes it was shown; no verdict is no
answer and is not kept.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from controlplane.builder.models import EnvoyAnswer
from controlplane.builder.stages.inspect import Answer, EnvoyVerdict

MAX_ANSWERS: Final = 2_000
"""The answers that are kept: of the rest, the oldest are forgotten first."""

Judge = Callable[[bytes], Answer]


class KeptAnswers:
    """Asks a judge, which is an Envoy of the version `envoy`, what was not asked before."""

    def __init__(self, judge: Judge, envoy: str) -> None:
        self._judge = judge
        self._envoy = envoy

    def __call__(self, configuration: bytes) -> Answer:
        """The answer of Envoy to a serialised bootstrap, from memory where it is known."""
        question = _question(self._envoy, configuration)
        known = EnvoyAnswer.objects.filter(question=question).first()
        if known is not None:
            return Answer(EnvoyVerdict.REFUSED if known.refused else EnvoyVerdict.ACCEPTED, known.text)
        answer = self._judge(configuration)
        if answer.verdict is not EnvoyVerdict.UNDECIDED:
            refused = answer.verdict is EnvoyVerdict.REFUSED
            row, made = EnvoyAnswer.objects.get_or_create(
                question=question, defaults={"refused": refused, "text": answer.text}
            )
            if made:
                EnvoyAnswer.objects.filter(pk__lte=row.pk - MAX_ANSWERS).delete()
        return answer


def _question(envoy: str, configuration: bytes) -> str:
    # The version has no NUL, so no other pair of version and configuration gives the same bytes.
    return blake2b(envoy.encode() + b"\0" + configuration, digest_size=32).hexdigest()
