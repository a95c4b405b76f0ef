-- Written by pytest --update-goldens from writes.toml; read the difference before you commit it.

-- case: INSERT .. SELECT
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT INTO written SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: INSERT behind a WITH
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH d AS (SELECT ds FROM dates WHERE dow = 5) INSERT INTO written SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN d ON s.ds = d.ds

-- case: CREATE TABLE AS
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
CREATE TABLE IF NOT EXISTS made USING parquet AS SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: CREATE TABLE AS with the WITH behind it, as dbt writes it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
/* {"app": "dbt", "node_id": "model.shop.fct_sales"} */
CREATE TABLE IF NOT EXISTS made USING parquet AS
WITH d AS (SELECT ds FROM dates WHERE dow = 5) SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN d ON s.ds = d.ds

-- case: INSERT with the WITH behind it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT INTO written WITH d AS (SELECT ds FROM dates WHERE dow = 5) SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN d ON s.ds = d.ds

-- case: INSERT OVERWRITE
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT OVERWRITE TABLE written WITH d AS (SELECT ds FROM dates WHERE dow = 5) SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN d ON s.ds = d.ds

-- case: a CTE that has the name of the table that is written
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
CREATE TABLE IF NOT EXISTS made AS WITH made AS (SELECT * FROM sales) SELECT m.id FROM (SELECT * FROM made WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) m JOIN dates d ON m.ds = d.ds WHERE d.dow = 5

-- case: a table of the same name in another database
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM golden.dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT INTO golden_elsewhere.dates
SELECT d.ds, d.dow FROM (SELECT * FROM golden.sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN golden.dates d ON s.ds = d.ds WHERE d.dow = 5 AND s.id < 0

-- case: INSERT OVERWRITE DIRECTORY, in Hive's text
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT OVERWRITE DIRECTORY 'golden_made' SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: INSERT OVERWRITE DIRECTORY in a format of Spark's, with options
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT OVERWRITE DIRECTORY 'golden_made' USING org.apache.spark.sql.parquet OPTIONS ('compression' 'gzip', header = '(')
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: INSERT OVERWRITE LOCAL DIRECTORY in rows of Hive's
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT OVERWRITE LOCAL DIRECTORY 'golden_made' ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' STORED AS TEXTFILE
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: INSERT OVERWRITE DIRECTORY between a WITH and a query in parentheses
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH d AS (SELECT ds FROM dates WHERE dow = 5) INSERT OVERWRITE DIRECTORY 'golden_made' USING json
(SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN d ON s.ds = d.ds)

-- case: INSERT BY NAME
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT INTO written BY NAME SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: INSERT with columns
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT OVERWRITE written (id) SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: an INSERT that reads the table that it writes beside the fact
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT INTO written SELECT id FROM written WHERE id > 90
UNION SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5
