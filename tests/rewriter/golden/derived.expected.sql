-- Written by pytest --update-goldens from derived.toml; read the difference before you commit it.

-- case: a derived table as the small side
-- key query: SELECT `d`.`ds` AS key, typeof(`d`.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN (SELECT ds FROM dates WHERE dow = 5) d ON s.ds = d.ds

-- case: a CTE as the small side, with a filter of its own and one outside
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT ds, dow FROM dates WHERE year = 2026) AS `d` WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
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
-- key query: SELECT concat(d.month, '-02') AS key, typeof(concat(d.month, '-02')) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = concat(d.month, '-02') WHERE d.dow = 5

-- case: the fact in a derived table, renamed
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT id, ds AS day FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales WHERE amount > 10) x JOIN dates d ON x.day = d.ds
WHERE d.dow = 5

-- case: the fact in a derived table with a star
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT * FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 5

-- case: the fact in a CTE used once
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH x AS (SELECT id, ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales), y AS (SELECT * FROM x)
SELECT y.id FROM y JOIN dates d ON y.ds = d.ds WHERE d.dow = 5

-- case: group key and DISTINCT
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 6) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT x.ds, x.n FROM (SELECT ds, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales GROUP BY ds) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 5
UNION ALL
SELECT x.ds, 0 FROM (SELECT DISTINCT ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 6
UNION ALL
SELECT x.ds, x.n FROM (SELECT ds, count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales GROUP BY 1) x JOIN dates d ON x.ds = d.ds WHERE d.dow = 4

-- case: window partition key
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id, x.n FROM (SELECT id, ds, count(*) OVER (PARTITION BY ds) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.ds = d.ds
WHERE d.dow = 5

-- case: every branch of a UNION
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT x.id FROM (SELECT id, ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales UNION ALL SELECT id, ds FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales_2025) x JOIN dates d ON x.ds = d.ds
WHERE d.dow = 4

-- case: a star beside other outputs, which shifts their positions
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT x.id FROM (SELECT *, region AS r, ds AS day FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales) x JOIN dates d ON x.day = d.ds AND x.ds = d.ds
WHERE d.dow = 5

-- case: a star over several items
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT x.id FROM (SELECT * FROM (SELECT store_id, country FROM stores) t JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s ON t.store_id = s.id) x
JOIN dates d ON x.ds = d.ds WHERE d.dow = 5
UNION ALL
SELECT x.id FROM (SELECT t.opened, s.* FROM stores t JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s ON t.store_id = s.id) x
JOIN dates d ON x.ds = d.ds WHERE d.dow = 4

-- case: a CTE with several readers, each narrowed where it is named
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates WHERE dow = 4) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
WITH x AS (SELECT id, ds AS day FROM sales UNION ALL SELECT id, ds FROM sales_2025)
SELECT a.id FROM (SELECT * FROM x WHERE (`day` IN ('2026-01-02') OR typeof(`day`) <> 'string')) a JOIN dates d ON a.day = d.ds WHERE d.dow = 5
UNION ALL
SELECT x.id FROM (SELECT * FROM x WHERE (`day` IN ('2026-01-01') OR typeof(`day`) <> 'string')) AS x WHERE x.day IN (SELECT ds FROM dates WHERE dow = 4)
UNION ALL
SELECT count(*) FROM x

-- case: a chain of CTEs as dbt writes it, which begins with those that import tables
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT january.`ds` AS reduced_key, january.`dow` AS `dow` FROM (WITH `days` AS (SELECT * FROM `golden`.`dates`) SELECT * FROM days WHERE month = '2026-01') AS `january`) AS `final` WHERE 'starpruner' IS NOT NULL AND (dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH sold AS (SELECT * FROM (SELECT * FROM `golden`.`sales` WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS `sales`), days AS (SELECT * FROM `golden`.`dates`),
january AS (SELECT * FROM days WHERE month = '2026-01'),
joined AS (SELECT sold.id, sold.amount, january.dow FROM sold INNER JOIN january ON sold.ds = january.ds),
final AS (SELECT * FROM joined)
SELECT * FROM final WHERE dow = 5

-- case: an imported fact and an imported small side with several readers
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (WITH `days` AS (SELECT * FROM dates WHERE year = 2026) SELECT ds FROM days WHERE dow = 6) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
-- key query: SELECT last.`ds` AS key, typeof(last.`ds`) AS type FROM (WITH `days` AS (SELECT * FROM dates WHERE year = 2026) SELECT max(ds) AS ds FROM days) AS `last` LIMIT 5001
-- answer: [["2026-02-01", "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM (SELECT * FROM dates WHERE year = 2026) AS `d` WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH sold AS (SELECT * FROM sales), days AS (SELECT * FROM dates WHERE year = 2026), last AS (SELECT max(ds) AS ds FROM days),
a AS (SELECT sold.id FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) AS sold JOIN last ON sold.ds = last.ds), b AS (SELECT sold.id FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold JOIN days d ON sold.ds = d.ds AND d.dow = 5)
SELECT id FROM a UNION ALL SELECT id FROM b UNION ALL SELECT id FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) AS sold WHERE ds IN (SELECT ds FROM days WHERE dow = 6)

-- case: a WITH in a derived table and in a CTE
-- key query: SELECT f.`ds` AS key, typeof(f.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 5) AS `f` LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT l.`ds` AS key, typeof(l.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow = 6) AS `l` LIMIT 5001
-- answer: [["2026-01-03", "string"]]
WITH x AS (WITH fridays AS (SELECT ds FROM dates WHERE dow = 5) SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN fridays f ON s.ds = f.ds)
SELECT x.id FROM x UNION ALL
SELECT y.id FROM (WITH late AS (SELECT ds FROM dates WHERE dow = 6) SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN late l ON s.ds = l.ds) y

-- case: small sides with a WITH of their own, one of which reads an outer CTE too
-- key query: SELECT `m`.`ds` AS key, typeof(`m`.`ds`) AS type FROM (WITH `days` AS (SELECT * FROM dates WHERE year = 2026) (WITH late AS (SELECT ds FROM days WHERE dow >= 5) SELECT max(ds) AS ds FROM late)) AS `m` LIMIT 5001
-- answer: [["2026-02-01", "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (WITH any_day AS (SELECT ds FROM dates WHERE dow > 0) SELECT ds FROM any_day) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], ["2030-01-01", "string"]]
WITH days AS (SELECT * FROM dates WHERE year = 2026)
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN (WITH late AS (SELECT ds FROM days WHERE dow >= 5) SELECT max(ds) AS ds FROM late) m ON s.ds = m.ds
WHERE s.ds IN (WITH any_day AS (SELECT ds FROM dates WHERE dow > 0) SELECT ds FROM any_day)

-- case: derived tables without an alias as small sides
-- key query: SELECT `reduced_item1`.`day` AS key, typeof(`reduced_item1`.`day`) AS type FROM (SELECT ds AS day FROM dates WHERE dow >= 4) AS `reduced_item1` LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
-- key query: SELECT `reduced_item2`.`zone` AS key, typeof(`reduced_item2`.`zone`) AS type FROM (SELECT region AS zone, country FROM stores) AS `reduced_item2` WHERE 'starpruner' IS NOT NULL AND (country = 'NO') LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') AND `region` IN ('east', 'north')) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN (SELECT ds AS day FROM dates WHERE dow >= 4) ON s.ds = day
JOIN (SELECT region AS zone, country FROM stores) ON s.region = zone WHERE country = 'NO'

-- case: texts without a table as small sides
-- key query: SELECT days.`ds` AS key, typeof(days.`ds`) AS type FROM (SELECT '2026-01-01' AS ds UNION ALL SELECT '2026-02-01') AS `days` LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-02-01", "string"]]
-- key query: SELECT `r`.`region` AS key, typeof(`r`.`region`) AS type FROM (SELECT 'north' AS region) AS `r` LIMIT 5001
-- answer: [["north", "string"]]
WITH days AS (SELECT '2026-01-01' AS ds UNION ALL SELECT '2026-02-01')
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN days ON s.ds = days.ds
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`region` IN ('north') OR typeof(`region`) <> 'string')) s JOIN (SELECT 'north' AS region) r ON s.region = r.region

-- case: texts without a table that filter a snowflake
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t JOIN (SELECT 'IT' AS country UNION ALL SELECT 'FR') AS `c` ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (t.country = c.country) LIMIT 5001
-- answer: [["south", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`region` IN ('south') OR typeof(`region`) <> 'string')) s JOIN stores t ON s.region = t.region
JOIN (SELECT 'IT' AS country UNION ALL SELECT 'FR') c ON t.country = c.country

-- case: a spine of days, as dbt writes it
-- key query: SELECT unix_date(spine.`day`) AS key, typeof(spine.`day`) AS type FROM (SELECT explode(sequence(DATE'2026-01-01', DATE'2026-01-31', INTERVAL 1 DAY)) AS day) AS `spine` LIMIT 5001
-- answer: [[20454, "date"], [20455, "date"], [20456, "date"], [20457, "date"], [20458, "date"], [20459, "date"], [20460, "date"], [20461, "date"], [20462, "date"], [20463, "date"], [20464, "date"], [20465, "date"], [20466, "date"], [20467, "date"], [20468, "date"], [20469, "date"], [20470, "date"], [20471, "date"], [20472, "date"], [20473, "date"], [20474, "date"], [20475, "date"], [20476, "date"], [20477, "date"], [20478, "date"], [20479, "date"], [20480, "date"], [20481, "date"], [20482, "date"], [20483, "date"], [20484, "date"]]
WITH spine AS (SELECT explode(sequence(DATE'2026-01-01', DATE'2026-01-31', INTERVAL 1 DAY)) AS day)
SELECT spine.day, count(f.id) FROM spine LEFT JOIN (SELECT * FROM by_date WHERE (`k` BETWEEN DATE'2026-01-01' AND DATE'2026-01-31' OR typeof(`k`) <> 'date')) f ON f.k = spine.day GROUP BY spine.day

-- case: generators of literals, which have the same rows beside each row
-- key query: SELECT unix_date(`t`.`day`) AS key, typeof(`t`.`day`) AS type FROM (SELECT explode(sequence(DATE'2026-01-01', DATE'2026-01-05')) AS `day`) AS `t` LIMIT 5001
-- answer: [[20454, "date"], [20455, "date"], [20456, "date"], [20457, "date"], [20458, "date"]]
-- key query: SELECT `e`.`n` AS key, typeof(`e`.`n`) AS type FROM (SELECT explode(array('2026-01-01', '2026-01-31', NULL)) AS `n`) AS `e` LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"], [null, "string"]]
-- key query: SELECT `t`.`r` AS key, typeof(`t`.`r`) AS type FROM (SELECT explode(array('north', 'west')) AS `r`) AS `t` LIMIT 5001
-- answer: [["north", "string"], ["west", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-31') OR typeof(`ds`) <> 'string')) s LATERAL VIEW explode(array('2026-01-01', '2026-01-31', NULL)) e AS n WHERE s.ds = n
UNION ALL SELECT x FROM (SELECT * FROM sales WHERE (`region` IN ('north', 'west') OR typeof(`region`) <> 'string')) s JOIN explode(array('north', 'west')) AS t(r) ON s.region = t.r
  LATERAL VIEW explode(array(s.amount, 7)) u AS x
UNION ALL SELECT f.id FROM (SELECT * FROM by_date WHERE (`k` BETWEEN DATE'2026-01-01' AND DATE'2026-01-05' OR typeof(`k`) <> 'date')) f, LATERAL explode(sequence(DATE'2026-01-01', DATE'2026-01-05')) AS t(day)
  WHERE f.k = t.day

-- case: LATERAL VIEW over columns of a small table, beside the fact and in a query of its own
-- key query: SELECT unix_date(`d`.`day`) AS key, typeof(`d`.`day`) AS type FROM stores t JOIN (SELECT 1) ON 'starpruner' IS NOT NULL LATERAL VIEW explode(sequence(opened, DATE'2002-02-05')) `d` AS `day` WHERE 'starpruner' IS NOT NULL AND (country = 'IT') LIMIT 5001
-- answer: [[11720, "date"], [11721, "date"], [11722, "date"], [11723, "date"]]
-- key query: SELECT o.`region` AS key, typeof(o.`region`) AS type FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], ["south", "string"], [null, "string"]]
-- key query: SELECT `e`.`day` AS key, typeof(`e`.`day`) AS type FROM offers o JOIN (SELECT 1) ON 'starpruner' IS NOT NULL LATERAL VIEW explode(array(o.ds, o.day)) `e` AS `day` WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-01-05", "string"], ["2026-02-01", "string"], ["2026-02-02", "string"], [null, "string"]]
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT n FROM offers LATERAL VIEW OUTER explode(array(region, day)) e AS m LATERAL VIEW explode(array(ds, day)) e AS n\n  WHERE g = 1) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-01-05", "string"], ["2026-02-01", "string"], ["2026-02-02", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-01-05', '2026-02-01', '2026-02-02') AND `region` IN ('east', 'north', 'south')) OR typeof(`region`) <> 'string' OR typeof(`ds`) <> 'string')) s LEFT JOIN offers o ON s.region = o.region LATERAL VIEW explode(array(o.ds, o.day)) e AS day
WHERE s.ds = e.day AND o.g = 1
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-01-05', '2026-02-01', '2026-02-02') OR typeof(`ds`) <> 'string')) s WHERE s.ds IN (
  SELECT n FROM offers LATERAL VIEW OUTER explode(array(region, day)) e AS m LATERAL VIEW explode(array(ds, day)) e AS n
  WHERE g = 1)
