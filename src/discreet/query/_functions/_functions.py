"""The scalar functions: one row for each, with all that the rest of the package knows of it.

The rows stand in `_number_functions`, `_text_functions` and `_date_functions`. Arithmetic,
comparisons and CASE are classes of their own in `_expressions`.
"""

from discreet.query._functions._date_functions import DATE_RULES
from discreet.query._functions._number_functions import NUMBER_RULES
from discreet.query._functions._scalar_rules import Form, ScalarFunction, ScalarRule
from discreet.query._functions._text_functions import TEXT_RULES

FUNCTIONS: dict[ScalarFunction, ScalarRule] = {
    rule.function: rule for rule in (*NUMBER_RULES, *TEXT_RULES, *DATE_RULES)
}


def _spellings(form: Form) -> dict[str, ScalarFunction]:
    return {
        name: rule.function
        for rule in FUNCTIONS.values()
        for name in (rule.function.value, *rule.other_spellings)
        if rule.form is form and name.replace("_", "").isalnum()
    }


# each name that SQL has for a function, and for the type of a cast
CALLS = _spellings(Form.CALL) | {"MOD": ScalarFunction.MOD}
CASTS = _spellings(Form.CAST)
