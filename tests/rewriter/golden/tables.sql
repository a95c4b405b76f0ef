-- The tables of the golden cases, small enough to read whole: nulls, duplicates, an empty table, odd strings.
CREATE TABLE sales (id INT, amount INT, ds STRING, region STRING) USING parquet PARTITIONED BY (ds, region);
INSERT INTO sales VALUES
  (1, 10, '2026-01-01', 'north'), (2, 20, '2026-01-01', 'south'), (3, 30, '2026-01-02', 'north'),
  (4, 40, '2026-01-02', 'south'), (5, 50, '2026-01-03', 'north'), (6, 60, '2026-02-01', 'south'),
  (7, 70, NULL, 'north'), (8, 80, '2026-01-01', NULL), (9, 90, 'it''s', 'north'), (3, 30, '2026-01-02', 'north');

CREATE TABLE dates (ds STRING, month STRING, year INT, dow INT) USING parquet;
INSERT INTO dates VALUES
  ('2026-01-01', '2026-01', 2026, 4), ('2026-01-02', '2026-01', 2026, 5), ('2026-01-02', '2026-01', 2026, 5),
  ('2026-01-03', '2026-01', 2026, 6), ('2026-02-01', '2026-02', 2026, 7), (NULL, '2026-01', 2026, NULL),
  ('2030-01-01', '2030-01', 2030, 2), ('it''s', 'odd', 0, 0);

CREATE TABLE stores (store_id INT, region STRING, country STRING, opened DATE) USING parquet;
INSERT INTO stores VALUES
  (1, 'north', 'NO', DATE'2001-01-01'), (2, 'south', 'IT', DATE'2002-02-02'), (3, NULL, 'NO', NULL),
  (4, 'east', 'NO', DATE'2004-04-04');

-- Pairs of a day and a region: of group 1 each its own, of group 2 every combination.
CREATE TABLE offers (ds STRING, region STRING, g INT, day STRING) USING parquet;
INSERT INTO offers VALUES
  ('2026-01-01', 'north', 1, '2026-01-01'), ('2026-01-02', 'south', 1, '2026-01-02'), ('2026-01-03', NULL, 1, NULL),
  (NULL, 'north', 1, NULL), ('2026-02-01', 'east', 1, '2026-02-02'), ('2026-01-01', NULL, 1, '2026-01-05'),
  ('2026-01-01', 'north', 2, NULL), ('2026-01-01', 'south', 2, NULL), ('2026-01-02', 'north', 2, NULL),
  ('2026-01-02', 'south', 2, NULL);

-- Columns with the names of session functions.
CREATE TABLE clocks (ds STRING, current_date STRING, user STRING) USING parquet;
INSERT INTO clocks VALUES ('2026-01-01', 'now', 'me'), ('2026-01-02', 'then', 'me');
CREATE TABLE clocked (id INT, current_date STRING, ds STRING) USING parquet PARTITIONED BY (ds);
INSERT INTO clocked VALUES (1, '2026-01-03', '2026-01-01'), (2, '2025-12-31', '2026-01-02');

CREATE TABLE collated (ds STRING COLLATE UTF8_LCASE, g INT) USING parquet;
INSERT INTO collated VALUES ('IT''S', 1), ('it''s', 1), ('2026-01-01', 1);

CREATE TABLE nothing (ds STRING, g INT) USING parquet;

-- Tables of which the server is told a size: the bound is 10 GiB.
CREATE TABLE days_large (ds STRING, g INT) USING parquet TBLPROPERTIES ('totalSize' = '11000000000');
CREATE TABLE days_medium (ds STRING, g INT) USING parquet TBLPROPERTIES ('totalSize' = '7000000000');
CREATE TABLE days_medium_too (ds STRING, g INT) USING parquet TBLPROPERTIES ('totalSize' = '7000000000');
CREATE TABLE sales_large (id INT, ds STRING) USING parquet PARTITIONED BY (ds) TBLPROPERTIES ('totalSize' = '11000000000');
CREATE VIEW days_large_view AS SELECT ds, g FROM days_large;

