"""The Star Schema Benchmark: its tables, small and computed from row numbers, and its 13 queries.

After P. O'Neil, E. O'Neil, X. Chen and S. Revilak: The Star Schema Benchmark (TPCTC 2009). Names, types and the
queries are the paper's; the data follows its domains (a brand belongs to a category, a city to a nation).
"""

import duckdb
from star_benchmark import StarBenchmark

LINEORDERS = 120_000
CUSTOMERS = 3_000
SUPPLIERS = 200
PARTS = 2_000

# Orders are dated on every tenth day of seven years, one partition each.
DAYS_BETWEEN_ORDERS = 10
DAYS = 2_556

PARTITION_COLUMNS = {"lineorder": "lo_orderdate"}

_REGIONS = "['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST']"
_NATIONS = """[
    ['ALGERIA', 'ETHIOPIA', 'KENYA', 'MOROCCO', 'MOZAMBIQUE'],
    ['ARGENTINA', 'BRAZIL', 'CANADA', 'PERU', 'UNITED STATES'],
    ['CHINA', 'INDIA', 'INDONESIA', 'JAPAN', 'VIETNAM'],
    ['FRANCE', 'GERMANY', 'ROMANIA', 'RUSSIA', 'UNITED KINGDOM'],
    ['EGYPT', 'IRAN', 'IRAQ', 'JORDAN', 'SAUDI ARABIA']
]"""

# `draw` draws below n for a row and a purpose, the same in every run with one DuckDB. A city is its nation's name,
# cut or filled to nine characters, and a digit.
_TABLES = f"""
CREATE MACRO draw(row_number, purpose, n) AS CAST(hash(row_number, purpose) % n AS INTEGER);
CREATE MACRO nation(row_number) AS
    ({_NATIONS})[draw(row_number, 'region', 5) + 1][draw(row_number, 'nation', 5) + 1];
CREATE MACRO city(row_number) AS
    CAST(rpad(left(nation(row_number), 9), 9, ' ') || draw(row_number, 'city', 10) AS VARCHAR);
CREATE MACRO region(row_number) AS ({_REGIONS})[draw(row_number, 'region', 5) + 1];
CREATE MACRO datekey(day) AS CAST(strftime(day, '%Y%m%d') AS INTEGER);

CREATE TABLE date AS
SELECT datekey(day) AS d_datekey, strftime(day, '%B %-d, %Y') AS d_date, dayname(day) AS d_dayofweek,
    monthname(day) AS d_month, CAST(year(day) AS INTEGER) AS d_year,
    CAST(year(day) * 100 + month(day) AS INTEGER) AS d_yearmonthnum, strftime(day, '%b%Y') AS d_yearmonth,
    CAST(day(day) AS INTEGER) AS d_daynuminmonth, CAST(dayofyear(day) AS INTEGER) AS d_daynuminyear,
    CAST(month(day) AS INTEGER) AS d_monthnuminyear,
    CAST((dayofyear(day) - 1) // 7 + 1 AS INTEGER) AS d_weeknuminyear
FROM (SELECT CAST(DATE '1992-01-01' + CAST(i AS INTEGER) AS DATE) AS day FROM range({DAYS}) AS days(i));

CREATE TABLE customer AS
SELECT CAST(i AS INTEGER) AS c_custkey, 'Customer#' || i AS c_name, city(i) AS c_city, nation(i) AS c_nation,
    region(i) AS c_region
FROM range(1, {CUSTOMERS} + 1) AS rows(i);

CREATE TABLE supplier AS
SELECT CAST(i AS INTEGER) AS s_suppkey, 'Supplier#' || i AS s_name, city(-i) AS s_city, nation(-i) AS s_nation,
    region(-i) AS s_region
FROM range(1, {SUPPLIERS} + 1) AS rows(i);

CREATE TABLE part AS
SELECT CAST(i AS INTEGER) AS p_partkey, 'MFGR#' || m AS p_mfgr, 'MFGR#' || m || c AS p_category,
    'MFGR#' || m || c || b AS p_brand1
FROM (SELECT i, draw(i, 'maker', 5) + 1 AS m, draw(i, 'category', 5) + 1 AS c, draw(i, 'brand', 40) + 1 AS b
    FROM range(1, {PARTS} + 1) AS rows(i));

CREATE TABLE lineorder AS
SELECT i AS lo_orderkey, draw(i, 'customer', {CUSTOMERS}) + 1 AS lo_custkey,
    draw(i, 'part', {PARTS}) + 1 AS lo_partkey, draw(i, 'supplier', {SUPPLIERS}) + 1 AS lo_suppkey,
    datekey(DATE '1992-01-01' + draw(i, 'date', {DAYS} // {DAYS_BETWEEN_ORDERS}) * {DAYS_BETWEEN_ORDERS})
        AS lo_orderdate,
    draw(i, 'quantity', 50) + 1 AS lo_quantity, draw(i, 'price', 50000) + 100 AS lo_extendedprice,
    draw(i, 'discount', 11) AS lo_discount, draw(i, 'price', 50000) + 90 AS lo_revenue,
    draw(i, 'cost', 30000) + 50 AS lo_supplycost
FROM range({LINEORDERS}) AS rows(i);
"""

