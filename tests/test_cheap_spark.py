"""The settings of the Spark servers that tests start."""

import re

from support.cheap_spark import QUICK_JAVA


def test_a_server_of_tests_has_as_much_room_for_compiled_code_as_one_with_both_compilers() -> None:
    assert "-XX:TieredStopAtLevel=1" in QUICK_JAVA, "or Java reserves 240 MB by itself"
    assert re.findall(r"-XX:ReservedCodeCacheSize=(\S+)", QUICK_JAVA) == ["240m"]
