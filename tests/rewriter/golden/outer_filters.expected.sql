-- Written by pytest --update-goldens from outer_filters.toml; read the difference before you commit it.

-- case: a wrapped query, as BI tools write it
-- key query: SELECT DISTINCT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday`, d.`month` AS `month` FROM dates d) AS `x` WHERE (x.weekday = 5) AND (month = '2026-01') LIMIT 4001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT s.id, d.dow AS weekday, d.month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) x WHERE x.weekday = 5 AND month = '2026-01'

-- case: with filters on both levels
-- key query: SELECT DISTINCT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d WHERE (d.year = 2026)) AS `x` WHERE (x.dow < 6) LIMIT 4001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
WITH x AS (SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.year = 2026)
SELECT x.id FROM x JOIN stores t ON t.store_id = x.dow - 3 AND x.dow < 6

-- case: through a group key
-- key query: SELECT DISTINCT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d) AS `x` WHERE (x.month = '2026-02') LIMIT 4001
-- answer: [["2026-02-01", "string"]]
SELECT * FROM (SELECT d.month, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds GROUP BY d.month) x
WHERE x.month = '2026-02'

-- case: in a branch of a UNION
-- key query: SELECT DISTINCT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE (x.dow = 4) LIMIT 4001
-- answer: [["2026-01-01", "string"]]
SELECT * FROM (
  SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
  UNION ALL SELECT s.id, d.dow FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) x
WHERE x.dow = 4
