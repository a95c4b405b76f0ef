-- The tables of the golden cases about files: each INSERT writes one file, whose bounds the cases know.
CREATE TABLE clustered (id INT, x INT, s STRING, d DATE, f DOUBLE, c DECIMAL(5,2), o BOOLEAN) USING parquet;
INSERT INTO clustered SELECT /*+ COALESCE(1) */ * FROM VALUES
  (1, 1, 'a', DATE'2026-01-01', 1.0D, 1.50BD, true), (2, 5, 'b', DATE'2026-01-05', 5.0D, 5.00BD, true);
INSERT INTO clustered SELECT /*+ COALESCE(1) */ * FROM VALUES
  (3, 10, 'c', DATE'2026-02-01', 10.0D, 10.00BD, false), (4, 14, 'd', NULL, 14.0D, 14.25BD, false);
INSERT INTO clustered SELECT /*+ COALESCE(1) */ * FROM VALUES
  (5, 20, CAST(NULL AS STRING), DATE'2026-03-01', 0.0D, 20.00BD, true), (6, NULL, NULL, NULL, 24.0D, 24.00BD, NULL);
INSERT INTO clustered SELECT /*+ COALESCE(1) */ * FROM VALUES
  (7, CAST(NULL AS INT), 'x', DATE'2026-04-01', 30.0D, 30.00BD, true), (8, NULL, 'y', DATE'2026-04-02', 31.0D, 31.00BD, false);

-- As a list-bucketed load writes it: a file for each skewed pair, and one for all others.
CREATE TABLE skewed (id INT, x INT, y STRING) USING orc;
INSERT INTO skewed SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 10, 'a'), (2, 10, 'a');
INSERT INTO skewed SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 10, 'b');
INSERT INTO skewed SELECT /*+ COALESCE(1) */ * FROM VALUES (4, 20, 'c');
INSERT INTO skewed SELECT /*+ COALESCE(1) */ * FROM VALUES
  (5, 10, 'c'), (6, 20, 'a'), (7, 5, 'b'), (8, 50, 'z'), (9, NULL, 'a'), (10, 10, NULL);

CREATE TABLE parted (id INT, x INT, p STRING) USING parquet PARTITIONED BY (p);
INSERT INTO parted SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1, 'a'), (2, 9, 'a');
INSERT INTO parted SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 10, 'a'), (4, 19, 'a');
INSERT INTO parted SELECT /*+ COALESCE(1) */ * FROM VALUES (5, 1, 'b'), (6, 8, 'b');
INSERT INTO parted SELECT /*+ COALESCE(1) */ * FROM VALUES (7, 10, 'b'), (8, 18, 'b');

-- A file for each number, half of them in each partition.
CREATE TABLE many USING parquet PARTITIONED BY (p) AS
  SELECT CAST(id AS INT) AS id, CAST(id AS INT) AS x, CAST(id % 2 AS INT) AS p FROM range(0, 96, 1, 96);

CREATE TABLE bucketed (id INT, k INT) USING parquet CLUSTERED BY (k) INTO 8 BUCKETS;
INSERT INTO bucketed SELECT /*+ COALESCE(1) */ id, id % 20 FROM range(40);
INSERT INTO bucketed VALUES (100, NULL);
CREATE TABLE bucketed_by_two (id INT, k INT) USING parquet CLUSTERED BY (k, id) INTO 8 BUCKETS;
INSERT INTO bucketed_by_two SELECT id, id % 20 FROM range(40);

CREATE TABLE in_hive (id INT, x INT) STORED AS parquet;
INSERT INTO in_hive VALUES (1, 1), (2, 20);
CREATE TABLE in_hive_parted (id INT, x INT) PARTITIONED BY (p STRING) STORED AS parquet;
INSERT INTO in_hive_parted VALUES (1, 1, 'a'), (2, 20, 'b');
CREATE TABLE in_hive_text (id INT, x INT) PARTITIONED BY (p STRING) STORED AS textfile;
INSERT INTO in_hive_text PARTITION (p = 'a') VALUES (1, 1), (2, 20);
CREATE TABLE as_csv (id INT, x INT) USING csv;
INSERT INTO as_csv VALUES (1, 1), (2, 20);
CREATE TABLE hiding (id INT, x INT, _metadata STRING) USING parquet;
INSERT INTO hiding SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1, 'a');
INSERT INTO hiding SELECT /*+ COALESCE(1) */ * FROM VALUES (2, 20, 'b');
CREATE VIEW clustered_view AS SELECT * FROM clustered;
CREATE TABLE written (id INT) USING parquet;

CREATE TABLE small (g INT, x INT, y STRING, p STRING, b BIGINT, f DOUBLE) USING parquet;
INSERT INTO small VALUES
  (1, 5, 'a', 'a', 5, 5.0D), (1, NULL, 'a', NULL, NULL, NULL), (2, 10, 'a', 'a', 10, 10.0D), (2, 20, 'c', 'b', 20, 20.0D),
  (3, 1, 'q', 'a', 1, 1.0D), (3, 18, 'q', 'b', 18, 18.0D), (4, NULL, NULL, NULL, 99999999999, 0.0D), (5, 700, 'q', 'q', 7, 7.0D);
