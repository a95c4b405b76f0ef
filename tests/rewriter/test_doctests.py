"""The examples in the rewriter's docstrings hold, the one of the library's use among them."""

import doctest
import inspect
from importlib import import_module
from pkgutil import walk_packages

import pytest

import rewriter


def modules_with_examples() -> list[str]:
    names = ["rewriter", *(module.name for module in walk_packages(rewriter.__path__, "rewriter."))]
    return [name for name in names if ">>>" in inspect.getsource(import_module(name))]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_answer_what_they_say(name: str) -> None:
    failed, attempted = doctest.testmod(import_module(name))
    assert attempted > 0
    assert failed == 0
