"""Each soundness rule with switches that turn it off: a suite that does not notice is no proof.

`docs/soundness.md` lists them by rule, and a test holds the two together.
"""

import re
from dataclasses import dataclass

from sqlglot import exp
from switches import (
    ANY_SIDE,
    Switch,
    a_cte_is_a_table,
    all_columns_are_partition_columns,
    answers,
    any_fact_is_followed,
    any_literal_is_an_integer,
    any_number_of_readers,
    any_reader_drops_padded_rows,
    any_reader_of_a_cte,
    any_text_of_digits_is_its_number,
    any_two_columns_are_united,
    becomes,
    bounds_of_any_type,
    conditions_without_not,
    days_are_ordered_as_texts,
    every_equality_holds_in_a_snowflake,
    every_filter_drops_rows,
    every_filter_holds_in_a_snowflake,
    every_function_is_the_servers,
    every_name_is_defined_once,
    failed_key_query_found_no_keys,
    files_end_where_they_begin,
    files_of_nulls_hold_nothing,
    files_stay_in_their_partitions,
    files_without_bounds_hold_nulls_alone,
    first_branch_alone,
    first_key_lost,
    first_keys_are_all,
    functions_of_null_are_null,
    hidden_sides_are_seen,
    holds_on_both_sides,
    key_type,
    keys_are_asked_for_as_shown,
    keys_are_cast,
    known_functions,
    lacks_are_of_any_column,
    main_query_alone_is_repeatable,
    never_pads,
    no_null_is_outside_of_tuples,
    not_leaves_and_as_it_is,
    null_safe_equality_is_equality,
    null_tests_are_never_true,
    nulls_wherever_padding_is_read,
    numbers_of_rows_are_known,
    only_listed_partitions_match,
    only_readers_with_filters,
    outputs_have_the_types_shown,
    padding_by_the_join_next_to_it,
    padding_matches_nothing,
    parts_of_any_and,
    probed_on_both_sides,
    rows_by_order_and_chance,
    scans_have_any_clauses,
    some_branches_of_a_disjunction,
    statements_of_any_kind,
    subqueries_see_rows_of_the_whole_from,
    targets_as_small_sides,
    terms_taken_apart,
    unknown_bounds_are_those_of_another_file,
    unsent_counts_as_sent,
    writers_of_what_they_read,
)

from rewriter.scopes.join_rules import JoinKind
from rewriter.scopes.join_tree import _TABLE_ARGS
from rewriter.sql.deterministic_functions import BARE_FUNCTIONS

# The statements of `small_scopes` that are few and telling, and all others and the generated ones after them.
SMALL_CASES = "small cases"
SIEVE = "generated statements"
_REFUSED = "rewriter/test_golden.py::test_a_statement_that_the_rule_refuses_says_why_and_stays_as_it_is"
_TAKEN = "rewriter/test_golden.py::test_a_statement_that_the_rule_takes_asks_for_its_keys_and_is_rewritten"
_INSTANTS = "rewriter/domains/test_instants.py"
_DAYS = "rewriter/semijoins/test_days_query.py"


@dataclass(frozen=True)
class Mutation:
    """What holds no longer, what switches it off, and what then fails: a part of the sieve, or a test."""

    clause: str
    apply: Switch
    caught_by: str = SMALL_CASES

    def __str__(self) -> str:
        return self.clause

    @property
    def catcher(self) -> str:
        """What fails, as the page says it."""
        for test in (_REFUSED, _TAKEN):
            if self.caught_by.startswith(test):
                return f"golden `{self.caught_by.removeprefix(test)[1:-1]}`"
        return f"`{self.caught_by}`" if "::" in self.caught_by else self.caught_by


def _golden(case: str) -> str:
    """The test that the case is refused. Rules are held so where DuckDB cannot show what goes wrong on Spark."""
    return f"{_REFUSED}[{case}]"


def _taken(case: str) -> str:
    """The test that the case is rewritten as it is recorded."""
    return f"{_TAKEN}[{case}]"


