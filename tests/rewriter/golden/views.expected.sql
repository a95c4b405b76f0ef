-- Written by pytest --update-goldens from views.toml; read the difference before you commit it.

-- case: a view with a filter as the small side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_view d LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates_view d ON s.ds = d.ds

-- case: a plain view as the small side, filtered outside
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_plain d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates_plain d ON s.ds = d.ds WHERE d.dow = 5

-- case: a view over a view as the small side, its columns renamed
-- key query: SELECT d.`day` AS key, typeof(d.`day`) AS type FROM dates_renamed d WHERE 'starpruner' IS NOT NULL AND (d.weekday > 4) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates_renamed d ON s.ds = d.day AND d.weekday > 4

-- case: an aggregated view as the small side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_last d LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates_last d ON s.ds = d.ds

-- case: a view of a UNION as the small side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_either d WHERE 'starpruner' IS NOT NULL AND (d.dow = 6) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates_either d ON s.ds = d.ds WHERE d.dow = 6

-- case: views inside a derived table and inside subqueries
-- key query: SELECT `d`.`ds` AS key, typeof(`d`.`ds`) AS type FROM (SELECT v.ds FROM dates_view v) AS `d` LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates_plain WHERE dow = 5) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates_last) AS reducer(key1) LIMIT 2
-- answer: [["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_plain d WHERE 'starpruner' IS NOT NULL AND (d.dow = 6) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (FALSE OR typeof(`ds`) <> 'string')) s JOIN (SELECT v.ds FROM dates_view v) d ON s.ds = d.ds
WHERE s.ds IN (SELECT ds FROM dates_plain WHERE dow = 5) AND s.ds = (SELECT ds FROM dates_last)
UNION ALL
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s WHERE EXISTS (SELECT 1 FROM dates_plain d WHERE d.ds = s.ds AND d.dow = 6)

-- case: a view in a filter of the small side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.ds IN (SELECT v.ds FROM dates_plain v WHERE v.dow = 5)) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.ds IN (SELECT v.ds FROM dates_plain v WHERE v.dow = 5)

-- case: a view in another database reads the tables of that one
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM golden_elsewhere.days d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN golden_elsewhere.days d ON s.ds = d.ds WHERE d.dow = 5

-- case: a global temporary view as the small side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM global_temp.dates_here d LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN global_temp.dates_here d ON s.ds = d.ds

-- case: a global temporary view made in another database
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM global_temp.dates_there d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN global_temp.dates_there d ON s.ds = d.ds WHERE d.dow = 5

-- case: a plain view as the fact
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales_plain WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: a view without an alias
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM dates WHERE 'starpruner' IS NOT NULL AND (dates.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT sales_plain.id FROM (SELECT * FROM sales_plain WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales_plain JOIN dates USING (ds) WHERE dates.dow = 5

-- case: a view with a column list, and a view over it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (t.country = 'NO') LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], [null, "string"]]
SELECT s.number FROM (SELECT * FROM sales_renamed WHERE ((`day` IN ('2026-01-02') AND `zone` IN ('east', 'north')) OR typeof(`day`) <> 'string' OR typeof(`zone`) <> 'string')) s JOIN dates d ON s.day = d.ds JOIN stores t ON s.zone = t.region
WHERE d.dow = 5 AND t.country = 'NO'
UNION ALL
SELECT s.id FROM (SELECT * FROM sales_nested WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: a view of a UNION
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT s.id, s.region FROM (SELECT * FROM sales_both WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 4

-- case: a view with a group key
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.ds, s.n, s.most FROM (SELECT * FROM sales_per_day WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: a view with a CTE of its own
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales_with WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: a view in a derived table
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT id, day AS k FROM (SELECT number AS id, day FROM (SELECT * FROM sales_renamed WHERE (`day` IN ('2026-01-02') OR typeof(`day`) <> 'string')) AS sales_renamed)) x JOIN dates d ON x.k = d.ds
WHERE d.dow = 5

-- case: a view in another database, its own table named by database
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_view d LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM golden_elsewhere.sold WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates_view d ON s.ds = d.ds

-- case: a global temporary view as the fact
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM global_temp.sales_here WHERE (`day` IN ('2026-01-02') OR typeof(`day`) <> 'string')) s JOIN dates d ON s.day = d.ds WHERE d.dow = 5

-- case: an outer join and nulls
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_plain d JOIN dates_renamed r ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) AND (r.day = d.ds) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT d.ds, s.id FROM dates_renamed r JOIN dates_plain d ON r.day = d.ds AND d.dow = 5
LEFT JOIN (SELECT * FROM sales_plain WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s ON s.ds = d.ds

-- case: an INSERT from views over other tables
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates_view d LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
INSERT INTO written SELECT s.id FROM (SELECT * FROM sales_plain WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates_view d ON s.ds = d.ds
