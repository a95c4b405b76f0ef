-- Written by pytest --update-goldens from outer_filters.toml; read the difference before you commit it.

-- case: a wrapped query, as BI tools write it
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday`, d.`month` AS `month` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.weekday = 5) AND (month = '2026-01') LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT s.id, d.dow AS weekday, d.month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) x WHERE x.weekday = 5 AND month = '2026-01'

-- case: a wrapped query without an alias, and one in it
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow`, d.`month` AS `month` FROM dates d) AS `reduced_item0` WHERE 'starpruner' IS NOT NULL AND (dow > 4) AND (month = '2026-01') LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT id FROM (SELECT id, month, dow FROM (SELECT s.id, d.month, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) WHERE dow > 4)
WHERE month = '2026-01'

-- case: with filters on both levels
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026)) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.dow < 6) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
WITH x AS (SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.year = 2026)
SELECT x.id FROM x JOIN stores t ON t.store_id = x.dow - 3 AND x.dow < 6

-- case: through a group key
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT * FROM (SELECT d.month, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds GROUP BY d.month) x
WHERE x.month = '2026-02'

-- case: in a branch of a UNION
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT * FROM (
  SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
  UNION ALL SELECT s.id, d.dow FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) x
WHERE x.dow = 4

-- case: at every reader of a CTE
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d) AS `a` WHERE 'starpruner' IS NOT NULL AND (a.month = '2026-01') UNION ALL SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d) AS `b` WHERE 'starpruner' IS NOT NULL AND (b.month = '2026-02')) AS readers LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
WITH x AS (SELECT s.region, d.month, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds GROUP BY s.region, d.month)
SELECT a.region, a.n, b.n FROM x a, x b WHERE a.region = b.region AND a.month = '2026-01' AND b.month = '2026-02'

-- case: at readers in different places, whatever becomes of their rows there
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.dow = 5) UNION ALL SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.dow = 4) UNION ALL SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (dow = 6)) AS readers LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"]]
WITH x AS (SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds)
SELECT t.store_id, (SELECT count(*) FROM x WHERE x.dow = 4) AS n FROM stores t
LEFT JOIN x ON x.id = t.store_id AND x.dow = 5
WHERE t.store_id NOT IN (SELECT id FROM x WHERE dow = 6)

-- case: at readers that say the same, and one of another CTE in between
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (dow = 5) UNION ALL SELECT reduced_key FROM (SELECT reduced_key AS reduced_key, `reduced_dow` AS `weekday` FROM (SELECT d.`ds` AS reduced_key, d.`year` AS `year`, d.`dow` AS `reduced_dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.year = 2026)) AS `y` WHERE 'starpruner' IS NOT NULL AND (weekday = 6) UNION ALL SELECT reduced_key FROM (SELECT reduced_key AS reduced_key, `reduced_dow` AS `weekday` FROM (SELECT d.`ds` AS reduced_key, d.`year` AS `year`, d.`dow` AS `reduced_dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.year = 2026)) AS `y` WHERE 'starpruner' IS NOT NULL AND (y.weekday = 4)) AS readers LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"]]
WITH x AS (SELECT s.id, d.dow, d.year FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds),
     y AS (SELECT x.id, x.dow AS weekday FROM x WHERE x.year = 2026)
SELECT id FROM x WHERE dow = 5 UNION ALL SELECT count(*) FROM x WHERE dow = 5
UNION ALL SELECT y.id FROM y WHERE y.weekday = 4 UNION ALL SELECT y.id FROM y WHERE weekday = 6

