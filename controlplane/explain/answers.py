"""One decision in words for operators: what a client of an environment gets for a name, and what to do next. Pure."""

from dataclasses import dataclass

from xdscore.access import RuleStep
from xdscore.decision import Decision, Denied, Missing, Serve, Undecided, Withheld
from xdscore.resource_types import ResourceType


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision about a name, for operators: whether it is served, the sentence that says why, and the next step.
    `code` is what clients are told, if anything. `rules` are the access rules that match the name, in order, up to the
    one that decided; where none of them did, the environment's default decided. `near` are published names that
    resemble one that is missing.
    """

    served: bool
    code: str
    sentence: str
    next_step: str
    rules: tuple[RuleStep, ...] = ()
    near: tuple[str, ...] = ()

    @property
    def rule(self) -> int:
        """The number of the rule that decided; 0 where the environment's default did."""
        return next((step.rule.number for step in self.rules if step.decided), 0)


def answer_of(
    decision: Decision,
    *,
    kind: ResourceType,
    name: str,
    environment: str,
    near: tuple[str, ...] = (),
    rules: tuple[RuleStep, ...] = (),
) -> Answer:
    """The answer that a decision amounts to, for operators: it may say what clients must not learn, such as that a rule
    hides a name.
    """
    subject = f"{kind.title} '{name}'"
    served, code, sentence, step = False, "XDS2101", "", ""
    match decision:
        case Serve(content=content):
            served, code = True, ""
            sentence = f"{subject} is served in '{environment}', version {content.version}.{_allowing(rules)}"
        case Missing(hidden=True, rule=0):
            sentence = f"'{environment}' hides by default, and nothing allows {subject}."
            step = "Propose a rule that allows it."
        case Missing(hidden=True, rule=rule):
            sentence = f"Rule {rule} hides {subject} from these clients in '{environment}'."
            step = f"If these clients should read it, propose a rule that allows it, or edit rule {rule}."
        case Missing(removed=True):
            code, sentence = "XDS2102", f"{subject} was published in '{environment}' and was removed."
            step = "Restore it from its history, or point the clients at another name."
        case Missing():
            sentence = f"Nobody has published {subject} in '{environment}'.{_closest(near)}"
            step = "Publish it, or mend the name that clients ask for."
        case Denied(rule=0):
            code = "XDS2103"
            sentence, step = _denied_by_default(kind, subject, environment)
        case Denied(rule=rule):
            code, sentence = "XDS2103", f"Rule {rule} denies {subject}."
            step = f"If this is not meant, propose a rule that allows it, or edit rule {rule}."
        case Withheld(finding=finding):
            code = "XDS2106"
            sentence = f"{subject} is withheld: {finding}, and no earlier revision was ever acknowledged."
            step = "Put a new revision, or release the quarantine."
        case Undecided(reason=reason):
            code, sentence = "XDS2105", f"Nothing is decided for {subject} yet: {reason}."
            step = "Wait for the first build."
    return Answer(served, code, sentence, step, rules, near)


def _denied_by_default(kind: ResourceType, subject: str, environment: str) -> tuple[str, str]:
    """The sentence, and the next step, where the environment's default denies a name."""
    if kind.secret:
        named = f"names the type {kind.word}"
        return (
            f"No rule that {named} allows {subject}; the default of '{environment}' never covers secrets.",
            f"If this is not meant, propose a rule that allows it and {named}.",
        )
    return (
        f"'{environment}' denies by default, and nothing allows {subject}.",
        "If this is not meant, propose a rule that allows it, or let the environment allow by default.",
    )


def _allowing(rules: tuple[RuleStep, ...]) -> str:
    return "".join(f" Rule {step.rule.number} allows it." for step in rules if step.decided)


def _closest(names: tuple[str, ...]) -> str:
    return " Closest: " + ", ".join(f"'{name}'" for name in names) + "." if names else ""