UNION ALL SELECT f.id FROM (SELECT * FROM by_date WHERE (`k` BETWEEN DATE'2002-02-02' AND DATE'2002-02-05' OR typeof(`k`) <> 'date')) f, stores t LATERAL VIEW explode(sequence(opened, DATE'2002-02-05')) D AS day
  WHERE f.k = d.day AND country = 'IT'

-- case: the latest partition of each group
-- key query: SELECT `t`.`last` AS key1, typeof(`t`.`last`) AS type1, `t`.`region` AS key2, typeof(`t`.`region`) AS type2 FROM (SELECT region, max(ds) AS last FROM sales GROUP BY region) AS `t` LIMIT 5001
-- answer: [["it's", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-02-01", "string", "south", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-02-01') AND `region` IN ('south')) OR (`ds` IN (CAST(X'69742773' AS STRING)) AND `region` IN ('north'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN (SELECT region, max(ds) AS last FROM sales GROUP BY region) t
ON s.ds = t.last AND s.region = t.region

-- case: the partitions of the fact itself with a filter
-- key query: SELECT `t`.`ds` AS key, typeof(`t`.`ds`) AS type FROM (SELECT DISTINCT ds FROM sales WHERE region = 'north') AS `t` LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s JOIN (SELECT DISTINCT ds FROM sales WHERE region = 'north') t ON s.ds = t.ds

-- case: VALUES as small sides
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (WITH `late` AS (SELECT * FROM VALUES ('2026-02-01', DATE '2026-02-01', -1.5), ('2030-01-01', NULL, 2) AS t(ds, d, x)) SELECT late.ds FROM late) AS reducer(key1) LIMIT 5001
-- answer: [["2026-02-01", "string"], ["2030-01-01", "string"]]
-- key query: SELECT `v`.`ds` AS key, typeof(`v`.`ds`) AS type FROM (VALUES ('2026-01-01'), ('2026-02-01'), (NULL)) AS v(ds) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-02-01", "string"], [null, "string"]]
-- key query: SELECT `v`.`col1` AS key, typeof(`v`.`col1`) AS type FROM VALUES ('2026-01-01', 1), ('2026-01-02', 2) v WHERE 'starpruner' IS NOT NULL AND (col2 > 1) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH late AS (SELECT * FROM VALUES ('2026-02-01', DATE '2026-02-01', -1.5), ('2030-01-01', NULL, 2) AS t(ds, d, x))
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN (VALUES ('2026-01-01'), ('2026-02-01'), (NULL)) AS v(ds) ON s.ds = v.ds
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s, VALUES ('2026-01-01', 1), ('2026-01-02', 2) v WHERE s.ds = v.col1 AND col2 > 1
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01', '2030-01-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds IN (SELECT late.ds FROM late)

-- case: the last days of a small side, which shows all that it is ordered by
-- key query: SELECT `d`.`ds` AS key, typeof(`d`.`ds`) AS type FROM (SELECT ds FROM dates WHERE dow > 3 ORDER BY ds DESC LIMIT 3) AS `d` LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN (SELECT ds FROM dates WHERE dow > 3 ORDER BY ds DESC LIMIT 3) d ON s.ds = d.ds

-- case: LIMIT and OFFSET in a CTE, ordered by more than is shown, by the outputs' names
-- key query: SELECT days.`day` AS key, typeof(days.`day`) AS type FROM (SELECT d.ds AS day FROM dates d WHERE d.dow > 3 ORDER BY d.month DESC NULLS LAST, day ASC LIMIT 2 OFFSET 1) AS `days` LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
WITH days AS (SELECT d.ds AS day FROM dates d WHERE d.dow > 3 ORDER BY d.month DESC NULLS LAST, day ASC LIMIT 2 OFFSET 1)
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN days ON s.ds = days.day

-- case: the last partitions of the fact itself
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT DISTINCT t.ds FROM sales t ORDER BY t.ds DESC LIMIT 2) AS reducer(key1) LIMIT 5001
-- answer: [["it's", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s WHERE s.ds IN (SELECT DISTINCT t.ds FROM sales t ORDER BY t.ds DESC LIMIT 2)

-- case: the last partition of the fact itself, of as many rows as it has, and a first one that is null
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM sales ORDER BY ds DESC LIMIT 2) AS reducer(key1) LIMIT 5001
-- answer: [["it's", "string"], ["2026-02-01", "string"]]
-- key query: SELECT `t`.`k` AS key, typeof(`t`.`k`) AS type FROM (SELECT k FROM by_int ORDER BY k LIMIT 1) AS `t` LIMIT 5001
-- answer: [[null, "int"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-02-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s WHERE s.ds IN (SELECT ds FROM sales ORDER BY ds DESC LIMIT 2)
UNION ALL SELECT f.id FROM (SELECT * FROM by_int WHERE FALSE) f JOIN (SELECT k FROM by_int ORDER BY k LIMIT 1) t ON f.k = t.k

-- case: ranks of a small side, filtered outside
-- key query: SELECT `d`.`ds` AS key, typeof(`d`.`ds`) AS type FROM (SELECT ds, dense_rank() OVER (PARTITION BY year ORDER BY ds DESC) AS n FROM dates) AS `d` WHERE 'starpruner' IS NOT NULL AND (d.n <= 2) LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], ["2030-01-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03', '2026-02-01', '2030-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s
JOIN (SELECT ds, dense_rank() OVER (PARTITION BY year ORDER BY ds DESC) AS n FROM dates) d ON s.ds = d.ds WHERE d.n <= 2

-- case: the last day of each month by a window
-- key query: SELECT `d`.`ds` AS key, typeof(`d`.`ds`) AS type FROM (SELECT ds, max(ds) OVER (PARTITION BY month) AS last FROM dates) AS `d` WHERE 'starpruner' IS NOT NULL AND (d.ds = d.last) LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], ["2030-01-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-03', '2026-02-01', '2030-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s
JOIN (SELECT ds, max(ds) OVER (PARTITION BY month) AS last FROM dates) d ON s.ds = d.ds WHERE d.ds = d.last

-- case: the branch of a UNION that shows a table's column beside one that casts
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT u.ds, u.id FROM (SELECT ds, id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales UNION ALL SELECT CAST(k AS STRING), id FROM by_date) u
JOIN dates d ON u.ds = d.ds WHERE d.dow = 4
