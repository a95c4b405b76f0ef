-- The tables of the golden cases about Iceberg, in a catalog of Iceberg's own.
CREATE TABLE sorted (id INT, k INT, l BIGINT, s STRING, f DOUBLE) USING iceberg;
INSERT INTO sorted SELECT CAST(id AS INT), CAST(id AS INT), id * 7, concat('n', id), id FROM range(0, 1000, 1, 10);
INSERT INTO sorted VALUES (1000, NULL, NULL, NULL, NULL), (1001, NULL, 7, 'n1', 0.0D);

CREATE TABLE hashed (id INT, k INT) USING iceberg PARTITIONED BY (bucket(16, k));
INSERT INTO hashed SELECT CAST(id AS INT), CAST(id AS INT) FROM range(200);

CREATE TABLE monthly (id INT, day DATE) USING iceberg PARTITIONED BY (months(day));
INSERT INTO monthly SELECT CAST(id AS INT), date_add(DATE'2026-01-01', CAST(id AS INT)) FROM range(365);

CREATE TABLE crossed (id INT, a INT, b INT) USING iceberg PARTITIONED BY (a, b);
INSERT INTO crossed SELECT CAST(id AS INT), CAST(1 + id % 2 AS INT), CAST(1 + id DIV 2 % 2 AS INT) FROM range(20);

-- Files of three schemas and two specs: the first ones know the columns by other types and names.
CREATE TABLE evolved (id INT, k INT, n STRING) USING iceberg;
INSERT INTO evolved SELECT CAST(id AS INT), CAST(id AS INT), 'old' FROM range(0, 100, 1, 2);
ALTER TABLE evolved ALTER COLUMN k TYPE BIGINT;
ALTER TABLE evolved RENAME COLUMN n TO name;
ALTER TABLE evolved ADD PARTITION FIELD truncate(10, k);
INSERT INTO evolved SELECT CAST(id AS INT), id, 'new' FROM range(100, 130);
DELETE FROM evolved WHERE k = 5;

CREATE TABLE small (k INT, l BIGINT, s STRING, day DATE, a INT, b INT, f DOUBLE, g INT) USING iceberg;
INSERT INTO small VALUES
  (5, 35, 'n5', DATE'2026-03-05', 1, 1, 5.0D, 1), (750, 5250, 'n750', DATE'2026-11-08', 2, 2, 750.0D, 1),
  (NULL, 7, 'n9', NULL, 1, 2, 9.0D, 1), (105, 0, 'a6a05680-8de1-4a21-b645-5bb15d46be36', NULL, 1, 2, 0.0D, 2);
INSERT INTO small SELECT CAST(id * 3 AS INT), id * 21, concat('n', id), DATE'2026-05-05', 1, 1, id, 4 FROM range(250);

CREATE TABLE timed (id INT, at TIMESTAMP, local TIMESTAMP_NTZ) USING iceberg;
INSERT INTO timed SELECT CAST(id AS INT), timestamp_seconds(1767225600 + id * 3600),
  TIMESTAMP_NTZ'2026-01-01 00:00:00' + make_dt_interval(0, CAST(id AS INT)) FROM range(0, 240, 1, 10);
INSERT INTO timed VALUES (240, NULL, NULL), (241, TIMESTAMP'2026-01-04 12:00:00.000001Z', TIMESTAMP_NTZ'2026-01-04 12:00:00.000001');

CREATE TABLE moments (at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, g INT) USING iceberg;
INSERT INTO moments VALUES
  (TIMESTAMP'2026-01-04 12:00:00Z', TIMESTAMP_NTZ'2026-01-04 12:00:00', DATE'2026-01-04', 1),
  (TIMESTAMP'2026-01-04 12:00:00.000001Z', TIMESTAMP_NTZ'2026-01-04 12:00:00.000001', DATE'2026-01-04', 1),
  (NULL, NULL, NULL, 1), (TIMESTAMP'2026-01-08 00:00:00Z', TIMESTAMP_NTZ'2026-01-08 00:00:00', DATE'2026-01-08', 1),
  (TIMESTAMP'1850-01-01 00:00:00Z', TIMESTAMP_NTZ'1850-01-01 00:00:00', DATE'1850-01-01', 3);
CREATE TEMPORARY VIEW daily_view AS SELECT t.id, t.at, m.g FROM ice.golden.timed t JOIN ice.golden.moments m ON CAST(t.at AS DATE) = m.day;
CREATE TEMPORARY VIEW sorted_view AS SELECT id, k AS key FROM ice.golden.sorted UNION ALL SELECT id, k FROM ice.golden.hashed
