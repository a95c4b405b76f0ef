"""Texts that a regular expression may take long for, made of its own parts, and the time that something takes."""

import gc
import re
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import product
from typing import Any

# Private, and without types.
codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

NESTED = ("(|)", "f(a, |)", "/*|*/", "array<|>")
# Of any text of ours: what begins or ends something, or separates it.
FRAGMENTS = (
    *" \n'\"`\\(){};,.=:@/-a0é\0",
    *("/*", "*/", "/* */", "/*'", "--", "--\n", "''", "'a'", "'a' ", "'a',", "`a`.", "${", "a ", "a.", "a,", "0 "),
    *("?, ", "r'", "select ", "from ", "from a,", "join ", "where ", "with a as (", "insert into t ", "set a="),
    *NESTED,
    *("values (", "secret", "password='a' ", "secret=", "'password', ", "password(", "://", "a@"),
)
_CHOICES_MAX = 6
_SAMPLES = {"DIGIT": "0", "SPACE": " ", "WORD": "a"}


def texts_for(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """Beginnings, and what to repeat behind each: its parts, and what it repeats, behind what stands before."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    found = {("", one) for one in FRAGMENTS}
    for beginning, repeated in _repeated(tree, [""]):
        found |= {(beginning, repeated), ("", beginning + repeated), ("", repeated), ("", beginning)}
    found |= {("", whole) for whole in _samples(tree)}
    return (one for one in sorted(found) if one[1])


def filled(beginning: str, repeated: str, chars: int) -> str:
    """A text of so many characters; a sign that nothing expects ends it. `(|)` is for nested parentheses."""
    times = max(1, (chars - len(beginning)) // len(repeated))
    opening, _, closing = repeated.partition("|") if repeated in NESTED else (repeated, "", "")
    return f"{beginning}{opening * times}{closing * times}\1"


def seconds(work: Callable[[], object], tries: int = 1) -> float:
    """The processor time of this thread that the work takes: the least of some tries."""
    taken = []
    gc.disable()
    for _ in range(tries):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
    gc.enable()
    return min(taken)


def _samples(tree: Iterable[Any]) -> list[str]:
    """Some texts that fit."""
    found = [""]
    for part in tree:
        found = ["".join(pair) for pair in product(found, _samples_of(*part))]
        found = list(dict.fromkeys(found))[: 2 * _CHOICES_MAX]
    return found


def _samples_of(code: Any, argument: Any) -> list[str]:
    match str(code):
        case "LITERAL":
            return [chr(argument)]
        case "IN":
            return _members(argument)[:_CHOICES_MAX]
        case "ANY" | "NOT_LITERAL":
            return ["a"]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, _, repeated = argument
            return [*([""] if not least else []), *(one * max(1, least) for one in _samples(repeated))]
        case _:
            return [one for inner in _inner(code, argument) for one in _samples(inner)] or [""]


def _members(members: Iterable[Any]) -> list[str]:
    members = list(members)
    if members[0][0] is codes.NEGATE:
        left_out = re.compile(_class(members))
        return [one for one in "a 0'\"`/*(;=,.\n" if left_out.match(one)] or ["é"]
    return [
        chr(argument if code is codes.LITERAL else argument[0])
        if code in {codes.LITERAL, codes.RANGE}
        else next((char for word, char in _SAMPLES.items() if str(argument).endswith(f"Y_{word}")), "é")
        for code, argument in members
    ]


def _class(members: Iterable[Any]) -> str:
    """The class of characters as a pattern writes it."""
    written = ""
    for code, argument in members:
        match str(code):
            case "NEGATE":
                written += "^"
            case "RANGE":
                written += f"\\u{argument[0]:04x}-\\u{min(argument[1], 0xFFFF):04x}"
            case "LITERAL":
                written += re.escape(chr(argument))
            case _:
                name = str(argument).removeprefix("CATEGORY_")
                letter = name.removeprefix("NOT_")[0].lower()
                written += "\\" + (letter.upper() if name.startswith("NOT_") else letter)
    return f"[{written}]"


def _inner(code: Any, argument: Any) -> list[Any]:
    """The trees inside a part that is none of characters."""
    match str(code):
        case "BRANCH":
            return list(argument[1])
        case "SUBPATTERN":
            return [argument[3]]
        case "ATOMIC_GROUP":
            return [argument]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case _:
            return []


def _repeated(tree: Iterable[Any], before: list[str]) -> Iterator[tuple[str, str]]:
    """What is repeated in it, each with a text that leads there."""
    for code, argument in tree:
        for inner in _inner(code, argument):
            yield from _repeated(inner, before)
            if str(code).endswith("REPEAT"):
                yield from product(before, _samples(inner)[:_CHOICES_MAX])
        behind = ("".join(pair) for pair in product(before, _samples_of(code, argument)))
        before = list(dict.fromkeys(behind))[:_CHOICES_MAX]
