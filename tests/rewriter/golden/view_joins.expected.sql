-- Written by pytest --update-goldens from view_joins.toml; read the difference before you commit it.

-- case: a filter on the view
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM `spark_catalog`.`golden`.`dates` d) AS `v` WHERE 'starpruner' IS NOT NULL AND (v.month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT v.id, v.amount FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) v WHERE v.month = '2026-02'

-- case: a view without an alias, and a name in quotes
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `sold` WHERE 'starpruner' IS NOT NULL AND (weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT id, amount FROM (SELECT * FROM golden.`sold` WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS `sold` WHERE weekday = 5 AND `sold`.region IN ('north', 'south') ORDER BY id

-- case: a filter in the view, beside chance
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM `spark_catalog`.`golden`.`dates` d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) AND (d.month LIKE '2026%') LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT region, count(*) FROM (SELECT * FROM sold_friday WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold_friday GROUP BY region

-- case: a column list, and the dimension's column in place of the fact's
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` AS d) AS `v` WHERE 'starpruner' IS NOT NULL AND (v.weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT v.number, v.day FROM (SELECT * FROM sold_days WHERE (`day` IN ('2026-01-02') OR typeof(`day`) <> 'string')) v WHERE v.weekday = 5

-- case: an output that the view computes, and a comment at its end
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT `stores`.`region` AS reduced_key, year(opened) AS `since`, `stores`.`country` AS `country` FROM `spark_catalog`.`golden`.`stores` AS `stores`) AS `sold_stores` WHERE 'starpruner' IS NOT NULL AND (since = 2001) AND (country = 'NO') LIMIT 5001
-- answer: [["north", "string"]]
SELECT id, ds FROM (SELECT * FROM sold_stores WHERE (`region` IN ('north') OR typeof(`region`) <> 'string')) AS sold_stores WHERE since = 2001 AND country = 'NO'

-- case: an outer join in the view that a filter outside makes inner
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM `spark_catalog`.`golden`.`dates` d) AS `v` WHERE 'starpruner' IS NOT NULL AND (upper(v.month) = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT v.id, v.ds FROM (SELECT * FROM sold_left WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) v WHERE upper(v.month) = '2026-01'

-- case: several columns of one small side, of which the view shows one
-- key query: SELECT o.`ds` AS key, typeof(o.`ds`) AS type FROM `spark_catalog`.`golden`.`offers` o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT id, ds FROM (SELECT * FROM sold_offers WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) AS sold_offers

-- case: a view over a view
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `of` FROM `spark_catalog`.`golden`.`dates` d) AS `sold_again` WHERE 'starpruner' IS NOT NULL AND (of = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT number, ds FROM (SELECT * FROM sold_again WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) AS sold_again WHERE of = '2026-01'

-- case: a view with a CTE of its own, and a view as its small side
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM `spark_catalog`.`golden`.`dates_plain` d) AS `sold_with` WHERE 'starpruner' IS NOT NULL AND (dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT id, ds FROM (SELECT * FROM sold_with WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold_with WHERE dow = 5

-- case: DISTINCT in the view
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM `spark_catalog`.`golden`.`dates` d) AS `sold_apart` WHERE 'starpruner' IS NOT NULL AND (dow = 6) LIMIT 5001
-- answer: [["2026-01-03", "string"]]
SELECT ds, region FROM (SELECT * FROM sold_apart WHERE (`ds` IN ('2026-01-03') OR typeof(`ds`) <> 'string')) AS sold_apart WHERE dow = 6

-- case: a group key in the view
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM `spark_catalog`.`golden`.`dates` d) AS `sold_per_day` WHERE 'starpruner' IS NOT NULL AND (dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT ds, n FROM (SELECT * FROM sold_per_day WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold_per_day WHERE dow = 5

-- case: a window of each key in the view
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM `spark_catalog`.`golden`.`dates` d) AS `sold_counted` WHERE 'starpruner' IS NOT NULL AND (dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT id, n FROM (SELECT * FROM sold_counted WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold_counted WHERE dow = 5

-- case: one view twice, with a filter on each
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `a` WHERE 'starpruner' IS NOT NULL AND (a.weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM `spark_catalog`.`golden`.`dates` d) AS `b` WHERE 'starpruner' IS NOT NULL AND (b.month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT a.id, b.id FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) a JOIN (SELECT * FROM sold WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) b ON a.region = b.region WHERE a.weekday = 5 AND b.month = '2026-02'

-- case: one view in two branches, with another filter in each
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `sold` WHERE 'starpruner' IS NOT NULL AND (weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `month` FROM `spark_catalog`.`golden`.`dates` d) AS `sold` WHERE 'starpruner' IS NOT NULL AND (month = '2026-02') LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT id, ds FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold WHERE weekday = 5 UNION ALL SELECT id, ds FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) AS sold WHERE month = '2026-02'

-- case: in a derived table and in a CTE with two readers, filtered further out
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`month` AS `m` FROM `spark_catalog`.`golden`.`dates` d) AS `c` WHERE 'starpruner' IS NOT NULL AND (c.m = '2026-02') UNION ALL SELECT reduced_key FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `c` WHERE 'starpruner' IS NOT NULL AND (c.weekday = 6)) AS readers LIMIT 5001
-- answer: [["2026-01-03", "string"], ["2026-02-01", "string"]]
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
WITH c AS (SELECT id, ds, month AS m, weekday FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) AS sold)
SELECT c.id FROM c WHERE c.m = '2026-02' UNION ALL SELECT c.id FROM c WHERE c.weekday = 6
UNION ALL SELECT x.id FROM (SELECT * FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold) AS x WHERE x.weekday = 5

-- case: joined outside too
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (t.country = 'NO') LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], [null, "string"]]
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `v` WHERE 'starpruner' IS NOT NULL AND (v.weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT v.id FROM (SELECT * FROM sold WHERE ((`ds` IN ('2026-01-02') AND `region` IN ('east', 'north')) OR typeof(`region`) <> 'string' OR typeof(`ds`) <> 'string')) v JOIN stores t ON v.region = t.region WHERE t.country = 'NO' AND v.weekday = 5

-- case: on the padded side of a join outside
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `v` WHERE 'starpruner' IS NOT NULL AND (v.weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT t.country, v.id FROM stores t LEFT JOIN (SELECT * FROM sold WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) v ON v.region = t.region AND v.weekday = 5

-- case: a global temporary view made in another database
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `dow` FROM `spark_catalog`.`golden_elsewhere`.`dates` d) AS `sold_there` WHERE 'starpruner' IS NOT NULL AND (dow = 5) LIMIT 5001
-- answer: [["2026-02-01", "string"]]
SELECT id, ds FROM (SELECT * FROM global_temp.sold_there WHERE (`ds` IN ('2026-02-01') OR typeof(`ds`) <> 'string')) AS sold_there WHERE dow = 5

-- case: an INSERT from the view
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT d.`ds` AS reduced_key, d.`dow` AS `weekday` FROM `spark_catalog`.`golden`.`dates` d) AS `v` WHERE 'starpruner' IS NOT NULL AND (v.weekday = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
INSERT INTO written SELECT v.id FROM (SELECT * FROM (SELECT * FROM sold WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sold) v WHERE v.weekday = 5