CREATE TABLE written (id INT) USING parquet;

CREATE TABLE sales_2025 (id INT, amount INT, ds STRING, region STRING) USING parquet PARTITIONED BY (ds, region);
INSERT INTO sales_2025 VALUES (1, 1, '2025-01-01', 'north'), (2, 2, '2026-01-01', 'north');

CREATE TABLE by_int (id INT, k INT) USING parquet PARTITIONED BY (k);
INSERT INTO by_int VALUES (1, 1), (2, 2), (3, -2147483648), (4, NULL);
CREATE TABLE by_tinyint (id INT, k TINYINT) USING parquet PARTITIONED BY (k);
INSERT INTO by_tinyint VALUES (1, 1Y), (2, 2Y), (3, -128Y), (4, NULL);
CREATE TABLE by_smallint (id INT, k SMALLINT) USING parquet PARTITIONED BY (k);
INSERT INTO by_smallint VALUES (1, 1S), (2, 2S), (3, -32768S), (4, NULL);
CREATE TABLE by_bigint (id INT, k BIGINT) USING parquet PARTITIONED BY (k);
INSERT INTO by_bigint VALUES (1, 1L), (2, 2L), (3, -9223372036854775808L), (4, NULL);
CREATE TABLE by_date (id INT, k DATE) USING parquet PARTITIONED BY (k);
INSERT INTO by_date VALUES (1, DATE'2026-01-01'), (2, DATE'2026-01-02'), (3, DATE'0001-01-01'), (4, NULL),
  (5, DATE'1582-10-10'), (6, DATE'1582-10-14'), (7, DATE'1582-10-24');
CREATE TABLE by_boolean (id INT, k BOOLEAN) USING parquet PARTITIONED BY (k);
INSERT INTO by_boolean VALUES (1, true), (2, false), (3, NULL);
CREATE TABLE by_decimal (id INT, k DECIMAL(5,2)) USING parquet PARTITIONED BY (k);
INSERT INTO by_decimal VALUES (1, 1.00BD), (2, 2.50BD), (3, -999.99BD), (4, NULL);
CREATE TABLE by_double (id INT, k DOUBLE) USING parquet PARTITIONED BY (k);
INSERT INTO by_double VALUES (1, 1.0D), (2, 0.0D);
CREATE TABLE by_char (id INT, k CHAR(5)) USING parquet PARTITIONED BY (k);
INSERT INTO by_char VALUES (1, 'a'), (2, 'b');
CREATE TABLE by_timestamp (id INT, k TIMESTAMP) USING parquet PARTITIONED BY (k);
INSERT INTO by_timestamp VALUES (1, TIMESTAMP'2026-01-01 00:00:00');
CREATE TABLE by_string (id INT, k STRING) USING parquet PARTITIONED BY (k);
INSERT INTO by_string VALUES
  (1, '1'), (2, '01'), (3, 'a''b'), (4, 'back\\slash'), (5, 'é中😀'), (6, 'a b/c=d%e'), (7, NULL), (8, '$' || '{x}');
CREATE TABLE by_digits (id INT, k STRING) USING parquet PARTITIONED BY (k);
INSERT INTO by_digits VALUES (1, '1'), (2, '01'), (3, '2'), (4, '3');
CREATE TABLE hive_sales (id INT) PARTITIONED BY (ds STRING) STORED AS parquet;
INSERT INTO hive_sales VALUES (1, '2026-01-01'), (2, '2026-02-01');

