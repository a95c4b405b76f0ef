-- The tables of the golden cases in which Spark is asked which partitions of a list match.
CREATE TABLE sales (id INT, amount INT, ds STRING, region STRING) USING parquet PARTITIONED BY (ds, region);
INSERT INTO sales VALUES
  (1, 10, '2026-01-01', 'north'), (2, 20, '2026-01-01', 'south'), (3, 30, '2026-01-02', 'north'),
  (4, 40, '2026-01-03', 'south'), (5, 50, '2026-01-31', 'north'), (6, 60, '2026-02-01', 'south'),
  (7, 70, NULL, 'north'), (8, 80, '2026-01-01', NULL), (9, 90, '2026-1-2', 'north'), (10, 100, ' 2026-01-03', 'west'),
  (11, 110, '2026-01-02T12:00:00', 'north');
-- Strings that are no days: with ANSI mode a cast of them fails.
CREATE TABLE named (id INT, name STRING) USING parquet PARTITIONED BY (name);
INSERT INTO named VALUES (1, 'new year'), (2, 'New Year'), (3, 'it''s'), (4, 'back\\slash'), (5, NULL), (6, 'winter '), (7, 'é😀');
CREATE TABLE by_day (id INT, amount INT, day DATE) USING parquet PARTITIONED BY (day);
INSERT INTO by_day VALUES
  (1, 10, DATE'2026-01-01'), (2, 20, DATE'2026-01-02'), (3, 30, DATE'2026-01-03'), (4, 40, DATE'2026-01-31'),
  (5, 50, DATE'2026-02-01'), (6, 60, DATE'2026-02-28'), (7, 70, NULL);
CREATE TABLE by_number (id INT, dt INT) USING parquet PARTITIONED BY (dt);
INSERT INTO by_number VALUES (1, 20260101), (2, 20260102), (3, 20260131), (4, 20260201), (5, NULL);
CREATE TABLE by_month (id INT, year INT, month INT) USING parquet PARTITIONED BY (year, month);
INSERT INTO by_month VALUES (1, 2025, 12), (2, 2026, 1), (3, 2026, 2), (4, 2026, NULL), (5, NULL, 1), (6, 2026, 13);
CREATE TABLE by_char (id INT, k CHAR(10)) USING parquet PARTITIONED BY (k);
INSERT INTO by_char VALUES (1, '2026-01-01'), (2, '2026');
CREATE TABLE returns (id INT, ds STRING) USING parquet PARTITIONED BY (ds);
INSERT INTO returns VALUES (1, '2026-01-01'), (2, '2026-01-02'), (3, '2026-02-01'), (4, NULL);

CREATE TABLE calendar (d DATE, ds STRING, date_key INT, ym STRING, year INT, month INT, holiday BOOLEAN) USING parquet;
INSERT INTO calendar VALUES
  (DATE'2026-01-01', '2026-01-01', 20260101, '2026-01', 2026, 1, true),
  (DATE'2026-01-02', '2026-01-02', 20260102, '2026-01', 2026, 1, false),
  (DATE'2026-01-03', '2026-01-03', 20260103, '2026-01', 2026, 1, false),
  (DATE'2026-01-31', '2026-01-31', 20260131, '2026-01', 2026, 1, true),
  (DATE'2026-02-01', '2026-02-01', 20260201, '2026-02', 2026, 2, NULL),
  (DATE'2026-02-28', '2026-02-28', 20260228, '2026-02', 2026, 2, false),
  (NULL, NULL, NULL, NULL, 2026, 1, true);
CREATE TABLE promotions (name STRING, first STRING, last STRING, from_day DATE, to_day DATE, g INT, region STRING)
  USING parquet;
INSERT INTO promotions VALUES
  ('new year', '2026-01-01', '2026-01-02', DATE'2026-01-01', DATE'2026-01-02', 1, 'north'),
  ('winter', '2026-01-31', '2026-02-01', DATE'2026-01-31', DATE'2026-02-01', 2, 'south'),
  ('open', '2026-02-01', NULL, DATE'2026-02-01', NULL, 3, 'north'),
  ('never', NULL, NULL, NULL, NULL, 4, NULL);
CREATE TABLE periods (name STRING, g INT, country STRING) USING parquet;
INSERT INTO periods VALUES ('new year', 1, 'NO'), ('winter', 2, 'IT');
CREATE TABLE loads (ds STRING, g INT) USING parquet;
INSERT INTO loads VALUES ('2026-01-02', 1), ('2026-01-31', 1), ('2026-01-03', 2), (NULL, 3);
CREATE TABLE nothing (ds STRING, g INT) USING parquet;
CREATE VIEW calendar_view AS SELECT * FROM calendar WHERE year = 2026 AND month = 1;
CREATE VIEW sales_view AS SELECT id, ds FROM sales;
