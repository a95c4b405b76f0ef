"""Tests that start the same server form one group, and the longest groups begin first."""

from support.groups import (
    LONGEST_FIRST,
    SHARED,
    SPARK_ANSWERS,
    SPARK_CLIENTS,
    GroupedTest,
    UsedFixture,
    groups_of,
    rank,
)

SPARK = UsedFixture("spark", "tests", "session")
LOCAL_SPARK = UsedFixture("local_spark", "tests", "session")
PLUGIN = UsedFixture("tmp_path_factory", "", "session")
OWN_SERVER = UsedFixture("over_http", "tests/http/test_a.py", "module")
OWN_SPARK = UsedFixture("spark", "tests/pipeline/test_b.py", "function")
OWN_TABLE = UsedFixture("table", "tests/http/test_a.py", "function")


def test_a_test_goes_where_its_shared_fixture_is() -> None:
    assert groups_of([GroupedTest("tests/x/test_a.py", (SPARK, PLUGIN))]) == ["spark"]


def test_the_tests_of_some_folders_have_a_server_of_their_own() -> None:
    assert groups_of([GroupedTest("tests/faults/test_a.py", (SPARK,))]) == [SPARK_CLIENTS]
    assert groups_of([GroupedTest("tests/reach/test_a.py", (SPARK,))]) == [SPARK_ANSWERS]
    assert groups_of([GroupedTest("tests/reach/test_a.py", (LOCAL_SPARK,))]) == ["local_spark"]
    assert groups_of([GroupedTest("tests/reach/test_a.py", (PLUGIN,))]) == ["test_a.py"]


def test_a_test_of_no_shared_fixture_goes_with_its_module() -> None:
    assert groups_of([GroupedTest("tests/x/test_a.py", (PLUGIN,))]) == ["test_a.py"]


def test_a_fixture_of_the_same_name_in_a_module_is_another_fixture() -> None:
    assert groups_of([GroupedTest("tests/pipeline/test_b.py", (OWN_SPARK, LOCAL_SPARK))]) == ["local_spark"]


def test_tests_that_share_a_server_of_their_module_stay_together() -> None:
    tests = [
        GroupedTest("tests/http/test_a.py", (OWN_SERVER,)),
        GroupedTest("tests/http/test_a.py", (OWN_SERVER, SPARK)),
        GroupedTest("tests/http/test_a.py", (OWN_SERVER,)),
    ]
    assert groups_of(tests) == ["spark"] * 3


def test_tests_that_share_nothing_that_lasts_may_be_apart() -> None:
    tests = [
        GroupedTest("tests/http/test_a.py", (OWN_TABLE, PLUGIN)),
        GroupedTest("tests/http/test_a.py", (OWN_TABLE, SPARK)),
    ]
    assert groups_of(tests) == ["test_a.py", "spark"]


def test_tests_that_are_bound_by_way_of_a_third_stay_together() -> None:
    second = UsedFixture("second", "tests/http/test_a.py", "module")
    tests = [
        GroupedTest("tests/http/test_a.py", (OWN_SERVER,)),
        GroupedTest("tests/http/test_a.py", (second, SPARK)),
        GroupedTest("tests/http/test_a.py", (OWN_SERVER, second)),
    ]
    assert groups_of(tests) == ["spark"] * 3


def test_a_chosen_group_is_kept() -> None:
    assert groups_of([GroupedTest("tests/x/test_a.py", (LOCAL_SPARK,), chosen="spark")]) == ["spark"]


def test_of_two_shared_fixtures_the_first_in_order_decides() -> None:
    tests = [GroupedTest("tests/x/test_a.py", (LOCAL_SPARK, SPARK))]
    assert groups_of(tests) == [SHARED[0]]


def test_the_longest_groups_begin_first() -> None:
    groups = ["test_a.py", LONGEST_FIRST[1], "test_b.py", LONGEST_FIRST[0]]
    assert sorted(groups, key=rank) == [LONGEST_FIRST[0], LONGEST_FIRST[1], "test_a.py", "test_b.py"]