-- case: two levels up, through a UNION and a group key
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key AS reduced_key, `reduced_dow` AS `weekday` FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow`, d.`dow` AS `reduced_dow` FROM dates d) AS `y` WHERE 'starpruner' IS NOT NULL AND (y.dow > 3)) AS `x` WHERE 'starpruner' IS NOT NULL AND (weekday < 5) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT * FROM (
  SELECT sum(y.id) AS ids, y.dow AS weekday FROM (
    SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
    UNION SELECT s.id, d.dow FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) y
  WHERE y.dow > 3
  GROUP BY y.dow) x
WHERE weekday < 5

-- case: on every level, where inner columns have the names of other outer ones
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key AS reduced_key, `reduced_month` AS `year`, `reduced_year` AS `dow` FROM (SELECT d.`ds` AS reduced_key, d.`year` AS `year`, d.`month` AS `reduced_month`, d.`year` AS `reduced_year` FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow > 3)) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.year = 2026)) AS `y` WHERE 'starpruner' IS NOT NULL AND (y.year = '2026-01') AND (y.dow > 2000) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT y.dow FROM (
  SELECT x.month AS year, x.year AS dow FROM (
    SELECT d.year, d.month, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow > 3) x
  WHERE x.year = 2026) y
WHERE y.year = '2026-01' AND y.dow > 2000

-- case: through an equality with another item, in an outer join
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `e` WHERE 'starpruner' IS NOT NULL AND (e.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT t.store_id, t.opened, y.id FROM (SELECT store_id, opened, store_id + 3 AS n FROM stores) t
JOIN dates e ON e.dow = t.n
LEFT JOIN (SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) y ON y.dow = e.dow
WHERE e.dow = 4

-- case: through an equality between two readers of one CTE
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d) AS `a` WHERE 'starpruner' IS NOT NULL AND (a.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
WITH x AS (SELECT s.id, d.month, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds)
SELECT a.id, b.id FROM x a LEFT JOIN x b ON b.month = a.month AND b.dow > a.dow WHERE a.month = '2026-01'

-- case: past a star beside other outputs
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT `d`.`day` AS reduced_key, `d`.`dow` AS `dow` FROM (SELECT ds AS day, dow FROM dates) AS `d`) AS `y` WHERE 'starpruner' IS NOT NULL AND (y.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT x.id FROM (SELECT s.id, d.*, s.amount + 1 AS m FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) x WHERE x.dow = 5
UNION ALL
SELECT y.id FROM (SELECT *, 0 AS zero FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN (SELECT ds AS day, dow FROM dates) d ON s.ds = d.day) y
WHERE y.dow = 4

-- case: past a star over a semi-join, which does not show the right side
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT `d`.`day` AS reduced_key, `d`.`dow` AS `dow` FROM (SELECT ds AS day, dow FROM dates) AS `d`) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (
  SELECT *, 1 AS one FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s SEMI JOIN stores t ON t.region = s.region
  JOIN (SELECT ds AS day, dow FROM dates) d ON s.ds = d.day) x
WHERE x.dow = 5

-- case: on a derived table without a name
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday`, d.`month` AS `month` FROM dates d) AS `reduced_item0` WHERE 'starpruner' IS NOT NULL AND (weekday = 5) AND (month = '2026-01') LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT id FROM (SELECT s.id, d.dow AS weekday, d.month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) WHERE weekday = 5 AND month = '2026-01'

-- case: on outputs that are computed from the small side, beside plain ones
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, CASE WHEN d.dow > 5 THEN 'weekend' ELSE 'weekday' END AS `kind`, (left(d.month, 4)) AS `y`, d.`month` AS `m`, d.dow + 1 AS `next` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.kind = 'weekend') AND (x.y = '2026') AND (x.m < '2026-02') AND (x.next BETWEEN 5 AND 7) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT x.id FROM (
  SELECT DISTINCT s.id, CASE WHEN d.dow > 5 THEN 'weekend' ELSE 'weekday' END AS kind, (left(d.month, 4)) AS y,
    d.month m, d.dow + 1 -- the day
    AS next
  FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) x
WHERE x.kind = 'weekend' AND x.y = '2026' AND x.m < '2026-02' AND x.next BETWEEN 5 AND 7

-- case: on an output that is computed from a group key, two levels up
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key AS reduced_key, `reduced__0` AS `part` FROM (SELECT d.`ds` AS reduced_key, d.`year` AS `year`, substr(d.month, 6, 2) AS `reduced__0` FROM dates d) AS `y` WHERE 'starpruner' IS NOT NULL AND (y.year = 2026)) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.part = '02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT * FROM (
  SELECT y.part, sum(y.n) AS n FROM (
    SELECT substr(d.month, 6, 2) AS part, d.year, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
    GROUP BY substr(d.month, 6, 2), d.year) y
  WHERE y.year = 2026 GROUP BY y.part) x
WHERE x.part = '02'

-- case: at readers of which one reads a computed output
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (dow = 4) UNION ALL SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, upper(d.month) AS `m` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (m = 'ODD')) AS readers LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-01", "string"]]
WITH x AS (SELECT s.id, d.dow, upper(d.month) AS m FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds)
SELECT id FROM x WHERE dow = 4 UNION ALL SELECT id FROM x WHERE m = 'ODD'
