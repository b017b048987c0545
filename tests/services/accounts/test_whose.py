"""Whether two principals may be one person, as far as ids tell it."""

import pytest
from django.contrib.auth.models import User

from controlplane.accounts.models import ApiToken
from controlplane.accounts.token_rules import TokenKind
from controlplane.accounts.whose import in_one_hand

pytestmark = pytest.mark.django_db


def token(name: str, *, owner: User | None = None, creator: str = "") -> str:
    kind = TokenKind.PERSONAL if owner is not None else TokenKind.SERVICE
    row = ApiToken.objects.create(
        name=name, name_space=name, kind=kind.value, owner=owner, creator=creator, prefix=name, digest=name
    )
    return f"token:{row.pk}"


def test_in_one_hand__a_person_and_tokens__are_where_ids_tell_it_and_in_either_order() -> None:
    dana, opal = User.objects.create(username="dana"), User.objects.create(username="opal")
    person, other = f"user:{dana.pk}", f"user:{opal.pk}"
    own, second = token("own", owner=dana), token("second", owner=dana)
    made = token("made", creator=person)
    made_by_token = token("made-by-token", creator=own)
    foreign = token("foreign", owner=opal)
    sibling = token("sibling", creator=person)

    together = [(person, person), (person, own), (own, second), (person, made), (own, made), (person, made_by_token)]
    apart = [(person, other), (person, foreign), (own, foreign), (made, sibling), (other, made), (made, "")]
    assert [each for each in together if not in_one_hand(*each) or not in_one_hand(*each[::-1])] == []
    assert [each for each in apart if in_one_hand(*each) or in_one_hand(*each[::-1])] == []


def test_in_one_hand__tokens_that_the_installation_made__are_not_for_that_reason() -> None:
    one, two = token("one", creator="installation"), token("two", creator="installation")

    assert not in_one_hand(one, two)
    assert not in_one_hand("installation", one)
    assert in_one_hand("installation", "installation")


def test_in_one_hand__a_token_that_is_gone__is_itself_alone() -> None:
    assert in_one_hand("token:99", "token:99")
    assert not in_one_hand("token:99", "user:99")
