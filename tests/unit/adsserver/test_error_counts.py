"""What is counted of the errors of responses, made once for all streams that are told the same."""

from adsserver.servicers.reports import ErrorCounts
from xdscore.errors import ResourceError, StatusCode


def error(name: str, code: StatusCode) -> ResourceError:
    return ResourceError(name, code, "XDS2001", "why")


MISSING = error("a", StatusCode.NOT_FOUND)
DENIED = error("b", StatusCode.PERMISSION_DENIED)


def test_counts__of_each_code_and_the_names_that_were_denied() -> None:
    counted = ErrorCounts().of("cluster", (MISSING, DENIED, DENIED))

    assert dict(counted.codes) == {StatusCode.NOT_FOUND: 1, StatusCode.PERMISSION_DENIED: 2}
    assert counted.denied == (("cluster", "b"), ("cluster", "b"))


def test_counts__responses_that_tell_others_in_turn__are_of_what_each_tells() -> None:
    counts = ErrorCounts()

    denied = [counts.of(word, (DENIED,)).denied for word in ("cluster", "listener", "cluster")]

    assert denied == [(("cluster", "b"),), (("listener", "b"),), (("cluster", "b"),)]
    assert counts.of("cluster", (MISSING,)).denied == ()
    told = (DENIED,)
    assert counts.of("cluster", told) is counts.of("cluster", told)
