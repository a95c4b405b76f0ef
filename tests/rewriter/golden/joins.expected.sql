-- Written by pytest --update-goldens from joins.toml; read the difference before you commit it.

-- case: join on
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01'

-- case: the sides swapped, the fact last
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM dates d INNER JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s ON d.ds = s.ds WHERE d.month = '2026-01'

-- case: using
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM dates WHERE 'starpruner' IS NOT NULL AND (dates.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT * FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales JOIN dates USING (ds) WHERE dates.dow = 5

-- case: comma join with the equality in WHERE
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM dates WHERE 'starpruner' IS NOT NULL AND (dow IN (5, 6)) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT sales.id, month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) AS sales, dates WHERE sales.ds = dates.ds AND dow IN (5, 6)

-- case: cross join with the equality in WHERE
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow BETWEEN 5 AND 6) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s CROSS JOIN dates d WHERE (d.ds = (s.ds)) AND d.dow BETWEEN 5 AND 6

-- case: two dimensions on one fact
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (t.country = 'NO') LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], [null, "string"]]
SELECT s.id, d.month, t.country
FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') AND `region` IN ('east', 'north')) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN dates d ON s.ds = d.ds JOIN stores t ON s.region = t.region
WHERE d.month = '2026-01' AND t.country = 'NO'

-- case: two facts on one dimension
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT a.id, b.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) a JOIN dates d ON a.ds = d.ds JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) b ON b.ds = d.ds
WHERE d.dow = 4

-- case: inside a derived table, a CTE, a union branch and a subquery of WHERE
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 6) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
WITH c AS (SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5)
SELECT id FROM c
UNION ALL
SELECT x.id FROM (SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds AND d.dow = 6) x
UNION ALL
SELECT store_id FROM stores WHERE store_id IN (SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s, dates d WHERE s.ds = d.ds AND d.dow = 4)

-- case: aggregates, windows, order and limit above the join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) AND (d.dow <> 5) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT d.month, count(*) AS n, sum(s.amount) AS total, rank() OVER (ORDER BY count(*)) AS r
FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.year = 2026 AND d.dow <> 5
GROUP BY d.month HAVING count(*) > 0 ORDER BY 1 LIMIT 10

-- case: a FROM-first query
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds SELECT s.id WHERE d.dow = 5

-- case: natural join
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM dates WHERE 'starpruner' IS NOT NULL AND (dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT * FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales NATURAL JOIN dates WHERE dow = 5

-- case: a column that USING has merged of two facts
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT ds, s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) o USING (ds) JOIN dates d USING (ds) WHERE d.year = 2026

-- case: the first of two columns that no USING has merged, which Spark takes
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, o.g FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN offers o ON s.id = o.g JOIN dates d USING (ds) WHERE d.dow = 5

-- case: a column that USING has merged with that of a padded item
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT ds, s.id, n.g FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN nothing n USING (ds) JOIN dates d USING (ds) WHERE d.dow = 5

-- case: a column that USING has merged, where an outer join shows the other side's
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT ds, s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s RIGHT JOIN nothing n USING (ds) JOIN dates d USING (ds) WHERE d.dow = 5

-- case: a column that USING has merged of both sides
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT ds, s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s FULL JOIN offers o USING (ds) JOIN dates d USING (ds) WHERE d.dow = 5

-- case: a column that a FULL JOIN by ON compares, of which USING takes the first
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT d.ds, s.id, o.g FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s FULL JOIN offers o ON s.ds = o.ds AND s.region = o.region
JOIN dates d USING (ds) WHERE d.dow = 5

-- case: names without tables beside LATERAL VIEW
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT id, e FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds LATERAL VIEW OUTER explode(array(1, amount)) x AS e
LATERAL VIEW posexplode(array(e)) y AS p, q WHERE dow = 5 AND p = 0

-- case: a comment behind the last semicolon
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5 ;; -- done

-- case: joins in parentheses
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (t.country = 'NO') LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], [null, "string"]]
SELECT s.id, t.country FROM ((SELECT * FROM sales WHERE ((`ds` IN ('2026-01-02') AND `region` IN ('east', 'north')) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN dates d ON s.ds = d.ds) JOIN stores t ON s.region = t.region AND t.country = 'NO'
WHERE d.dow = 5

-- case: an equality in the ON of another join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON d.dow = 5 JOIN stores t ON s.ds = d.ds AND s.region = t.region

-- case: a Hive-format fact
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT h.id FROM (SELECT * FROM hive_sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) h JOIN dates d ON h.ds = d.ds WHERE d.month = '2026-02'
