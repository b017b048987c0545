"""A row of the table of resource types is complete, or a sentence says what it lacks and where."""

import importlib
import re

import pytest
from google.protobuf.descriptor import FieldDescriptor

from xdscore.resource_types import RESOURCE_TYPES, ResourceType
from xdscore.schema.types_registry import descriptor_of

TABLE = "xdscore/resource_types.py"


@pytest.mark.parametrize("kind", RESOURCE_TYPES, ids=lambda kind: kind.word)
def test_row__message_and_name_field__are_of_the_api(kind: ResourceType) -> None:
    descriptor = descriptor_of(kind.message)

    assert descriptor is not None, f"{TABLE}: the API has no message '{kind.message}'."
    field = descriptor.fields_by_name.get(kind.name_field)
    assert field is not None, f"{TABLE}: '{kind.message}' has no field '{kind.name_field}'."
    assert field.type == FieldDescriptor.TYPE_STRING, f"{TABLE}: '{kind.name_field}' of '{kind.word}' is no string."


@pytest.mark.parametrize("kind", [kind for kind in RESOURCE_TYPES if kind.service], ids=lambda kind: kind.word)
def test_row__service__is_one_of_its_module(kind: ResourceType) -> None:
    module, _, name = kind.service.partition(":")

    services = importlib.import_module(module).DESCRIPTOR.services_by_name

    assert name in services, f"{TABLE}: '{module}' has no service '{name}', but {', '.join(services)}."


def test_rows__words_and_order__are_unlike() -> None:
    words = [kind.word for kind in RESOURCE_TYPES]
    order = [kind.push_order for kind in RESOURCE_TYPES]

    assert all(re.fullmatch("[a-z][a-z_]*", word) for word in words), f"{TABLE}: a word is part of URLs and files."
    assert len(set(words)) == len(words), f"{TABLE}: two types have one word."
    assert order == list(range(len(order))), f"{TABLE}: RESOURCE_TYPES is in the order of push_order, from 0, no gaps."
