-- Written by pytest --update-goldens from followed_facts.toml; read the difference before you commit it.

-- case: the days of two facts
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT s.id, t.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON t.ds = s.ds
WHERE d.dow = 4

-- case: behind IN
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates WHERE dow = 4) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT s.id, t.id FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t, (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s
WHERE t.ds = s.ds AND s.ds IN (SELECT ds FROM dates WHERE dow = 4)

-- case: an expression over the other fact's column
-- key query: SELECT unix_date(t.`opened`) AS key, typeof(t.`opened`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (t.country = 'NO') LIMIT 5001
-- answer: [[11323, "date"], [12512, "date"], [null, "date"]]
-- key query: SELECT unix_date(add_months(a.k, 12)) AS key, typeof(add_months(a.k, 12)) AS type FROM (SELECT t.`opened` AS `k` FROM stores t WHERE 'starpruner' IS NOT NULL AND (t.country = 'NO')) AS a LIMIT 5001
-- answer: [[11688, "date"], [12877, "date"], [null, "date"]]
SELECT a.id, b.id FROM (SELECT * FROM by_date WHERE (`k` IN (DATE'2001-01-01', DATE'2004-04-04') OR typeof(`k`) <> 'date')) a JOIN (SELECT * FROM by_date WHERE (`k` IN (DATE'2002-01-01', DATE'2005-04-04') OR typeof(`k`) <> 'date')) b ON b.k = add_months(a.k, 12)
JOIN stores t ON a.k = t.opened WHERE t.country = 'NO'

-- case: pairs of one small side
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
SELECT s.id, t.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN offers o ON s.ds = o.ds AND s.region = o.region
JOIN (SELECT * FROM sales_2025 WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) t ON t.ds = s.ds AND s.region = t.region WHERE o.g = 1

-- case: the fact is padded where it has no partner
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT s.id, t.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds LEFT JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON t.ds = s.ds
WHERE d.dow = 4

-- case: three facts in a row
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT s.id, t.id, u.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON t.ds = s.ds JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) u ON u.ds = t.ds
JOIN dates d ON s.ds = d.ds WHERE d.dow = 4

-- case: the filter outside a derived table
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `v` WHERE 'starpruner' IS NOT NULL AND (v.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT v.id FROM (SELECT t.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON t.ds = s.ds) v
WHERE v.dow = 4

-- case: within EXISTS
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT t.id FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t
WHERE EXISTS (SELECT 1 FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE s.ds = t.ds AND d.dow = 4)

-- case: a fact that a daily total joins with a calendar
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT a.ds, a.n, t.id FROM (SELECT ds, sum(amount) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales GROUP BY ds) a
JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON a.ds = t.ds JOIN dates d ON a.ds = d.ds WHERE d.dow = 4

-- case: two daily totals
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT a.ds, a.n, b.n FROM (SELECT ds, sum(amount) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales GROUP BY ds) a
JOIN (SELECT ds, count(*) AS n FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales_2025 GROUP BY ds) b ON a.ds = b.ds JOIN dates d ON d.ds = b.ds WHERE d.dow = 4

-- case: by a column that both branches of a UNION show, under another name
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT u.day, t.id FROM (SELECT ds AS day, id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales UNION ALL SELECT ds, id FROM (SELECT * FROM clocked WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS clocked) u
JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON t.ds = u.day JOIN dates d ON u.day = d.ds WHERE d.dow = 4

-- case: an expression over a column of a derived table
-- key query: SELECT concat('', a.ds) AS key, typeof(concat('', a.ds)) AS type FROM (SELECT d.`ds` AS `ds` FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4)) AS `a` LIMIT 5001
-- answer: [["2026-01-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT a.ds, t.id FROM (SELECT ds, max(id) AS id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales GROUP BY ds) a
JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON t.ds = concat('', a.ds) JOIN dates d ON a.ds = d.ds WHERE d.dow = 4

-- case: a scalar subquery
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT min(ds) FROM dates WHERE year = 2026) AS reducer(key1) LIMIT 2
-- answer: [["2026-01-01", "string"]]
SELECT s.id, t.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON t.ds = s.ds
WHERE s.ds = (SELECT min(ds) FROM dates WHERE year = 2026)
