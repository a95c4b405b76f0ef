"""Rows around changes of clocks, and questions about their days and times, for tables of any format."""

from support.profile import DEEP

# Four days around a change of clocks. In St. John's an hour of the first day comes after a minute of the second;
# in Havana and in the Azores the first hour of a day comes twice; in Sao Paulo midnight is skipped or the last
# hour of a day comes twice; Apia has no December 30, 2011.
CHANGES = {
    "America/St_Johns": "2006-10-28",
    "America/Havana": "2025-11-01",
    "Atlantic/Azores": "2025-10-25",
    "America/Sao_Paulo": "2018-11-03",
    "Brazil/East": "2019-02-16",
    "Europe/Berlin": "2026-03-28",
    "Pacific/Apia": "2011-12-29",
}
ALL_ZONES = [*CHANGES, "UTC", "Asia/Kolkata", "+05:30"]
# A day in two pieces, a midnight that there is not, a day that there is not, and none of these.
ZONES = ALL_ZONES if DEEP else ["America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "UTC"]

STEPS = ", ".join(f"unix_seconds(TIMESTAMP'{day} 00:00:00Z') - 43200" for day in CHANGES.values())
# A row each five minutes and one each a microsecond before, of five days from noon in UTC.
EVENTS = f"""
SELECT id, timestamp_micros(micros) AS at,
  TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, micros / 1e6) AS local
FROM (SELECT id, 1000000 * (begin + 300 * (id DIV 2)) - id % 2 AS micros
  FROM range(0, 2880, 1, 1) CROSS JOIN (SELECT explode(array({STEPS})) AS begin))"""

# The small sides, and none of their rows depends on the zone of the session that makes them.
SMALL_SIDES = """
CREATE TABLE calendar (day DATE, g INT) USING {format};
INSERT INTO calendar SELECT day, CAST(unix_date(day) % 3 AS INT) FROM
  (SELECT explode(sequence(date_sub(CAST(at AS DATE), 1), date_add(CAST(at AS DATE), 1))) AS day FROM events)
  GROUP BY 1;
INSERT INTO calendar VALUES (NULL, 0), (DATE'2025-11-02', 4), (DATE'0001-01-01', 5), (DATE'9999-12-31', 5),
  (DATE'2025-11-02', 5), (DATE'1500-01-01', 6);
CREATE TABLE moments (at TIMESTAMP, local TIMESTAMP_NTZ, g INT) USING {format};
INSERT INTO moments SELECT at, local, 1 FROM events WHERE id BETWEEN 500 AND 900 AND id % 50 IN (7, 20);
INSERT INTO moments VALUES (NULL, NULL, 1),
  (TIMESTAMP'2025-11-02 04:30:00Z', TIMESTAMP_NTZ'2025-11-02 00:30:00', 2),
  (TIMESTAMP'2025-11-02 04:29:59.999999Z', TIMESTAMP_NTZ'2025-11-02 00:29:59.999999', 2),
  (TIMESTAMP'1850-01-01 00:00:00Z', TIMESTAMP_NTZ'1850-01-01 00:00:00', 3)"""


def of_days(group: int, column: str = "at", table: str = "events") -> str:
    return (
        f"SELECT d.day, count(*), sum(f.id), min(unix_micros(f.at)), max(unix_micros(f.at)) FROM {table} f "
        f"JOIN calendar d ON CAST(f.{column} AS DATE) = d.day WHERE d.g = {group} GROUP BY d.day ORDER BY 1"
    )


def of_moments(group: int, column: str, table: str = "events") -> str:
    joined = f"{table} f JOIN moments d ON f.{column} = d.{column}"
    return f"SELECT f.id, unix_micros(f.at) FROM {joined} WHERE d.g = {group}"