_BY_DISCOUNT = """
SELECT sum(lo_extendedprice * lo_discount) AS revenue
FROM lineorder, date
WHERE lo_orderdate = d_datekey AND {filters}"""

_BY_BRAND = """
SELECT sum(lo_revenue), d_year, p_brand1
FROM lineorder, date, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND {filters}
GROUP BY d_year, p_brand1
ORDER BY d_year, p_brand1"""

_BY_PLACE = """
SELECT c_{place}, s_{place}, d_year, sum(lo_revenue) AS revenue
FROM customer, lineorder, supplier, date
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND {filters}
GROUP BY c_{place}, s_{place}, d_year
ORDER BY d_year ASC, revenue DESC"""

_BY_PROFIT = """
SELECT {columns}, sum(lo_revenue - lo_supplycost) AS profit
FROM date, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey
  AND lo_orderdate = d_datekey AND {filters}
GROUP BY {columns}
ORDER BY {columns}"""

_TWO_CITIES = """(c_city = 'UNITED KI1' OR c_city = 'UNITED KI5')
  AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI5')"""
_AMERICA = "c_region = 'AMERICA' AND s_region = 'AMERICA'"
_TWO_MAKERS = "(p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')"
_TWO_YEARS = "(d_year = 1997 OR d_year = 1998)"

QUERIES = {
    "q1.1": _BY_DISCOUNT.format(filters="d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25"),
    "q1.2": _BY_DISCOUNT.format(
        filters="d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35"
    ),
    "q1.3": _BY_DISCOUNT.format(
        filters="d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7"
        " AND lo_quantity BETWEEN 26 AND 35"
    ),
    "q2.1": _BY_BRAND.format(filters="p_category = 'MFGR#12' AND s_region = 'AMERICA'"),
    "q2.2": _BY_BRAND.format(filters="p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'"),
    "q2.3": _BY_BRAND.format(filters="p_brand1 = 'MFGR#2221' AND s_region = 'EUROPE'"),
    "q3.1": _BY_PLACE.format(
        place="nation",
        filters="c_region = 'ASIA' AND s_region = 'ASIA' AND d_year >= 1992 AND d_year <= 1997",
    ),
    "q3.2": _BY_PLACE.format(
        place="city",
        filters="c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND d_year >= 1992 AND d_year <= 1997",
    ),
    "q3.3": _BY_PLACE.format(place="city", filters=f"{_TWO_CITIES} AND d_year >= 1992 AND d_year <= 1997"),
    "q3.4": _BY_PLACE.format(place="city", filters=f"{_TWO_CITIES} AND d_yearmonth = 'Dec1997'"),
    "q4.1": _BY_PROFIT.format(columns="d_year, c_nation", filters=f"{_AMERICA} AND {_TWO_MAKERS}"),
    "q4.2": _BY_PROFIT.format(
        columns="d_year, s_nation, p_category", filters=f"{_AMERICA} AND {_TWO_YEARS} AND {_TWO_MAKERS}"
    ),
    "q4.3": _BY_PROFIT.format(
        columns="d_year, s_city, p_brand1",
        filters=f"c_region = 'AMERICA' AND s_nation = 'UNITED STATES' AND {_TWO_YEARS} AND p_category = 'MFGR#14'",
    ),
}


def ssb() -> StarBenchmark:
    """Make the data."""
    connection = duckdb.connect()
    _ = connection.execute(_TABLES)
    queries = {name: text.strip() for name, text in QUERIES.items()}
    return StarBenchmark(queries, PARTITION_COLUMNS, connection)
