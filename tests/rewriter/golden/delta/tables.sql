-- The tables of the golden cases about Delta.
CREATE TABLE ordered (id INT, k INT, l BIGINT, s STRING, n DECIMAL(9,2), day DATE, at TIMESTAMP, f DOUBLE) USING delta;
INSERT INTO ordered SELECT CAST(id AS INT), CAST(id AS INT), id * 7, concat('n', id), id / 4, date_add(DATE'2026-01-01', CAST(id AS INT)),
  timestamp_seconds(1767225600 + id * 3600), id FROM range(0, 1000, 1, 10);
INSERT INTO ordered VALUES (1000, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (1001, NULL, 7, 'n1', 0.25, DATE'1850-01-01', NULL, 0.0D);

CREATE TABLE daily (id INT, k INT, ds STRING) USING delta PARTITIONED BY (ds);
INSERT INTO daily SELECT CAST(id AS INT), CAST(id AS INT), concat('d', id % 20) FROM range(0, 200, 1, 2);
INSERT INTO daily VALUES (200, 5, NULL), (201, NULL, 'd1'), (202, 5, 'a/b=c'), (203, 5, '');

CREATE TABLE crossed (id INT, a INT, b INT) USING delta PARTITIONED BY (a, b);
INSERT INTO crossed SELECT CAST(id AS INT), CAST(1 + id % 2 AS INT), CAST(1 + id DIV 2 % 2 AS INT) FROM range(20);

-- Deleted rows stay in their files, files call columns by other names, and the first ones lack a column.
CREATE TABLE changed (id INT, k INT) USING delta
  TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name');
INSERT INTO changed SELECT CAST(id AS INT), CAST(id AS INT) FROM range(0, 100, 1, 2);
SET spark.databricks.delta.schema.autoMerge.enabled=true;
INSERT INTO changed SELECT CAST(id AS INT) AS id, CAST(id AS INT) AS k, 'new' AS name FROM range(100, 130);
RESET spark.databricks.delta.schema.autoMerge.enabled;
DELETE FROM changed WHERE k = 5;

-- The log has the first 32 characters of a text, which is all of most here, and bounds of the first column alone.
CREATE TABLE cut (s STRING, id INT, k INT) USING delta TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1');
INSERT INTO cut SELECT right(concat(repeat('x', 40), id), 31), CAST(id AS INT), CAST(id AS INT) FROM range(0, 40, 1, 4);
INSERT INTO cut VALUES (concat(repeat('x', 31), '😀😀😀'), 40, 40), (concat(repeat('x', 32), 'é'), 41, 41);

CREATE TABLE small (k INT, l BIGINT, s STRING, n DECIMAL(9,2), day DATE, at TIMESTAMP, ds STRING, a INT, b INT, f DOUBLE, g INT) USING delta;
INSERT INTO small VALUES
  (5, 35, 'n5', 1.25, DATE'2026-03-05', TIMESTAMP'2026-01-01 05:00:00Z', 'd1', 1, 1, 5.0D, 1),
  (750, 5250, 'n750', 187.5, DATE'2026-11-08', TIMESTAMP'2026-02-01 06:00:00Z', 'd7', 2, 2, 750.0D, 1),
  (NULL, 7, 'n9', NULL, DATE'1850-01-01', NULL, 'a/b=c', 1, 2, 9.0D, 1), (105, 0, NULL, 26.25, NULL, NULL, '', 1, 2, 0.0D, 2);
INSERT INTO small SELECT CAST(id * 3 AS INT), id * 21, concat(repeat('x', 40), id), id / 4, DATE'2026-05-05', NULL, concat('d', id), 1, 1, id, 4 FROM range(250);
CREATE TEMPORARY VIEW ordered_view AS SELECT id, k AS key FROM spark_catalog.golden_delta.ordered UNION ALL SELECT id, k FROM spark_catalog.golden_delta.daily
