"""Days of the small side as the times that lie on them, in every time zone that there is."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from pyspark.sql import SparkSession

from rewriter.domains.instants import CERTAIN_MAX, CERTAIN_MIN, MICROS_MAX, MICROS_MIN
from rewriter.domains.keyset import KeyRanges
from rewriter.domains.literals import Key
from rewriter.semijoins.days_query import DaysQuery, days_query
from rewriter.semijoins.key_query import KeyColumn, Row
from rewriter.vocabulary.skip_reason import SkipReason

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
HOUR = timedelta(hours=1)


def query(type_name: str = "timestamp") -> DaysQuery:
    return days_query(source="d", key="d.`day`", column=KeyColumn(type_name), filters=["d.g = 1"], rows_max=2)


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def begins(day: date, zone: ZoneInfo) -> datetime:
    """The first instant of a day as Java has it: of a midnight that comes twice the first, or the end of a gap."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    instant = midnight.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == midnight.replace(tzinfo=None):
        return instant
    # Midnight is skipped: the clocks were put forward between these two.
    low, high = instant - timedelta(hours=26), instant + timedelta(hours=26)
    offset = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == offset else (low, middle)
    return high.replace(microsecond=0)


def row_of(day: date, zone: ZoneInfo) -> Row:
    first, second, third = (micros(begins(day + timedelta(days), zone)) for days in range(3))
    return first, "date", second, third, zone.key


def changes(zone: ZoneInfo) -> list[datetime]:
    """Instants from which on the clocks are put otherwise, to the hour, since 1950."""
    at, end = datetime(1950, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    found, step = [], timedelta(days=5)
    while at < end:
        if at.astimezone(zone).utcoffset() != (at + step).astimezone(zone).utcoffset():
            found.append(at)
        at += step
    return found


# Those with changes across midnight, and some of each kind beside them.
ZONES = """
America/St_Johns America/Goose_Bay America/Havana America/Sao_Paulo Atlantic/Azores Europe/Berlin Asia/Kolkata
Asia/Gaza
Asia/Beirut Asia/Amman Africa/Cairo Africa/Casablanca America/Asuncion America/Santiago Australia/Lord_Howe
Antarctica/Troll Pacific/Apia Pacific/Kwajalein Pacific/Kiritimati Asia/Tehran Asia/Pyongyang America/Caracas UTC
""".split()


@pytest.mark.parametrize("name", ZONES)
def test_no_time_of_a_day_is_outside_of_its_range(name: str) -> None:
    zone = ZoneInfo(name)
    assert name in available_timezones()
    ranges: dict[date, tuple[Key, Key]] = {}
    asked = query()
    for change in changes(zone):
        for hours in range(6 * 24):
            # Minutes around each full hour: in St. John's clocks were put back one minute after midnight.
            for around in (-30, 0, 0.5, 1, 30):
                moment = change + hours * HOUR + timedelta(minutes=around)
                day = moment.astimezone(zone).date()
                if day not in ranges:
                    [ranges[day]] = known(asked.read([row_of(day, zone)])).ranges
                low, high = ranges[day]
                assert isinstance(low, int)
                assert isinstance(high, int)
                assert low <= micros(moment) <= high, (moment, day)


def known(answer: KeyRanges | SkipReason) -> KeyRanges:
    assert isinstance(answer, KeyRanges)
    return answer


def test_a_day_counts_up_to_the_end_of_a_next_one_that_is_longer() -> None:
    plain = query().read([(0, "date", DAY, 2 * DAY, "UTC")])
    assert known(plain).ranges == ((0, DAY - 1),)
    longer = query().read([(0, "date", DAY, 2 * DAY + 1, "UTC")])
    assert known(longer).ranges == ((0, 2 * DAY),)


def test_days_of_instants_are_those_of_one_time_zone() -> None:
    found = known(query().read([(0, "date", DAY, 2 * DAY, "Europe/Berlin")]))
    assert found.assumptions == (("current_timezone()", "'Europe/Berlin'"),)
    assert "date_trunc('DAY', " in query().sql
    local = query("timestamp_ntz")
    assert known(local.read([(0, "date", DAY, 2 * DAY)])).assumptions == ()
    assert "current_timezone" not in local.sql


def test_without_a_day_nothing_matches_in_any_zone() -> None:
    assert query().read([]) == KeyRanges("timestamp", ())


@pytest.mark.parametrize("type_name", ["string", "timestamp", "timestamp_ntz", "int"])
def test_what_is_no_day_is_refused(type_name: str) -> None:
    assert query().read([(0, type_name, DAY, 2 * DAY, "UTC")]) is SkipReason.KEY_TYPE_CHANGED


def test_more_days_than_are_asked_for_are_too_many() -> None:
    rows = [(number * DAY, "date", (number + 1) * DAY, (number + 2) * DAY, "UTC") for number in range(3)]
    assert query().read(rows) is SkipReason.TOO_MANY_KEYS


@pytest.mark.parametrize("row", [(None, "date", DAY, 2 * DAY, "UTC"), ("0", "date", DAY, 2 * DAY, "UTC")])
def test_what_is_no_number_is_unreadable(row: Row) -> None:
    assert query().read([row]) is SkipReason.UNREADABLE_KEY


def test_days_of_other_calendars_and_of_five_digits_are_open_ranges() -> None:
    old = (CERTAIN_MIN - 3 * DAY, "date", CERTAIN_MIN - 2 * DAY, CERTAIN_MIN - DAY, "UTC")
    far = (CERTAIN_MAX - DAY, "date", CERTAIN_MAX + 1, CERTAIN_MAX + DAY, "UTC")
    found = known(query().read([old, far]))
    assert found.ranges == ((MICROS_MIN, CERTAIN_MIN), (CERTAIN_MAX - DAY, CERTAIN_MAX))
    beyond = (CERTAIN_MAX + 1, "date", CERTAIN_MAX + DAY, CERTAIN_MAX + 2 * DAY, "UTC")
    assert known(query().read([beyond])).ranges == ((CERTAIN_MAX, MICROS_MAX),)
    assert found.cover(["at"]).holds({"at": CERTAIN_MIN - 1})


def test_days_that_begin_in_no_order_are_not_read() -> None:
    """Numbers of microseconds that have overflowed."""
    row = (9 * DAY, "date", -7 * DAY, -6 * DAY)
    assert query("timestamp_ntz").read([row]) is SkipReason.UNREADABLE_KEY


def test_days_that_no_number_of_microseconds_has_are_open(local_spark: SparkSession) -> None:
    days = "VALUES (106751991), (-106751992), (0) AS t (number)"
    sql = f"SELECT date_from_unix_date(number) AS day, 1 AS g FROM {days}"
    asked = days_query(source=f"({sql}) d", key="d.`day`", column=KeyColumn("timestamp_ntz"), rows_max=9)
    found = asked.read([tuple(row) for row in local_spark.sql(asked.sql).collect()])
    assert isinstance(found, KeyRanges)
    assert found.ranges == ((MICROS_MIN, CERTAIN_MIN), (0, DAY - 1), (CERTAIN_MAX, MICROS_MAX))
