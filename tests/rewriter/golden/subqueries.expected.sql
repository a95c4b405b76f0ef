-- Written by pytest --update-goldens from subqueries.toml; read the difference before you commit it.

-- case: IN
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales WHERE ds IN (SELECT ds FROM dates WHERE dow = 5) AND amount > 0

-- case: IN under the ON of a join
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT d.ds FROM dates d WHERE d.dow = 5) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM stores t LEFT JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s ON t.region = s.region AND s.ds IN (SELECT d.ds FROM dates d WHERE d.dow = 5)

-- case: EXISTS with an equality
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s
WHERE EXISTS (SELECT 1 FROM dates d WHERE d.ds = s.ds AND d.dow = 5 AND d.dow < s.amount)

-- case: EXISTS with an unqualified outer column
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) AS sales WHERE EXISTS (SELECT 1 FROM dates d WHERE d.month = '2026-02' AND region = 'south' AND sales.ds = d.ds)

-- case: a scalar subquery, on a dimension and on the fact
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT max(ds) FROM dates WHERE month = '2026-01') AS reducer(key1) LIMIT 2
-- answer: [["2026-01-03", "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT min(d.ds) FROM dates d WHERE d.dow > 5) AS reducer(key1) LIMIT 2
-- answer: [["2026-01-03", "string"]]
SELECT id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) AS sales WHERE ds = (SELECT max(ds) FROM dates WHERE month = '2026-01')
UNION ALL
SELECT id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) AS sales WHERE (SELECT min(d.ds) FROM dates d WHERE d.dow > 5) = ds

-- case: IN inside a CTE
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT region FROM stores WHERE country = 'IT') AS reducer(key1) LIMIT 5001
-- answer: [["south", "string"]]
WITH x AS (SELECT id FROM (SELECT * FROM sales WHERE (`region` IN ('south') OR typeof(`region`) <> 'string')) AS sales WHERE region IN (SELECT region FROM stores WHERE country = 'IT')) SELECT * FROM x

-- case: a subquery that finds nothing
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM nothing WHERE g = 1) AS reducer(key1) LIMIT 5001
-- answer: []
SELECT count(*) FROM (SELECT * FROM sales WHERE FALSE) AS sales WHERE ds IN (SELECT ds FROM nothing WHERE g = 1)

-- case: the latest partition of the fact itself
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT max(x.ds) FROM sales x WHERE x.region = 'north') AS reducer(key1) LIMIT 2
-- answer: [["it's", "string"]]
SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IN (CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s WHERE s.ds = (SELECT max(x.ds) FROM sales x WHERE x.region = 'north')

-- case: the first day of the latest partition's month
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT concat(substr(max(x.ds), 1, 8), '01') FROM sales_2025 x) AS reducer(key1) LIMIT 2
-- answer: [["2026-01-01", "string"]]
SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds = (SELECT concat(substr(max(x.ds), 1, 8), '01') FROM sales_2025 x)

-- case: the extremes of the fact itself, joined as a CTE
-- key query: SELECT latest.`ds` AS key, typeof(latest.`ds`) AS type FROM (SELECT max(ds) AS ds FROM sales) AS `latest` LIMIT 5001
-- answer: [["it's", "string"]]
WITH latest AS (SELECT max(ds) AS ds FROM sales)
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN (CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s JOIN latest ON s.ds = latest.ds

-- case: a scalar subquery of one row by what the rows are
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates WHERE dow = 6) AS reducer(key1) LIMIT 2
-- answer: [["2026-01-03", "string"]]
SELECT id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) AS sales WHERE ds = (SELECT ds FROM dates WHERE dow = 6)

-- case: a scalar subquery without a filter, of no row
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM nothing) AS reducer(key1) LIMIT 2
-- answer: []
SELECT id FROM (SELECT * FROM sales WHERE FALSE) AS sales WHERE ds = (SELECT ds FROM nothing)

-- case: the latest partition of each group, as pairs
-- key query: SELECT reducer.key1 AS key1, typeof(reducer.key1) AS type1, reducer.key2 AS key2, typeof(reducer.key2) AS type2 FROM (SELECT region, max(ds) FROM sales GROUP BY region) AS reducer(key1, key2) LIMIT 5001
-- answer: [["north", "string", "it's", "string"], ["south", "string", "2026-02-01", "string"], [null, "string", "2026-01-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-02-01') AND `region` IN ('south')) OR (`ds` IN (CAST(X'69742773' AS STRING)) AND `region` IN ('north'))) OR typeof(`region`) <> 'string' OR typeof(`ds`) <> 'string')) s WHERE (s.region, s.ds) IN (SELECT region, max(ds) FROM sales GROUP BY region)
