-- Written by pytest --update-goldens from strengthened.toml; read the difference before you commit it.

-- case: a dimension joined by LEFT JOIN and filtered in WHERE, as BI tools write it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id, d.month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01'

-- case: by IN, BETWEEN, LIKE and IS NOT NULL
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month IS NOT NULL) LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], ["2030-01-01", "string"], [null, "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month LIKE '2026-02%') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IN (5, 6)) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow BETWEEN 5 AND 7) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.dow IN (5, 6)
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.dow BETWEEN 5 AND 7
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month LIKE '2026-02%'
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01', '2030-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month IS NOT NULL

-- case: two steps: the upper join becomes inner first
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT t.store_id, s.id FROM stores t LEFT JOIN ((SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds) ON t.region = s.region
WHERE d.dow = 5

-- case: a FULL JOIN becomes the one that keeps the dimension
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, d.ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s FULL JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: by a column of the fact, in a RIGHT JOIN that would keep it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow > 4) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM dates d RIGHT JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s ON s.ds = d.ds WHERE s.amount > 10 AND d.dow > 4

-- case: by the ON of an inner join above
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) AND (d.dow > 4) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id, t.country FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.year = 2026
JOIN stores t ON t.store_id = d.dow - 3 AND d.dow > 4

-- case: by functions of a column, and by patterns
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month RLIKE '^2026-0[12]$') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (upper(d.month) ILIKE 'od_') LIMIT 5001
-- answer: [["it's", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (substr(d.ds, 1, 4) = '2026') AND (d.ds NOT LIKE 'i%') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (lower(d.month) LIKE '2026-02%') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE substr(d.ds, 1, 4) = '2026' AND d.ds NOT LIKE 'i%'
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE lower(d.month) LIKE '2026-02%'
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN (CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE upper(d.month) ILIKE 'od_'
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month RLIKE '^2026-0[12]$'

-- case: by expressions that are null for a padded row, or false
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND ((d.dow > 5) IS TRUE) LIMIT 5001
-- answer: [["2026-01-03", "string"], ["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (coalesce(d.dow > 5, FALSE)) LIMIT 5001
-- answer: [["2026-01-03", "string"], ["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (6 BETWEEN d.dow AND 7) LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2030-01-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month || '-01' = '2026-02-01') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (CAST(d.dow AS STRING) IN ('4', '5')) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.month || '-01' = '2026-02-01'
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE CAST(d.dow AS STRING) IN ('4', '5')
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2030-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE 6 BETWEEN d.dow AND 7
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE coalesce(d.dow > 5, FALSE)
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE (d.dow > 5) IS TRUE

-- case: by a column that is true or false
-- key query: SELECT q.`s` AS key, typeof(q.`s`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (NOT q.o) LIMIT 5001
-- answer: [["2", "string"]]
-- key query: SELECT q.`s` AS key, typeof(q.`s`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.o) LIMIT 5001
-- answer: [["a'b", "string"], ["${x}", "string"], ["1", "string"], ["a b/c=d%e", "string"], ["é中😀", "string"]]
-- key query: SELECT q.`s` AS key, typeof(q.`s`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (coalesce(q.o, FALSE)) LIMIT 5001
-- answer: [["a'b", "string"], ["${x}", "string"], ["1", "string"], ["a b/c=d%e", "string"], ["é中😀", "string"]]
SELECT t.id FROM (SELECT * FROM by_string WHERE (`k` IN (CAST(X'247B787D' AS STRING), '1', 'a b/c=d%e', CAST(X'612762' AS STRING), 'é中😀') OR typeof(`k`) <> 'string' OR length(`k`) < 0)) t LEFT JOIN keys q ON t.k = q.s WHERE q.o
UNION ALL SELECT t.id FROM (SELECT * FROM by_string WHERE (`k` IN (CAST(X'247B787D' AS STRING), '1', 'a b/c=d%e', CAST(X'612762' AS STRING), 'é中😀') OR typeof(`k`) <> 'string' OR length(`k`) < 0)) t LEFT JOIN keys q ON t.k = q.s WHERE coalesce(q.o, FALSE)
UNION ALL SELECT t.id FROM (SELECT * FROM by_string WHERE (`k` IN ('2') OR typeof(`k`) <> 'string')) t LEFT JOIN keys q ON t.k = q.s WHERE NOT q.o

-- case: by a disjunction, a CASE and a negation of which no branch lets a padded row pass
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IS NOT NULL) AND (coalesce(d.month, '2026-01') = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (NOT (d.dow < 5 OR d.month = '2026-02')) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5 OR d.dow = 6 AND d.year = 2026) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (CASE WHEN d.dow = 5 THEN TRUE WHEN d.dow > 6 THEN TRUE ELSE FALSE END) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.dow = 5 OR d.dow = 6 AND d.year = 2026
UNION ALL
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE CASE WHEN d.dow = 5 THEN TRUE WHEN d.dow > 6 THEN TRUE ELSE FALSE END
UNION ALL
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE NOT (d.dow < 5 OR d.month = '2026-02')
UNION ALL
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE d.dow IS NOT NULL AND coalesce(d.month, '2026-01') = '2026-01'

-- case: by a choice between literals, as Looker and Tableau write a truth value
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (CASE WHEN d.dow = 5 THEN 'a' WHEN d.dow = 6 THEN 'b' ELSE NULL END IN ('b', 'c')) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (CASE d.dow WHEN 5 THEN 'Friday' WHEN 6 THEN 'Saturday' END IN ('Friday', 'Sunday')) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (if(d.dow = 5, 'Yes', 'No') <> 'No') LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (CASE WHEN d.dow > 5 THEN 'Yes' ELSE 'No' END = 'Yes') LIMIT 5001
-- answer: [["2026-01-03", "string"], ["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (1 = (CASE WHEN d.dow = 5 THEN 1 ELSE 0 END)) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE CASE WHEN d.dow > 5 THEN 'Yes' ELSE 'No' END = 'Yes'
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE 1 = (CASE WHEN d.dow = 5 THEN 1 ELSE 0 END)
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds WHERE if(d.dow = 5, 'Yes', 'No') <> 'No'
UNION ALL
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds
WHERE CASE d.dow WHEN 5 THEN 'Friday' WHEN 6 THEN 'Saturday' END IN ('Friday', 'Sunday')
UNION ALL
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds
WHERE CASE WHEN d.dow = 5 THEN 'a' WHEN d.dow = 6 THEN 'b' ELSE NULL END IN ('b', 'c')

-- case: by a condition over both sides, null where one is
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow > 4) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.dow > 4 WHERE s.amount > d.dow * 10
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.dow > 4 WHERE concat(s.region, d.month) <> 'odd'

-- case: by USING of an inner join above
-- key query: SELECT `d`.`day` AS key, typeof(`d`.`day`) AS type FROM (SELECT ds AS day, year, dow FROM dates WHERE dow > 4) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT id, ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) AS sales) s LEFT JOIN (SELECT ds AS day, year, dow FROM dates WHERE dow > 4) d ON s.ds = d.day
JOIN (SELECT 2026 AS year) y USING (year)

-- case: by a filter outside a derived table, as BI tools write it
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT x.amount FROM (SELECT s.amount, d.month, d.year FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds) x WHERE x.month = '2026-02'

-- case: by a filter outside a derived table without a name, of which the key query has none
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow > 4)) AS `reduced_item0` WHERE 'starpruner' IS NOT NULL AND (month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT amount FROM (SELECT s.amount, d.month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.dow > 4) WHERE month = '2026-02'

-- case: by a filter two levels up, past groups, a window and another join that pads
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT * FROM (
  SELECT y.weekday, t.store_id, sum(y.n) AS n FROM stores t
  LEFT JOIN (
    SELECT d.dow AS weekday, count(*) AS n, row_number() OVER (PARTITION BY d.dow ORDER BY count(*)) AS r
    FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds GROUP BY d.dow) y ON t.store_id = y.weekday - 3
  GROUP BY 1, 2) x
WHERE x.weekday = 5

-- case: by filters at every reader of a CTE, one of them in an outer join's ON
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM dates d) AS `a` WHERE 'starpruner' IS NOT NULL AND (a.dow = 5) UNION ALL SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM dates d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.month = '2026-02')) AS readers LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-02-01", "string"]]
WITH x AS (SELECT s.id, d.dow, d.month FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds)
SELECT a.id FROM x a WHERE a.dow = 5
UNION ALL SELECT t.store_id FROM stores t LEFT JOIN x ON x.id = t.store_id AND x.month = '2026-02'

-- case: by a filter on an output that is computed row by row
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, left(d.month, 4) AS `y` FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow > 5)) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.y = '2026') LIMIT 5001
-- answer: [["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT x.id FROM (
  SELECT s.id, left(d.month, 4) AS y FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.dow > 5) x
WHERE x.y = '2026'

-- case: by a filter on an output that is computed of a group key
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.dow + 1 AS `next` FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026)) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.next IN (6, 7)) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT * FROM (
  SELECT d.dow + 1 AS next, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.year = 2026
  GROUP BY d.dow + 1) x
WHERE x.next IN (6, 7)

-- case: by an equality with another item, in a branch of a UNION
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT t.store_id, x.id FROM (
  SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s LEFT JOIN dates d ON s.ds = d.ds AND d.month = '2026-01'
  UNION ALL SELECT id, 4 FROM sales_2025) x
JOIN stores t ON t.store_id + 3 = x.dow
