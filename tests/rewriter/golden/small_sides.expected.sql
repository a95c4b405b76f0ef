-- Written by pytest --update-goldens from small_sides.toml; read the difference before you commit it.

-- case: a known size within the bound
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM days_medium d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001
-- answer: []
SELECT s.id FROM (SELECT * FROM sales WHERE FALSE) s JOIN days_medium d ON s.ds = d.ds WHERE d.g = 1

-- case: a large table in a filter of another small side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds JOIN stores t ON s.region = t.region
WHERE d.dow = 5 AND t.country IN (SELECT ds FROM days_large)

-- case: the last partition of a large table
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT max(ds) FROM sales_large) AS reducer(key1) LIMIT 2
-- answer: [[null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE FALSE) s WHERE s.ds = (SELECT max(ds) FROM sales_large)

-- case: a table that is known to be tiny, without a filter
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM golden_elsewhere.days_apart d LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN golden_elsewhere.days_apart d ON s.ds = d.ds

-- case: a table that is known to be tiny, in IN
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT d.ds FROM golden_elsewhere.days_apart d) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-02-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds IN (SELECT d.ds FROM golden_elsewhere.days_apart d)