_JOINS = (
    *(
        Mutation(f"{kind.name} keeps rows without a partner", holds_on_both_sides(kind))
        for kind in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL, JoinKind.ANTI)
    ),
    Mutation("an equality under OR reduces nothing", terms_taken_apart("semijoins.equalities", exp.Or)),
    Mutation(
        "an equality or a subquery under NOT reduces nothing", terms_taken_apart("semijoins.equalities", exp.Not)
    ),
    Mutation(
        "EXISTS over an aggregate always has a row",
        answers("rewriter.semijoins.equalities.is_plain_exists", answer=True),
    ),
    Mutation(
        "a name in EXISTS is its own FROM's first",
        answers("rewriter.scopes.blocks.Scope.certainly_lacks", answer=True),
    ),
    Mutation(
        "a semi-join hides the columns of its right side",
        hidden_sides_are_seen,
        _golden("subqueries: a name that a semi-join hides in EXISTS, which is the outer table's by then"),
    ),
    Mutation(
        "of several columns USING compares the first, and others if a USING has merged them into it",
        becomes("rewriter.scopes.blocks.Scope._equal_to_first", lambda _, alike: alike),
        _golden("joins: the second of two columns that no USING has merged"),
    ),
    Mutation(
        "a name that is found in another case may be that of another column",
        answers("rewriter.scopes.blocks.Scope._may_be_another", answer=False),
        _golden("joins: the field of a column that has the name of a fact in another case"),
    ),
)
_PROBED = (
    Mutation("rows left of ANTI are not probed", probed_on_both_sides),
    Mutation(
        "a subquery is evaluated for rows of the join that it stands in",
        subqueries_see_rows_of_the_whole_from,
    ),
)
_FILTERS = (
    *(
        Mutation(f"a condition above {kind.name} may see padded rows", never_pads(kind))
        for kind in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
    ),
    Mutation(
        "a join further up may pad what a condition reads",
        padding_by_the_join_next_to_it,
        _golden("outer_joins: a filter above the padding of a join two levels up"),
    ),
    Mutation("a disjunction implies only what every branch says", some_branches_of_a_disjunction),
    Mutation(
        "an expression over padded rows is no key",
        answers("rewriter.scopes.join_tree.Leaf.is_padded_below", answer=False),
    ),
)
_STRENGTHENED = (
    Mutation(
        "IS NULL and <=> let padded rows pass",
        null_tests_are_never_true,
    ),
    Mutation("a term under OR need not hold", terms_taken_apart("scopes.outer_to_inner", exp.Or)),
    Mutation(
        "a condition drops rows only where it holds",
        answers("rewriter.scopes.outer_to_inner._drops_padded", answer=True),
    ),
    Mutation("a function may give something for null", functions_of_null_are_null),
    Mutation(
        "two literals may be equal",
        answers("rewriter.sql.null_logic._differ", answer=True),
        _golden("strengthened: a choice between literals that lets a padded row pass"),
    ),
    Mutation(
        "a filter outside must drop the padded rows for good",
        answers("rewriter.scopes.outer_to_inner.must_be_passed", answer=True),
    ),
    Mutation(
        "an output outside is null in every row that padded rows become or change", nulls_wherever_padding_is_read
    ),
    Mutation("every reader of padded rows must drop them", any_reader_drops_padded_rows),
)
_LINEAGE = (
    Mutation("a key is not followed past LIMIT", becomes("rewriter.scopes.lineage._CHOOSING_CLAUSES", ())),
    Mutation("a key must be a key of all groups", answers("rewriter.scopes.kept_keys.has_totals", answer=False)),
    Mutation(
        "a key must be a window partition key",
        answers("rewriter.scopes.kept_keys.KeptKeys.is_partitioned_by", answer=True),
    ),
    Mutation("a CTE with several readers is not followed", any_reader_of_a_cte),
    Mutation(
        "columns that an outer join shows as one are those that it compares",
        any_two_columns_are_united,
        _golden("outer_joins: coalesce of columns that the join does not compare"),
    ),
    Mutation(
        "the two columns of a coalesce have one type",
        becomes("rewriter.semijoins.equalities.of_one_type", lambda _, pair: pair),
        _golden("outer_joins: coalesce of columns of two types"),
    ),
    Mutation(
        "a branch of a UNION that others may cast is not followed",
        answers("rewriter.scopes.lineage._type_of_cast", answer="string"),
        _golden("derived: a UNION that casts what a branch shows"),
    ),
    Mutation("a CTE hides a table of its name", a_cte_is_a_table),
    Mutation(
        "a CTE is not seen before it is defined",
        answers("rewriter.scopes.scopes._sees", answer=True),
    ),
    Mutation(
        "a CTE is not seen outside the query that has its WITH",
        answers("rewriter.scopes.scopes._sees", answer=True),
        _golden("derived: a CTE outside the query that has its WITH"),
    ),
    Mutation(
        "a CTE may be hidden by another of its name",
        every_name_is_defined_once,
        _golden("derived: a CTE that one within it hides"),
    ),
)
_READERS = (
    Mutation("an outer filter must drop the rows for good", every_filter_drops_rows),
    Mutation(
        "a join inside may pad what an outer filter reads",
        answers("rewriter.semijoins.outer_filters.condition_holds", answer=True),
    ),
    Mutation("every reader of a CTE lets rows pass", only_readers_with_filters),
    Mutation(
        "a reader may stand where it is not understood",
        any_number_of_readers,
        _golden("outer_filters: a CTE of whose readers one takes a sample first"),
    ),
    Mutation(
        "a filter passes an equality of one type only",
        answers("rewriter.semijoins.outer_filters.OuterFilterFinder._are_of_one_type", answer=True),
        _golden("outer_filters: through an equality of different types: '01' = 1"),
    ),
    Mutation(
        "a UNION may cast what an outer filter reads",
        answers("rewriter.scopes.lineage.ColumnTypes.of_output", answer="int"),
        _golden("outer_filters: a UNION that casts the column: '04' IN (4) is false, the cast 4 IN (4) is true"),
    ),
    Mutation(
        "a computed output shows its rows apart",
        answers("rewriter.semijoins.outer_filters.shows_rows_apart", answer=True),
        _golden("outer_filters: a computed output, past a window over all rows"),
    ),
    Mutation(
        "rows of all keys are in a total",
        answers("rewriter.scopes.lineage.has_totals", answer=False),
        _golden("outer_filters: an output of totals, whose null is of all rows: ROLLUP"),
    ),
    Mutation(
        "values that a group puts together are not told apart",
        answers("rewriter.semijoins.exact_values.ExactValues.is_exact", answer=True),
        _golden("outer_filters: a group of 0.0 and -0.0, which a filter on its text would tell apart"),
    ),
)
_SNOWFLAKES = (
    Mutation(
        "an equality of a snowflake must hold for every partner",
        every_equality_holds_in_a_snowflake,
    ),
    Mutation("a filter of a snowflake must hold for every partner", every_filter_holds_in_a_snowflake),
)
_FOLLOWED = (
    Mutation("a fact is followed by its own equalities alone", any_fact_is_followed),
    Mutation(
        "a fact is followed for columns that its small side tells, in their own types",
        answers("rewriter.semijoins.followed_facts.FollowedSide._tells", answer=True),
        _golden("followed_facts: an expression over a value that has another type in the small side"),
    ),
)
_REPEATABLE = (
    Mutation("a random filter stays out of key queries", known_functions("rand"), SIEVE),
    Mutation(
        "an unknown function stays out of key queries",
        known_functions("array_sort"),
        _golden("filters: only a filter by a function that is not known"),
    ),
    Mutation(
        "of the clock a key query reads the day alone",
        answers("rewriter.sql.repeatable._is_the_day", answer=True),
        _golden("session: the day of another time than the clock's"),
    ),
    Mutation(
        "a function that the server lacks stays out of key queries",
        every_function_is_the_servers,
        "rewriter/planning/test_causes.py::test_a_view_calls_a_function_that_the_server_lacks",
    ),
    Mutation(
        "the clock in a string stays out of key queries",
        becomes("rewriter.sql.repeatable.CLOCK_WORDS", frozenset()),
        _golden("filters: the clock in a string that Spark casts"),
    ),
    Mutation(
        "a text that is made of literals may be the clock",
        answers("rewriter.sql.repeatable._may_have_its_letters", answer=False),
        _golden("filters: the clock in a text that is made of a choice and a literal"),
    ),
    Mutation(
        "a function without its argument may be the clock",
        becomes("rewriter.sql.repeatable.WITH_ARGUMENTS", frozenset()),
        _golden("filters: unix_timestamp without arguments is the clock"),
    ),
    Mutation(
        "rows chosen by their order stay out of key queries",
        rows_by_order_and_chance,
        _golden("derived: a small side with LIMIT"),
    ),
    Mutation(
        "rows are chosen by their order only where all that is shown is ordered by",
        answers("rewriter.semijoins.certain_rows._chooses_certain_rows", answer=True),
        _golden("derived: LIMIT by one of two columns that are shown"),
    ),
    Mutation(
        "a window gives the same for rows that are equal in their order",
        numbers_of_rows_are_known,
        _golden("derived: numbers of rows, of which equal ones get any"),
    ),
    Mutation(
        "a CTE that a small side reads is held to the same",
        main_query_alone_is_repeatable,
        _golden("derived: a small side over a CTE with LIMIT"),
    ),
    Mutation(
        "a small side that is partitioned stays out of key queries",
        answers("rewriter.semijoins.small_sides._table_refusal", answer=None),
        _golden("derived: a small side that reads a fact"),
    ),
    Mutation(
        "of a partitioned table a key query reads partition columns alone",
        answers("rewriter.semijoins.small_sides._is_partition_column", answer=True),
        _golden("derived: the partitions of the fact itself by a column that is in its files"),
    ),
    Mutation(
        "of a partitioned table a key query reads extremes, groups, distinct or first values",
        answers("rewriter.semijoins.small_sides._is_of_extremes", answer=True),
        _golden("subqueries: a function of the day of each row of a fact"),
    ),
    Mutation(
        "a row of VALUES that may be a struct has columns that are not known",
        answers("rewriter.sql.inline_tables._is_cell", answer=True),
        _golden("derived: VALUES of structs, which Spark takes for rows of several columns"),
    ),
    Mutation(
        "a generator that may add a row of null is no small side",
        answers("rewriter.sql.inline_tables._is_plain", answer=True),
        _golden("derived: a generator of null where the array has no element"),
    ),
    Mutation(
        "a generator makes rows of what an outer join pads, which no row of the table tells",
        answers("rewriter.scopes.join_tree.Leaf.is_padded_below", answer=False),
        _golden("derived: a generator of what an outer join pads"),
    ),
    Mutation(
        "a correlated subquery stays out of key queries",
        answers("rewriter.semijoins.small_sides._is_closed", answer=True),
        _golden("subqueries: a correlated IN"),
    ),
    Mutation(
        "a small side that is known to be large is not asked",
        answers("rewriter.semijoins.reducers.known_bytes", answer=0),
        _golden("small_sides: a large table behind a view"),
    ),
    Mutation(
        "a small side without a filter is asked only if it is known to be tiny",
        answers("rewriter.semijoins.small_sides.TinySides.are_tiny", answer=True),
        _golden("small_sides: a tiny table beside one of unknown size"),
    ),
    Mutation(
        "a subquery without a filter is asked only if it has one row at most, or no table",
        answers("rewriter.semijoins.small_sides.is_filtered", answer=True),
        _golden("subqueries: IN without a filter"),
    ),
)
_KEYS = (
    Mutation("the two sides have one type", keys_are_cast),
    *(
        Mutation(f"{type_name} has no keys", key_type(type_name), _golden(f"types: {case}"))
        for type_name, case in (
            ("double", "double: -0.0 equals 0.0"),
            ("char(5)", "char: padding"),
        )
    ),
    Mutation(
        "a key that does not fit the column is no key",
        answers("rewriter.semijoins.key_query.fits", answer=True),
        _taken("types: int against bigint: keys that do not fit are dropped"),
    ),
    Mutation("no setting changes how a key arrives", keys_are_asked_for_as_shown, _taken("types: date")),
    Mutation(
        "a day on which calendars differ has no literal",
        becomes("rewriter.domains.literals.CALENDAR_SWITCH_DAYS", ("1582-10-15", "1582-10-14")),
        _golden("types: a day on which calendars differ"),
    ),
    Mutation(
        "a timestamp is no key of a partition column",
        becomes("rewriter.domains.literals.TIMES", frozenset[str]()),
        _golden("types: timestamp: a local time can occur twice"),
    ),
    Mutation(
        "a time whose calendar is not certain has no literal",
        becomes("rewriter.domains.literals.is_certain", lambda _: True),
        f"{_INSTANTS}::test_a_time_whose_calendar_is_not_certain_has_no_literal[old-timestamp]",
    ),
    Mutation(
        "an instant is written with its zone",
        becomes("rewriter.domains.literals.INSTANT", "timestamp_ltz"),
        f"{_INSTANTS}::test_instants_are_written_with_their_zone_and_local_times_without",
    ),
    Mutation(
        "a day goes on where the next one is longer",
        becomes("rewriter.semijoins.days_query._LONGEST_PLAIN_DAY", 1 << 62),
        f"{_DAYS}::test_no_time_of_a_day_is_outside_of_its_range[America/St_Johns]",
    ),
    Mutation(
        "days of instants are those of one time zone",
        becomes("rewriter.semijoins.days_query._ZONE", ""),
        _taken("iceberg/times: days of instants"),
    ),
    Mutation(
        "days in a view's text are those of its maker's time zone",
        answers("rewriter.planning.view_joins._asks_days", answer=False),
        _golden("iceberg/times: a day in a view's text, of its maker's time zone"),
    ),
    Mutation(
        "a day that is a text or a timestamp is none",
        becomes("rewriter.semijoins.days_query._KEY_TYPE", "string"),
        f"{_DAYS}::test_what_is_no_day_is_refused[string]",
    ),
    Mutation(
        "a function may be the user's own",
        becomes("rewriter.semijoins.equalities._CASTS", (exp.Cast, exp.TryCast)),
        _golden("iceberg/times: a function that may be the user's own"),
    ),
    Mutation(
        "a file without certain times is read",
        becomes("rewriter.files.file_facts.is_certain", lambda _: True),
        "rewriter/files/test_files.py::test_times_of_other_calendars_are_no_bounds[instants]",
    ),
    Mutation(
        "a filter finds each time of a file, which it does not in ORC",
        becomes("rewriter.catalog.prunable._finds_times", lambda _: True),
        "rewriter/catalog/test_prunable.py::test_times_are_found_in_parquet[orc-TYPE_REFUSED]",
    ),
    Mutation(
        "a format that is not known may lose times",
        becomes("rewriter.catalog.table_facts._FINDING_TIMES", frozenset({"parquet", "hudi"})),
        "rewriter/planning/test_views.py::test_times_are_no_keys_beside_a_table_in_orc[hudi]",
    ),
    Mutation(
        "what Spark infers of times may be asked of another table, in ORC",
        becomes("rewriter.planning.views.FollowedViews.may_lose_times", value=False),
        "rewriter/planning/test_views.py::test_times_are_no_keys_beside_a_table_in_orc[orc]",
    ),
    Mutation("<=> matches null", null_safe_equality_is_equality),
    Mutation(
        "<=> spelled out tests both its sides for null",
        answers("rewriter.sql.equality._column_name", answer=("k",)),
        _golden("null_safe: a spelling that tests another column for null"),
    ),
    Mutation(
        "neither side of <=> may be padding",
        answers("rewriter.semijoins.equalities._may_be_padding", answer=False),
    ),
    Mutation(
        "a text is said to a reader of files that orders it alike",
        answers("rewriter.predicates.predicate._is_ordered_otherwise_by_orc", answer=False),
        "rewriter/predicates/test_reader_guards.py::test_a_text_that_orc_orders_otherwise_is_left_to_spark[smiley]",
    ),
    Mutation(
        "no range of decimals is said that may wrap around in a file",
        answers("rewriter.predicates.predicate._may_wrap", answer=False),
        "rewriter/predicates/test_reader_guards.py::test_no_range_is_said_of_decimals_that_may_wrap_around_in_a_narrower_file",
    ),
    Mutation(
        "a range is sent where every database orders the keys alike",
        answers("rewriter.predicates.partition_predicate._is_ordered_alike", answer=True),
        "rewriter/predicates/test_predicate.py::test_strings_that_a_database_could_order_otherwise_are_not_sent_as_a_range",
    ),
    Mutation(
        "a cover is widened, never narrowed",
        answers("rewriter.domains.cover.Cover.encloses", answer=True),
        "rewriter/predicates/test_predicate.py::test_a_cover_that_lost_a_key_is_not_said",
    ),
    Mutation(
        "a tuple with a null matches nothing",
        becomes("rewriter.domains.keyset.KeySet.has_null", value=False),
        "rewriter/predicates/test_predicate.py::test_tuples_never_match_a_null_so_a_pair_with_one_is_not_said_as_one",
    ),
    Mutation("every key is in the cover", first_key_lost),
    Mutation(
        "a list of keys that was cut off is not all of them",
        first_keys_are_all,
        "rewriter/semijoins/test_limits.py::test_more_keys_than_are_allowed_narrow_nothing",
    ),
    Mutation(
        "a key query without an answer is not one without keys",
        failed_key_query_found_no_keys,
        "rewriter/test_golden.py::test_without_its_keys_the_statement_stays_as_it_is[joins: join on]",
    ),
    Mutation(
        "a scalar subquery is asked for its rows as they are",
        becomes("rewriter.semijoins.equalities.KeyEquality.is_scalar", value=False),
        _golden(
            "subqueries: a scalar subquery of two rows, if equal ones:"
            " an error that DISTINCT or no keys at all would hide"
        ),
    ),
    Mutation(
        "other keys hide no error of a scalar subquery",
        answers("rewriter.rewrite._has_scalar_subquery_error", answer=False),
        _golden("subqueries: a scalar subquery of two rows beside a join without keys"),
    ),
)
_VIEWS = (
    Mutation(
        "a view that is not the same each time stays out of key queries",
        answers("rewriter.planning.views.view_refusal", answer=None),
        _golden("views: chance in a view"),
    ),
    Mutation(
        "a name in a temporary view's text may be another temporary view's",
        answers("rewriter.catalog.table_facts.ViewText.is_ambiguous", answer=False),
        _golden("views: a temporary view over a name that the session cannot tell from a temporary view's"),
    ),
    Mutation(
        "a view shows a fact in each of its rows",
        answers("rewriter.planning.view_joins._is_in_each_row", answer=True),
        _golden(
            "view_joins: the fact on the padded side in the view: a filter on the view would drop the padded rows"
        ),
    ),
    Mutation(
        "a view is narrowed by what its rows show alone",
        becomes("rewriter.scopes.lineage._CHOOSING_CLAUSES", ()),
        _golden("view_joins: LIMIT in the view"),
    ),
    Mutation(
        "a setting of its maker may change a condition in a view",
        answers("rewriter.semijoins.settled_expressions.SettledExpressions.type_of", answer="boolean"),
        _golden("view_joins: a filter in the view that casts as its maker's settings say"),
    ),
    Mutation(
        "a setting of its maker may change a small side in a view",
        answers("rewriter.scopes.scopes.Scopes.is_in_view", answer=False),
        _golden("view_joins: a derived table in the view, of which the settings are its maker's"),
    ),
    Mutation(
        "a view casts a column that has another type by now",
        outputs_have_the_types_shown,
        _golden(
            "view_joins: a column of another type than the view shows: '05' IN (5) is false, the cast 5 IN (5) is"
            " true"
        ),
    ),
    Mutation(
        "a name in a temporary view's text may be another's, also where the text is planned",
        answers("rewriter.planning.views._ViewQuery._names_lasting", answer=True),
        _golden("view_joins: a temporary view over a name that the session cannot tell from a temporary view's"),
    ),
    Mutation(
        "a view may have another text by now",
        answers("proxy.session.session_catalog._is_as", answer=True),
        "proxy/session/test_star_views.py::test_a_view_that_was_replaced_past_the_proxy_is_left_alone_once",
    ),
    Mutation(
        "an extension may show a user other rows of a table than of a view",
        becomes("proxy.session.catalog.spark_settings._KNOWN_EXTENSIONS", frozenset({"org.example.RowFilters"})),
        "proxy/session/test_star_views.py::test_with_an_unknown_extension_a_view_is_left_alone",
    ),
    Mutation(
        "a view may be read from memory",
        answers("proxy.session.ask_keys.may_be_in_memory", answer=False),
        "proxy/session/test_star_views.py::test_a_view_that_spark_may_read_from_memory_is_left_alone[plan0]",
    ),
)
_SESSION = (
    Mutation(
        "what a key query read of the session is assumed",
        answers("rewriter.semijoins.key_query.session_functions", answer=()),
        _taken("session: a session function in a filter"),
    ),
    Mutation(
        "a key query is read from memory where its statement is",
        becomes("rewriter.semijoins.key_query.NOT_IN_MEMORY", "true"),
        _taken("joins: join on"),
    ),
    Mutation(
        "a name without parentheses is a column's first",
        becomes("rewriter.scopes.scopes.Scopes.bare_functions", BARE_FUNCTIONS),
        _golden("session: without parentheses, a name that is a column of the fact"),
    ),
)
_WORD_TESTS = "rewriter/sql/test_words_as_names.py::test_"
_TEXT = (
    Mutation(
        "the rewritten text is proven",
        answers("rewriter.predicates.splice._is_original_plus", answer=True),
        "rewriter/predicates/test_splice.py::test_an_insertion_beside_a_table_is_not_taken",
    ),
    Mutation(
        "nothing around a predicate can break it up",
        answers("rewriter.predicates.splice.is_one_condition", answer=True),
        "rewriter/predicates/test_splice.py::test_a_predicate_that_is_not_one_condition_by_itself_is_not_taken",
    ),
    Mutation(
        "columns named by database keep their table in view",
        becomes("rewriter.sql.statement.Statement.database_qualifiers", frozenset()),
        _taken("insertion: columns named by database"),
    ),
    Mutation(
        "a filter that stands beside a condition stands where the fact's rows must pass it",
        answers("rewriter.scopes.conjunct_place.must_be_passed", answer=True),
    ),
    Mutation(
        "a filter beside a condition is proven to be a conjunct",
        parts_of_any_and,
        "rewriter/predicates/test_splice.py::test_a_further_conjunct_that_is_none_is_not_taken",
    ),
    Mutation(
        "_metadata keeps its table in view",
        becomes("rewriter.sql.statement.Statement.reads_metadata", value=False),
        _golden("insertion: _metadata"),
    ),
    Mutation(
        "a sampled reference is left alone",
        becomes("rewriter.scopes.join_tree._TABLE_ARGS", _TABLE_ARGS | {"sample"}),
        _golden("insertion: TABLESAMPLE"),
    ),
    Mutation(
        "text of uncertain extent is left alone",
        becomes("rewriter.sql.statement._BACKSLASH_NEWLINE", re.compile("(?!)")),
        _golden("insertion: a comment that a backslash carries on"),
    ),
    Mutation(
        "what is a clause to sqlglot and a name to Spark is left alone",
        answers("rewriter.sql.statement.has_clause_of_sqlglot", answer=False),
        f"{_WORD_TESTS}what_sqlglot_would_read_as_a_clause_is_refused[SELECT g FROM f AS left JOIN d ON ds = k]",
    ),
    Mutation(
        "a narrowed table has an alias that Spark takes",
        becomes("rewriter.vocabulary.identifiers._NO_ALIASES", frozenset()),
        f"{_WORD_TESTS}a_narrowed_table_has_an_alias_that_spark_takes",
    ),
    Mutation(
        "a field of a variant may give an output its name",
        answers("rewriter.sql.statement._names_by_field", answer=False),
        f"{_WORD_TESTS}a_field_of_a_variant_gives_its_name_to_the_output[SELECT f.id, CAST(f.v:g AS int) FROM f "
        "JOIN d ON f.ds = d.ds ORDER BY g]",
    ),
)
_WRITES = (
    Mutation(
        "what stores its text is left alone", statements_of_any_kind, _golden("writes: what stores its text")
    ),
    Mutation(
        "what writes what it reads is left alone",
        writers_of_what_they_read,
        _golden("writes: MERGE into a table that it reads"),
    ),
    Mutation(
        "the target of an INSERT is no small side",
        targets_as_small_sides,
        _golden("writes: a statement that writes what it reads"),
    ),
    Mutation(
        "a name without a database may be that of any",
        becomes("rewriter.sql.statement._may_be_one", list.__eq__),
        _golden("writes: a table of the same name, perhaps in the same database"),
    ),
    Mutation(
        "a name is a CTE's only where that is in sight",
        answers("rewriter.sql.statement._is_surely_cte", answer=True),
        _golden("writes: a name that is a CTE's only elsewhere"),
    ),
)
_MERGE_TESTS = "rewriter/planning/test_merge_targets.py::test_"
_CLAUSE_TESTS = "rewriter/predicates/test_merge_clause.py::test_"
_MERGES = (
    Mutation(
        "a narrowed MERGE fails for a key that its source was not asked for",
        answers("rewriter.rewrite.check_of_row", answer="(FALSE)"),
        f"{_MERGE_TESTS}on_gets_a_condition_and_a_clause_fails_for_other_keys",
    ),
    Mutation(
        "a MERGE that inserts nothing is left alone",
        answers("rewriter.semijoins.merge_check._first_insert", answer=(0, "INSERT *")),
        f"{_MERGE_TESTS}a_target_is_left_alone[matched rows alone]",
    ),
    Mutation(
        "a MERGE needs each row of its source",
        holds_on_both_sides(JoinKind.RIGHT),
        f"{_MERGE_TESTS}the_source_is_never_narrowed_by_the_target",
    ),
    Mutation(
        "every key that could match counts as new",
        answers("rewriter.predicates.merge_clause._can_match", answer="FALSE"),
        f"{_CLAUSE_TESTS}what_counts_as_a_new_key_is_what_could_match",
    ),
    Mutation(
        "nothing in a check can break up what is around it",
        answers("rewriter.predicates.splice.is_enclosed", answer=True),
        f"{_CLAUSE_TESTS}a_check_that_could_break_up_what_is_around_it_is_not_taken",
    ),
)
_METASTORE = (
    Mutation(
        "a key that a metastore's filter cannot say is not sent",
        answers("rewriter.predicates.predicate.can_compare", answer=True),
        _taken("metastore: a key that ends in a backslash, beside a filter on another partition column"),
    ),
    Mutation(
        "nor is a range of days that may hold some of 1582",
        answers("rewriter.predicates.predicate.can_compare_range", answer=True),
        "rewriter/predicates/test_metastore_filter.py::"
        "test_no_range_is_sent_that_may_hold_days_that_derby_takes_for_others[0001-01-01-9999-12-31]",
    ),
    Mutation(
        "a column that a metastore's filter cannot name is not sent",
        answers("rewriter.rewrite.can_name", answer=True),
        _taken("metastore: a partition column whose name begins with an underscore"),
    ),
    Mutation(
        "nor is what Spark infers for such a column of another table",
        becomes("rewriter.planning.views.FollowedViews.partition_columns", frozenset()),
        _taken("metastore: another table's column of such a name, for which Spark infers the same"),
    ),
    Mutation(
        "nor what it infers from a data column",
        unsent_counts_as_sent,
        "rewriter/predicates/test_metastore_filter.py::"
        "test_of_a_data_column_nothing_is_said_that_spark_could_infer_for_such_a_column[buckets]",
    ),
    Mutation(
        "nor a day or number that it may read in another way",
        answers("rewriter.rewrite._is_read_alike", answer=True),
        "rewriter/predicates/test_metastore_filter.py::"
        "test_no_day_or_number_is_sent_where_the_metastore_may_read_a_partition_in_another_way[another table]",
    ),
    Mutation(
        "nothing is said that Spark could infer for a table of another system",
        becomes("rewriter.planning.views.FollowedViews.foreign", frozenset()),
        "rewriter/predicates/test_metastore_filter.py::test_nothing_is_inferred_for_a_table_of_another_system[d]",
    ),
    Mutation(
        "another system is asked by no condition that Spark tests itself",
        answers("rewriter.semijoins.filtered_sides._has_outer_condition", answer=False),
        "rewriter/semijoins/test_small_sides.py::"
        "test_a_database_is_not_asked_by_a_condition_that_spark_tests_itself"
        "[SELECT f.id FROM f RIGHT JOIN d ON f.ds = d.ds AND d.g = 1-False]",
    ),
    Mutation(
        "another system tells no keys apart",
        answers("rewriter.semijoins.reducers.reads_foreign", answer=False),
        "rewriter/semijoins/test_small_sides.py::test_a_database_does_not_tell_distinct_keys_apart[jdbc]",
    ),
)
_VERSION_TESTS = "rewriter/planning/test_snapshot_pins.py::test_"
_VERSIONS = (
    Mutation(
        "a version of a table has columns of its own",
        answers("rewriter.scopes.join_tree.version_of", answer=""),
        f"{_VERSION_TESTS}a_version_is_described_by_itself_for_it_may_have_other_columns",
    ),
    Mutation(
        "a version is a literal that says the same each time",
        becomes("rewriter.sql.time_travel._MOMENT", re.compile(".*")),
        f"{_VERSION_TESTS}a_version_that_is_computed_or_unusual_is_refused",
    ),
    Mutation(
        "only an Iceberg table at a snapshot cannot change",
        answers("rewriter.semijoins.small_sides.is_fixed", answer=True),
        f"{_VERSION_TESTS}what_is_read_at_a_snapshot_cannot_change_and_nothing_else",
    ),
    Mutation(
        "what Iceberg tells of a table can change at its snapshot too",
        becomes("rewriter.catalog.table_facts._TABLE_PARTS", 4),
        f"{_VERSION_TESTS}a_version_of_the_clients_own_is_kept_and_counts_as_pinned_where_it_is_a_snapshot",
    ),
    Mutation(
        "a table is read at a snapshot wherever the statement names it, or nowhere",
        answers("rewriter.planning.snapshot_pins._mentions", answer=()),
        f"{_VERSION_TESTS}a_table_that_keys_are_read_from_is_pinned_wherever_the_statement_reads_it_or_nowhere",
    ),
    Mutation(
        "a text with versions is proven",
        answers("rewriter.planning.snapshot_pins._is_original_pinned", answer=True),
        f"{_VERSION_TESTS}a_version_that_would_run_into_the_alias_is_not_taken",
    ),
    Mutation(
        "with strict consistency only keys that cannot change are used",
        becomes("rewriter.planning.scans._by_fixed_keys", lambda scan: scan),
        f"{_VERSION_TESTS}strict_a_fact_is_narrowed_by_keys_of_snapshots_alone",
    ),
)
_SCAN_TESTS = "rewriter/predicates/test_scan_predicate.py::test_"
_FILE_SIEVE = "differential/test_file_sieve.py::test_small_cases_that_skip_files_answer_as_they_do_in_full"
_OWN_FILTER_TESTS = "rewriter/semijoins/test_own_filters.py::test_"
_OWN_FILTERS = (
    Mutation(
        "a filter chooses files only where a row that fails it counts nowhere",
        answers("rewriter.semijoins.side_filters.must_be_passed", answer=True),
        _FILE_SIEVE,
    ),
    Mutation("a disjunction chooses the files of all its branches", first_branch_alone, _FILE_SIEVE),
    Mutation(
        "a filter under NOT is not the filter",
        conditions_without_not,
        _FILE_SIEVE,
    ),
    Mutation("NOT turns AND into OR, and OR into AND", not_leaves_and_as_it_is, _FILE_SIEVE),
    Mutation("a tuple with a null is outside of a list", no_null_is_outside_of_tuples, _FILE_SIEVE),
    Mutation(
        "a text is a number where it is how Spark writes it",
        any_text_of_digits_is_its_number,
        f"{_OWN_FILTER_TESTS}what_is_not_certain_says_nothing[x NOT IN ('01')]",
    ),
    Mutation(
        "a text is a day where they are equal, not in an order",
        days_are_ordered_as_texts,
        f"{_OWN_FILTER_TESTS}what_is_not_certain_says_nothing[d < '2026-01-01']",
    ),
    Mutation(
        "a filter's literal is of its column's own type",
        any_literal_is_an_integer,
        _golden("files/file_hints: a string where Spark casts the column or the literal"),
    ),
    Mutation(
        "an integer leaves a decimal's places as they are",
        answers("rewriter.domains.written_literals._digits_of_integer", answer=0),
        f"{_OWN_FILTER_TESTS}what_is_not_certain_says_nothing[r IN (5)]",
    ),
    Mutation(
        "a function in a filter may be the user's own",
        becomes("rewriter.domains.written_literals._CASTS", (exp.Cast,)),
        f"{_OWN_FILTER_TESTS}what_is_not_certain_says_nothing[x = int(1)]",
    ),
    Mutation(
        "a filter's text has one meaning under every setting",
        answers("rewriter.semijoins.literal_filters.depends_on_quoting", answer=False),
        _golden("files/file_hints: a string whose quotes mean what a setting says"),
    ),
)
_FILES = (
    Mutation("a file between whose bounds a key lies is read", files_end_where_they_begin, _FILE_SIEVE),
    Mutation(
        "a file of which bounds are not known is read",
        unknown_bounds_are_those_of_another_file,
        "rewriter/files/test_files.py::test_a_bound_on_one_side_counts_by_itself",
    ),
    Mutation(
        "null is in a file that may hold it",
        answers("rewriter.files.bounds._may_hold_null", answer=False),
        "rewriter/files/test_files.py::test_null_is_in_a_file_unless_the_index_counted_none_beside_its_bounds",
    ),
    Mutation(
        "a file of nulls alone is one of which all rows were counted",
        files_without_bounds_hold_nulls_alone,
        "rewriter/files/test_files.py::test_null_is_in_a_file_unless_the_index_counted_none_beside_its_bounds",
    ),
    Mutation("a file of nulls alone is read where null is asked for", files_of_nulls_hold_nothing, _FILE_SIEVE),
    Mutation(
        "a list of lacked tuples is of all its columns",
        lacks_are_of_any_column,
        _taken("files/file_hints: one of two skewed columns: its files and others"),
    ),
    Mutation(
        "bounds count while the column has the type that they are of",
        bounds_of_any_type,
        "rewriter/files/test_files.py::test_bounds_of_another_type_than_the_table_has_now_are_none",
    ),
    Mutation(
        "a hint holds while the columns have the types that it rests on",
        answers("rewriter.predicates.scan_predicate._own_type_changes", answer=[]),
        _taken("files/file_hints: a filter without a join"),
    ),
    Mutation(
        "files are told apart by a format's own _metadata alone",
        becomes("rewriter.catalog.table_facts._INDEXED_PROVIDERS", frozenset({"parquet", "orc", "csv"})),
        _golden("files/file_hints: a format whose text is read by options and settings"),
    ),
    Mutation(
        "no hint names a file of a table in Hive's format",
        becomes("rewriter.catalog.table_facts.TableFacts._has_file_identities", value=True),
        _golden(
            "files/file_hints: Hive's format: Spark names no files of it,"
            " and skips row groups by the filter itself"
        ),
    ),
    Mutation(
        "partition columns and others stand in conditions of their own",
        all_columns_are_partition_columns,
        f"{_SCAN_TESTS}of_pairs_partitions_and_files_are_told_apart",
    ),
    Mutation(
        "a file is chosen by what is in it, not by the partition that it was indexed in",
        files_stay_in_their_partitions,
        f"{_SCAN_TESTS}a_file_may_lie_in_another_partition_since_it_was_indexed[keys]",
    ),
    Mutation(
        "a key query reads no table that is laid out, unless it is known to be the smaller one",
        answers("rewriter.semijoins.snowflake.is_laid_out", answer=False),
        f"{_SCAN_TESTS}a_key_query_never_reads_the_fact_itself",
    ),
)
_ICEBERG = (
    Mutation(
        "a hidden column of Iceberg's keeps its table in view",
        answers("rewriter.planning.scans._hides_metadata", answer=False),
        _golden("iceberg/iceberg: a hidden column that would be found further out"),
    ),
    Mutation(
        "what tells of a table's files is no table with keys",
        becomes("rewriter.catalog.table_facts._TABLE_PARTS", 4),
        _golden("iceberg/iceberg: a metadata table"),
    ),
    Mutation(
        "what could be a UUID is not for Iceberg to compare",
        answers("rewriter.predicates.predicate._may_be_uuid", answer=False),
        _taken("iceberg/iceberg: what could be UUIDs stands beside what cannot"),
    ),
    Mutation(
        "what Iceberg is asked holds while the columns have the types that it rests on",
        answers("rewriter.predicates.predicate.changed_assumptions", answer=[]),
        _taken("iceberg/iceberg: a column with bounds"),
    ),
    Mutation(
        "what Iceberg is asked is widened, never narrowed",
        answers("rewriter.domains.cover.Cover.encloses", answer=True),
        "rewriter/predicates/test_iceberg_predicate.py::test_what_lost_a_key_is_not_said",
    ),
    Mutation(
        "of a view no more is said than of the tables behind it",
        answers("rewriter.planning.views._skips_files", answer=True),
        "rewriter/predicates/test_iceberg_predicate.py::test_a_view_of_which_one_branch_is_no_iceberg_table_is_left_alone",
    ),
)