CREATE TABLE keys (
  g INT, s STRING, i INT, t TINYINT, h SMALLINT, b BIGINT, d DATE, o BOOLEAN, c DECIMAL(5,2), w DECIMAL(10,2),
  f DOUBLE, x CHAR(5), z TIMESTAMP
) USING parquet;
INSERT INTO keys VALUES
  (1, '1', 1, 1Y, 1S, 1L, DATE'2026-01-01', true, 1.00BD, 1.00BD, 1.0D, 'a', TIMESTAMP'2026-01-01 00:00:00'),
  (1, 'a''b', -2147483648, -128Y, -32768S, -9223372036854775808L, DATE'0001-01-01', true, -999.99BD, 1.00BD,
   -0.0D, 'b', NULL),
  (1, 'back\\slash', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (1, 'é中😀', 1, 1Y, 1S, 1L, DATE'2026-01-01', true, 1.00BD, 1.00BD, 1.0D, 'a', NULL),
  (1, 'a b/c=d%e', 7, 7Y, 7S, 7L, DATE'2031-01-01', true, 7.00BD, 7.00BD, 7.0D, 'q', NULL),
  (1, '$' || '{x}', 7, 7Y, 7S, 7L, DATE'2031-01-01', true, 7.00BD, 7.00BD, 7.0D, 'q', NULL),
  (2, '2', 2, 2Y, 2S, 2L, DATE'2026-01-02', false, 2.50BD, 2.50BD, 2.0D, 'b', NULL),
  (3, NULL, NULL, NULL, NULL, NULL, DATE'1582-10-10', NULL, NULL, NULL, NULL, NULL, NULL),
  (3, NULL, NULL, NULL, NULL, NULL, DATE'1582-10-14', NULL, NULL, NULL, NULL, NULL, NULL);

-- Partition columns that no filter of Hive's metastore can name, and keys that none can say: a text in which a backslash
-- would hide the quote behind it, one with both quotes, and a day that only one of two calendars has.
CREATE TABLE odd (id INT, `_ds` STRING, `in` INT) USING parquet PARTITIONED BY (`_ds`, `in`);
INSERT INTO odd VALUES
  (1, '2026-01-01', 1), (2, '2026-01-01', 2), (3, '2026-01-02', 1), (4, '2026-02-01', 4), (5, NULL, 5), (6, '2026-01-03', NULL);
CREATE VIEW odd_renamed AS SELECT id, `_ds` AS day FROM odd;
CREATE TABLE by_path (id INT, path STRING, kind STRING) USING parquet PARTITIONED BY (path, kind);
INSERT INTO by_path VALUES
  (1, 'x\\', 'dir'), (2, 'a', 'dir'), (3, 'x\\', 'file'), (4, 'a"b''c', 'dir'), (5, NULL, 'dir'), (6, 'b', 'file');
CREATE TABLE paths (path STRING, number INT, g INT) USING parquet;
INSERT INTO paths VALUES
  ('x\\', 1, 1), ('a', 2, 1), ('a"b''c', NULL, 2), (NULL, NULL, 1);

CREATE VIEW dates_view AS SELECT * FROM dates WHERE year = 2026;
CREATE VIEW dates_plain AS SELECT * FROM dates;
CREATE VIEW dates_renamed (day, weekday) AS SELECT ds, dow FROM dates_plain WHERE month = '2026-01';
CREATE VIEW dates_last AS SELECT max(ds) AS ds FROM dates WHERE month = '2026-01';
CREATE VIEW dates_either AS SELECT ds, dow FROM dates UNION ALL SELECT ds, g FROM nothing;
CREATE VIEW dates_random AS SELECT * FROM dates WHERE rand() < 2;
CREATE VIEW dates_over_random AS SELECT ds, dow FROM dates_random;
CREATE VIEW dates_some AS SELECT * FROM dates LIMIT 100;
CREATE VIEW dates_past AS SELECT * FROM dates WHERE year(current_date()) > 2000;
CREATE VIEW dates_sold AS SELECT ds, amount FROM sales WHERE region = 'north';
CREATE VIEW dates_quoted AS SELECT * FROM dates WHERE month = "2026-01";
CREATE VIEW dates_with AS WITH d AS (SELECT * FROM dates) SELECT * FROM d;
CREATE VIEW stores_numbered AS SELECT region, monotonically_increasing_id() AS number FROM stores;
CREATE VIEW stores_over_numbered AS SELECT region FROM stores_numbered WHERE number >= 0;
CREATE VIEW sales_plain AS SELECT * FROM sales;
CREATE VIEW sales_renamed (number, day, zone) AS SELECT id, ds, region FROM sales WHERE amount > 10;
CREATE VIEW sales_nested AS SELECT number AS id, day AS ds FROM sales_renamed;
CREATE VIEW sales_both AS SELECT id, ds, region FROM sales UNION ALL SELECT id, ds, region FROM sales_2025;
CREATE VIEW sales_per_day AS SELECT ds, count(*) AS n, max(amount) AS most FROM sales GROUP BY ds;
CREATE VIEW sales_with AS WITH s AS (SELECT id, ds FROM sales) SELECT * FROM s;
CREATE VIEW sales_computed AS SELECT id, lower(ds) AS ds FROM sales;
CREATE VIEW sales_mixed AS SELECT id, ds FROM sales UNION ALL SELECT dow, ds FROM dates;
CREATE VIEW sales_some AS SELECT * FROM sales LIMIT 100;
CREATE VIEW sales_quoted AS SELECT * FROM sales WHERE region = "north";
CREATE VIEW sales_typed AS SELECT id, k FROM by_int UNION ALL SELECT id, k FROM by_bigint;
-- Views that join a fact with small sides.
CREATE VIEW sold AS SELECT s.id, s.amount, s.ds, s.region, d.month, d.dow AS weekday FROM sales s JOIN dates d ON s.ds = d.ds;
CREATE VIEW sold_days (number, day, weekday) AS SELECT s.id, d.ds, d.dow FROM sales AS s, dates AS d WHERE s.ds = d.ds;
CREATE VIEW sold_stores AS
  SELECT sales.id, ds, sales.region, stores.country, year(opened) AS since FROM sales JOIN stores ON sales.region = stores.region -- one
;
CREATE VIEW sold_left AS SELECT s.id, s.ds, d.month, d.dow FROM sales s LEFT JOIN dates d ON s.ds = d.ds;
CREATE VIEW sold_padded AS SELECT s.id, s.ds, d.month FROM dates d LEFT JOIN sales s ON s.ds = d.ds;
CREATE VIEW sold_padded_above AS
  SELECT x.id, x.ds, t.country FROM stores t LEFT JOIN (SELECT s.* FROM sales s JOIN dates d ON s.ds = d.ds AND d.dow = 5) x ON x.amount = t.store_id;
CREATE VIEW sold_friday AS SELECT s.id, s.ds, s.region FROM sales s JOIN dates d USING (ds) WHERE d.dow = 5 AND d.month LIKE '2026%' AND rand() < 2;
CREATE VIEW sold_offers AS SELECT s.id, s.ds FROM sales s JOIN offers o ON s.ds = o.ds AND s.region = o.region WHERE o.g = 1;
CREATE VIEW sold_again AS SELECT id AS number, ds, month AS of FROM sold WHERE amount > 10;
CREATE VIEW sold_with AS WITH f AS (SELECT id, ds FROM sales WHERE amount > 10) SELECT f.id, f.ds, d.dow FROM f JOIN dates_plain d ON f.ds = d.ds;
CREATE VIEW sold_apart AS SELECT DISTINCT s.ds, s.region, d.dow FROM sales s JOIN dates d ON s.ds = d.ds;
CREATE VIEW sold_per_day AS SELECT s.ds, d.dow, count(*) AS n FROM sales s JOIN dates d ON s.ds = d.ds GROUP BY s.ds, d.dow;
CREATE VIEW sold_per_month AS SELECT d.month, d.dow, count(*) AS n FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.dow > 4 GROUP BY d.month, d.dow;
CREATE VIEW sold_ranked AS
  SELECT s.id, s.ds, d.dow, row_number() OVER (ORDER BY s.amount, s.id, s.ds) AS place FROM sales s JOIN dates d ON s.ds = d.ds AND d.dow > 4;
CREATE VIEW sold_counted AS SELECT s.id, s.ds, d.dow, count(*) OVER (PARTITION BY s.ds, d.dow) AS n FROM sales s JOIN dates d ON s.ds = d.ds;
CREATE VIEW sold_first AS SELECT s.id, s.ds, d.dow FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.dow > 4 LIMIT 100;
CREATE VIEW sold_either AS
  SELECT s.id, s.ds, d.dow FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.dow > 4 UNION ALL SELECT id, ds, 5 FROM sales_2025;
CREATE VIEW sold_mixed AS SELECT s.id, s.ds, coalesce(d.month, s.region) AS what FROM sales s JOIN dates d ON s.ds = d.ds;
CREATE VIEW sold_lower AS SELECT s.id, s.ds, lower(d.month) AS month FROM sales s JOIN dates d ON s.ds = d.ds;
CREATE VIEW sold_cast AS SELECT s.id, s.ds FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.dow = '5';
CREATE VIEW sold_past AS SELECT s.id, s.ds FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.ds <= CAST(current_date() AS STRING);
CREATE VIEW sold_random AS SELECT s.id, s.ds FROM sales s JOIN dates d ON s.ds = d.ds WHERE rand() < 2;
CREATE VIEW sold_derived AS SELECT s.id, s.ds FROM sales s JOIN (SELECT ds FROM dates WHERE dow = 5) d ON s.ds = d.ds;
CREATE VIEW sold_in AS SELECT id, ds FROM sales WHERE ds IN (SELECT ds FROM dates WHERE dow = 5);
CREATE VIEW sold_not AS SELECT s.id, s.ds FROM sales s LEFT ANTI JOIN dates d ON s.ds = d.ds AND d.dow = 5;
-- Its small side has another type by now: the view still shows INT, and Spark casts.
CREATE TABLE days_retyped (ds STRING, g INT) USING parquet;
CREATE VIEW sold_retyped AS SELECT s.id, s.ds, r.g FROM sales s JOIN days_retyped r ON s.ds = r.ds;
DROP TABLE days_retyped;
CREATE TABLE days_retyped (ds STRING, g STRING) USING parquet;
INSERT INTO days_retyped VALUES ('2026-01-01', '05'), ('2026-01-02', '5');
CREATE DATABASE golden_elsewhere;
USE golden_elsewhere;
CREATE TABLE golden_elsewhere.dates (ds STRING, dow INT) USING parquet;
INSERT INTO dates VALUES ('2026-02-01', 5), ('2026-01-01', 6);
CREATE VIEW golden_elsewhere.days AS SELECT * FROM dates;
CREATE VIEW golden_elsewhere.sold AS SELECT id, ds FROM golden.sales;
CREATE TABLE golden_elsewhere.days_apart USING parquet AS SELECT * FROM dates;
CREATE GLOBAL TEMPORARY VIEW dates_there AS SELECT * FROM dates;
CREATE GLOBAL TEMPORARY VIEW dates_apart AS SELECT * FROM days_apart;
CREATE GLOBAL TEMPORARY VIEW sold_apart AS SELECT s.id, s.ds, d.dow FROM golden.sales s JOIN days_apart d ON s.ds = d.ds;
CREATE GLOBAL TEMPORARY VIEW sold_there AS SELECT s.id, s.ds, d.dow FROM golden.sales s JOIN dates d ON s.ds = d.ds;
USE golden;
CREATE GLOBAL TEMPORARY VIEW dates_here AS SELECT * FROM dates WHERE dow = 5;
CREATE GLOBAL TEMPORARY VIEW sales_here AS SELECT id, ds AS day FROM sales;
CREATE GLOBAL TEMPORARY VIEW sales_files USING parquet OPTIONS (path 'warehouse/golden.db/sales');
