-- Written by pytest --update-goldens from strengthened.toml; read the difference before you commit it.

-- case: a dimension joined by LEFT JOIN and filtered in WHERE, as BI tools write it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id, d.month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01'

-- case: by IN, BETWEEN, LIKE and IS NOT NULL
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.month IS NOT NULL) LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], ["2030-01-01", "string"], [null, "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.month LIKE '2026-02%') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow IN (5, 6)) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow BETWEEN 5 AND 7) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.dow IN (5, 6)
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.dow BETWEEN 5 AND 7
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month LIKE '2026-02%'
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01', '2030-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month IS NOT NULL

-- case: two steps: the upper join becomes inner first
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT t.store_id, s.id FROM stores t LEFT JOIN ((SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds) ON t.region = s.region
WHERE d.dow = 5

-- case: a FULL JOIN becomes the one that keeps the dimension
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, d.ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s FULL JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: by a column of the fact, in a RIGHT JOIN that would keep it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.dow > 4) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM dates d RIGHT JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s ON s.ds = d.ds WHERE s.amount > 10 AND d.dow > 4

-- case: by the ON of an inner join above
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE (d.year = 2026) AND (d.dow > 4) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id, t.country FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.year = 2026
JOIN stores t ON t.store_id = d.dow - 3 AND d.dow > 4