_DELTA = (
    Mutation(
        "a timestamp of Delta's is no key",
        becomes("rewriter.catalog.prunable._finds_times", lambda _: True),
        _golden("delta/delta: a timestamp: partition columns may be made of it"),
    ),
    Mutation(
        "beside a Delta table whose partition columns may be generated nothing is narrowed",
        becomes("rewriter.planning.views.FollowedViews.generating", frozenset()),
        "rewriter/planning/test_causes.py"
        "::test_beside_a_delta_table_whose_partition_columns_may_be_generated_nothing_is_narrowed",
    ),
    Mutation(
        "what Delta is asked is widened, never narrowed",
        answers("rewriter.domains.cover.Cover.encloses", answer=True),
        "rewriter/predicates/test_delta_predicate.py::test_what_lost_a_key_is_not_said_of_delta",
    ),
    Mutation(
        "what is not known may be a Delta table",
        becomes("rewriter.planning.views.FollowedViews.is_whole", value=True),
        "rewriter/planning/test_causes.py"
        "::test_what_is_not_known_may_be_a_delta_table_where_the_server_has_them[JOIN unknown x ON f.ds = x.s]",
    ),
    Mutation(
        "a function of a user's own may read a Delta table",
        answers("rewriter.planning.views.calls_own_functions", answer=False),
        "rewriter/planning/test_causes.py"
        "::test_what_is_not_known_may_be_a_delta_table_where_the_server_has_them[AND seen(f.ds)]",
    ),
    Mutation(
        "decimals and texts whose bounds a writer of Delta may round or cut are no keys beside its tables",
        answers("rewriter.catalog.prunable.is_rounded_in_delta", answer=False),
        "rewriter/planning/test_causes.py::test_decimals_whose_bounds_a_writer_rounds_are_no_keys_of_delta",
    ),
)

