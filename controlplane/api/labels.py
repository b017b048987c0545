"""Selectors of labels in bodies."""

from controlplane.common.errors import InputInvalid
from xdscore.findings import Finding, Severity
from xdscore.labels import Requirement, selector_read
from xdscore.schema.codes import VALUE_REFUSED


def selector_of(text: str) -> tuple[Requirement, ...]:
    """The conditions of the selector in the field `/select/label` of a body. Raises InputInvalid where it cannot be
    read.
    """
    try:
        return selector_read(text)
    except ValueError as error:
        finding = Finding(VALUE_REFUSED.code, Severity.ERROR, str(error), pointer="/select/label")
        raise InputInvalid("The selector cannot be read. Nothing was changed.", findings=(finding,)) from None
