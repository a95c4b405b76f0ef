-- Written by pytest --update-goldens from derived.toml; read the difference before you commit it.

-- case: a derived table as the small side
-- key query: SELECT `d`.`ds` AS key, typeof(`d`.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN (SELECT ds FROM dates WHERE dow = 5) d ON s.ds = d.ds

-- case: a CTE as the small side, with a filter of its own and one outside
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds, dow FROM dates WHERE year = 2026) AS `d` WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH d AS (SELECT ds, dow FROM dates WHERE year = 2026)
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN d ON s.ds = d.ds WHERE d.dow = 5

-- case: comments before and behind the words of a small side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates WHERE year = 2026) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
WITH d AS (
  -- of every month
  SELECT ds FROM dates WHERE dow = 5 -- Fridays only
)
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN d ON s.ds = d.ds WHERE s.ds IN (
  SELECT ds FROM dates WHERE year = 2026 -- this year
)

-- case: an aggregate as the small side
-- key query: SELECT `m`.`last` AS key, typeof(`m`.`last`) AS type FROM (SELECT max(ds) AS last FROM dates WHERE month = '2026-01') AS `m` LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN (SELECT max(ds) AS last FROM dates WHERE month = '2026-01') m ON s.ds = m.last

-- case: a snowflake in a derived table
-- key query: SELECT `x`.`ds` AS key, typeof(`x`.`ds`) AS type FROM (SELECT d.ds FROM dates d JOIN stores t ON d.dow = t.store_id + 3 WHERE t.country = 'IT') AS `x` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s
JOIN (SELECT d.ds FROM dates d JOIN stores t ON d.dow = t.store_id + 3 WHERE t.country = 'IT') x ON x.ds = s.ds

-- case: an expression over the small side
-- key query: SELECT concat(d.month, '-02') AS key, typeof(concat(d.month, '-02')) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = concat(d.month, '-02') WHERE d.dow = 5

-- case: the fact in a derived table, renamed
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT id, ds AS day FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales WHERE amount > 10) x JOIN dates d ON x.day = d.ds
WHERE d.dow = 5

-- case: the fact in a derived table with a star
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT * FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 5

-- case: the fact in a CTE used once
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH x AS (SELECT id, ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales), y AS (SELECT * FROM x)
SELECT y.id FROM y JOIN dates d ON y.ds = d.ds WHERE d.dow = 5

-- case: group key and DISTINCT
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 6) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT x.ds, x.n FROM (SELECT ds, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales GROUP BY ds) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 5
UNION ALL
SELECT x.ds, 0 FROM (SELECT DISTINCT ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 6
UNION ALL
SELECT x.ds, x.n FROM (SELECT ds, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales GROUP BY 1) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 4

-- case: window partition key
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id, x.n FROM (SELECT id, ds, count(*) OVER (PARTITION BY ds) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.ds = d.ds
WHERE d.dow = 5

-- case: every branch of a UNION
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT x.id FROM (SELECT id, ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales UNION ALL SELECT id, ds FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales_2025) x JOIN dates d ON x.ds = d.ds
WHERE d.dow = 4

-- case: a star beside other outputs, which shifts their positions
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT *, region AS r, ds AS day FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.day = d.ds AND x.ds = d.ds
WHERE d.dow = 5

-- case: a star over several items
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT x.id FROM (SELECT * FROM (SELECT store_id, country FROM stores) t JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s ON t.store_id = s.id) x
JOIN dates d ON x.ds = d.ds WHERE d.dow = 5
UNION ALL
SELECT x.id FROM (SELECT t.opened, s.* FROM stores t JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s ON t.store_id = s.id) x
JOIN dates d ON x.ds = d.ds WHERE d.dow = 4

-- case: a CTE with several readers, each narrowed where it is named
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates WHERE dow = 4) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
WITH x AS (SELECT id, ds AS day FROM sales UNION ALL SELECT id, ds FROM sales_2025)
SELECT a.id FROM (SELECT * FROM x WHERE (`day` IN ('2026-01-02') OR typeof(`day`) <> 'string')) a JOIN dates d ON a.day = d.ds WHERE d.dow = 5
UNION ALL
SELECT x.id FROM (SELECT * FROM x WHERE (`day` IN ('2026-01-01') OR typeof(`day`) <> 'string')) AS x WHERE x.day IN (SELECT ds FROM dates WHERE dow = 4)
UNION ALL
SELECT count(*) FROM x