_TASKS = (
    Mutation(
        "nothing is narrowed where rows are numbered by the task that reads them",
        becomes("rewriter.sql.task_dependence._BY_TASK", frozenset()),
        f"{_REFUSED}[tasks: two readings of a table that are put together by numbers of their rows]",
    ),
    Mutation(
        "nothing is narrowed where chance comes from a seed",
        becomes("rewriter.sql.task_dependence._BY_SEED", frozenset()),
        f"{_REFUSED}[tasks: chance from a seed]",
    ),
    Mutation(
        "nothing is narrowed where a user's own function may number rows",
        answers("rewriter.sql.task_dependence._is_another", answer=False),
        f"{_REFUSED}[tasks: a function of a user's own without arguments, which may number rows]",
    ),
    Mutation(
        "what a view shows of tasks is shown by the statement",
        becomes("rewriter.planning.views.FollowedViews.queries", value=()),
        f"{_REFUSED}[tasks: numbers of rows in a view]",
    ),
)

_FEWER_SPLITS = "rewriter/splits/test_fewer_splits.py::test_"
_GROUPED_ANSWERS = "rewriter/splits/test_grouped_answers.py::test_"

_SPLITS = (
    Mutation(
        "what a statement shows of its splits stays as it is",
        becomes("rewriter.sql.task_dependence._BY_ORDER", frozenset()),
        f"{_FEWER_SPLITS}a_statement_may_be_narrowed_and_keep_its_splits",
    ),
    Mutation(
        "a bucket is a split that a plan may rely on",
        becomes("rewriter.catalog.table_facts.TableFacts.packs_files", value=True),
        f"{_FEWER_SPLITS}a_bucketed_table_keeps_its_splits",
    ),
    Mutation(
        "a group of splits is no larger than a split may be",
        answers("rewriter.splits.packing._fits", answer=True),
        "rewriter/splits/test_packing.py::test_files_that_are_large_are_left_to_spark",
    ),
    Mutation(
        "a hint in a narrowed scan says the number of splits and nothing else",
        answers("rewriter.predicates.splice._is_hint", answer=True),
        f"{_FEWER_SPLITS}a_hint_that_is_not_the_number_of_splits_is_not_taken",
    ),
    Mutation(
        "a hint stands alone only in a scan that could be narrowed",
        answers("rewriter.splits.grouped_scans._is_plain_table", answer=True),
        f"{_FEWER_SPLITS}a_scan_that_cannot_stand_in_a_select_of_its_own_keeps_its_splits",
    ),
    Mutation(
        "a hint that stands alone brings no filter",
        scans_have_any_clauses,
        f"{_FEWER_SPLITS}a_hint_alone_that_brings_a_filter_is_not_taken",
    ),
    Mutation(
        "a statement that says how many tasks it wants keeps them",
        becomes("rewriter.sql.task_dependence._CHOOSING", frozenset()),
        f"{_FEWER_SPLITS}a_statement_that_shows_or_chooses_its_tasks_keeps_them",
    ),
    Mutation(
        "a statement that calls a user's function keeps its tasks where nothing narrows it",
        answers("rewriter.sql.task_dependence._is_another", answer=False),
        f"{_FEWER_SPLITS}a_statement_that_shows_or_chooses_its_tasks_keeps_them",
    ),
    Mutation(
        "sums of floating-point numbers keep the tasks of a scan that nothing narrows",
        answers("rewriter.splits.grouped_scans.are_sums_exact", answer=True),
        f"{_FEWER_SPLITS}sums_that_depend_on_the_order_of_rows_keep_the_splits_of_a_scan_that_nothing_narrows",
    ),
    Mutation(
        "a sum is exact by the type of a column that its own FROM has",
        becomes("rewriter.splits.grouped_scans._type_of", lambda *_: "int"),
        f"{_FEWER_SPLITS}sums_of_columns_that_a_table_is_known_to_have_are_exact",
    ),
    Mutation(
        "texts that are equal by their collation keep the tasks of a scan that nothing narrows",
        answers("rewriter.splits.grouped_scans._compares_by_collation", answer=False),
        f"{_FEWER_SPLITS}texts_that_are_equal_by_their_collation_keep_the_splits",
    ),
    Mutation(
        "a sum of decimals that has no room for any order keeps the tasks of a scan that nothing narrows",
        becomes("rewriter.splits.exact_sums._DECIMAL_DIGITS_MAX", 38),
        f"{_GROUPED_ANSWERS}where_a_sum_of_decimals_may_pass_the_range_on_the_way_splits_are_kept",
    ),
    Mutation(
        "an extreme that may be either zero keeps the tasks of a scan that nothing narrows",
        answers("rewriter.splits.grouped_scans.are_extremes_exact", answer=True),
        f"{_GROUPED_ANSWERS}where_an_extreme_may_be_a_zero_with_a_sign_splits_are_kept",
    ),
    Mutation(
        "a statement may make floating-point numbers of texts and integers",
        answers("rewriter.splits.grouped_scans.makes_floats", answer=False),
        f"{_GROUPED_ANSWERS}where_an_extreme_may_be_a_zero_with_a_sign_splits_are_kept",
    ),
    Mutation(
        "rows by an order that does not tell them apart keep the tasks of a scan that nothing narrows",
        answers("rewriter.splits.grouped_scans.takes_certain_rows", answer=True),
        f"{_GROUPED_ANSWERS}where_other_rows_may_be_taken_of_those_that_are_equal_in_their_order_splits_are_kept",
    ),
    Mutation(
        "a scan is grouped only beside tables that are known, each of which is named once",
        answers("rewriter.splits.grouped_scans._reads_known_tables_once", answer=True),
        f"{_FEWER_SPLITS}a_table_that_is_read_twice_keeps_its_splits",
    ),
    Mutation(
        "a field that Spark reads alone through a function keeps the tasks of a scan that nothing narrows",
        answers("rewriter.splits.grouped_scans._reads_fields_apart", answer=False),
        f"{_GROUPED_ANSWERS}where_spark_reads_a_field_alone_through_a_function_splits_are_kept",
    ),
    Mutation(
        "a window that ends at a row keeps its tasks",
        answers("rewriter.sql.task_dependence._counts_rows", answer=False),
        f"{_FEWER_SPLITS}windows_that_end_at_a_row_keep_the_splits_of_narrowed_scans_too",
    ),
)

_LISTS = (
    Mutation("a partition that is not in the list may match", only_listed_partitions_match),
    Mutation("null stands for rows that an outer join pads", padding_matches_nothing, SIEVE),
    Mutation(
        "a condition holds for facts on some sides alone",
        becomes("rewriter.semijoins.partition_conditions.CONDITION_HOLDS", ANY_SIDE),
        _golden("listed/partition_list: the preserved side"),
    ),
    Mutation(
        "a partner's padding may satisfy the condition",
        answers("rewriter.scopes.join_tree.Leaf.is_padded_below", answer=False),
        _golden("listed/partition_list: the partner's columns padded by a join below"),
    ),
    Mutation(
        "what differs from time to time is not asked about partitions",
        answers("rewriter.semijoins.side_filters.BlockFilters.is_repeatable", answer=True),
        _golden("listed/partition_list: chance in the condition"),
    ),
    Mutation(
        "a computed column counts where rows that are alike in it are shown apart",
        answers("rewriter.semijoins.computed_columns.shows_rows_apart", answer=True),
        _golden("listed/partition_list: a computed column of rows that are counted apart"),
    ),
    Mutation(
        "an outer join may pad what has been computed",
        answers("rewriter.semijoins.partition_query.PartitionList._padded", answer=""),
        "rewriter/semijoins/test_computed_columns.py::"
        "test_an_outer_join_pads_what_is_computed_and_what_it_is_computed_of",
    ),
    Mutation(
        "an aggregate that has passed a filter is a value of one row",
        becomes("rewriter.semijoins.partition_conditions._EXTREMES", (exp.AggFunc,)),
        _golden("listed/partition_list: a sum of numbers that are bounded"),
    ),
    Mutation(
        "an extreme has passed the filters on its own column",
        answers("rewriter.semijoins.partition_conditions._reads_alone", answer=True),
        _golden("listed/partition_list: the last day of rows that are bounded by another column"),
    ),
    Mutation(
        "an extreme that has passed a filter is of the type of the fact's column",
        answers("rewriter.semijoins.partition_conditions._are_of_one_type", answer=True),
        _golden(
            "listed/partition_list:"
            " a last day of another type: as texts ' 2026-01-03' comes before the bound, as days behind it"
        ),
    ),
)
MUTATIONS = (
    *_JOINS,
    *_PROBED,
    *_FILTERS,
    *_STRENGTHENED,
    *_LINEAGE,
    *_READERS,
    *_SNOWFLAKES,
    *_FOLLOWED,
    *_REPEATABLE,
    *_VIEWS,
    *_SESSION,
    *_KEYS,
    *_LISTS,
    *_TEXT,
    *_WRITES,
    *_MERGES,
    *_METASTORE,
    *_VERSIONS,
    *_OWN_FILTERS,
    *_FILES,
    *_ICEBERG,
    *_DELTA,
    *_TASKS,
    *_SPLITS,
)
