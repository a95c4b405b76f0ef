-- Written by pytest --update-goldens from listed/partition_list.toml; read the difference before you commit it.

-- case: a string against a date
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 1) AND (c.holiday) AND (s.ds = c.d) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN calendar c ON s.ds = c.d WHERE c.month = 1 AND c.holiday

-- case: a function of the fact's column
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.ym = '2026-02') AND (to_date(s.ds) = c.d) LIMIT 10
-- answer: [["2026-02-01", "string"]]
SELECT s.id, c.ym FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-01')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN calendar c ON to_date(s.ds) = c.d WHERE c.ym = '2026-02'

-- case: a function whose null matches
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.holiday) AND (coalesce(s.ds, '2026-01-31') = c.ds) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) OR `ds` IS NULL)) OR typeof(`ds`) <> 'string')) s JOIN calendar c ON coalesce(s.ds, '2026-01-31') = c.ds WHERE c.holiday

-- case: a cast of a number
-- key query: SELECT f.`dt` AS key, typeof(f.`dt`) AS type FROM (partitions) AS f(`dt`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 2) AND (CAST(f.dt AS STRING) = date_format(c.d, 'yyyyMMdd')) LIMIT 6
-- answer: [[20260201, "int"]]
SELECT f.id FROM (SELECT * FROM by_number WHERE (array_contains(array(TRUE), (`dt` <= 20260100 OR `dt` BETWEEN 20260103 AND 20260130 OR `dt` >= 20260132)) OR typeof(`dt`) <> 'int')) f, calendar c WHERE CAST(f.dt AS STRING) = date_format(c.d, 'yyyyMMdd') AND c.month = 2

-- case: a month of a date
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.d = DATE'2026-02-28') AND (date_format(f.day, 'yyyy-MM') = c.ym) LIMIT 8
-- answer: [[20485, "date"], [20512, "date"]]
SELECT f.id FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR `day` >= DATE'2026-02-01')) OR typeof(`day`) <> 'date')) f JOIN calendar c ON date_format(f.day, 'yyyy-MM') = c.ym WHERE c.d = DATE'2026-02-28'

-- case: several columns in one expression
-- key query: SELECT f.`month` AS key1, typeof(f.`month`) AS type1, f.`year` AS key2, typeof(f.`year`) AS type2 FROM (partitions) AS f(`month`, `year`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 2) AND (f.year * 100 + f.month = c.year * 100 + c.month) LIMIT 7
-- answer: [[2, "int", 2026, "int"]]
SELECT f.id FROM (SELECT * FROM by_month WHERE (array_contains(array(TRUE), ((`month` <= 0 OR `month` BETWEEN 2 AND 11 OR `month` >= 14) OR (`month` IN (1) AND (`year` <= 2025 OR `year` >= 2027)) OR (`month` IN (12) AND (`year` <= 2024 OR `year` >= 2026 OR `year` IS NULL)) OR ((`month` IN (13) OR `month` IS NULL) AND (`year` <= 2025 OR `year` >= 2027 OR `year` IS NULL)))) OR typeof(`month`) <> 'int' OR typeof(`year`) <> 'int')) f JOIN calendar c ON f.year * 100 + f.month = c.year * 100 + c.month WHERE c.month = 2

-- case: a function that is an error for the nulls that no partition has
-- key query: SELECT f.`year` AS key1, typeof(f.`year`) AS type1, f.`month` AS key2, typeof(f.`month`) AS type2 FROM (partitions) AS f(`year`, `month`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 2) AND (to_date(concat_ws('-', f.year, f.month, '1')) = c.d) LIMIT 3
-- answer: [[2026, "int", 2, "int"]]
SELECT f.id FROM (SELECT * FROM by_month WHERE (array_contains(array(TRUE), (((`month` <= 0 OR `month` >= 2 OR `month` IS NULL) AND `year` IN (2026)) OR (`year` <= 2025 OR `year` >= 2027 OR `year` IS NULL))) OR typeof(`year`) <> 'int' OR typeof(`month`) <> 'int')) f JOIN calendar c ON to_date(concat_ws('-', f.year, f.month, '1')) = c.d
WHERE c.month = 2 AND f.year = 2026 AND f.month BETWEEN 1 AND 12

-- case: rolling windows by LATERAL VIEW
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), (SELECT explode(array(1, 7, 30)) AS `n`) AS `t` WHERE 'starpruner' IS NOT NULL AND (n < 30) AND (ds >= date_add('2026-02-02', -n + 1)) LIMIT 10
-- answer: [["2026-01-31", "string"], ["2026-02-01", "string"]]
SELECT n, sum(s.amount) FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-04')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s LATERAL VIEW explode(array(1, 7, 30)) t AS n
WHERE ds >= date_add('2026-02-02', -n + 1) AND n < 30 GROUP BY n

-- case: between two columns of the small side
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 1) AND (s.ds BETWEEN p.first AND p.last) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT s.id, p.name FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-02' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN promotions p ON s.ds BETWEEN p.first AND p.last WHERE p.g = 1

-- case: one end of a BETWEEN whose other end reads files
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 2) AND (s.ds >= p.first) LIMIT 10
-- answer: [["2026-01-31", "string"], ["2026-02-01", "string"], ["2026-1-2", "string"]]
SELECT s.id, p.name FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-04')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN promotions p
ON s.ds BETWEEN p.first AND least(p.last, CAST(date_add(p.from_day, s.amount) AS STRING)) WHERE p.g = 2

-- case: the ends of a BETWEEN by two tables, of which one has dates
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.ds = '2026-01-02') AND (s.ds >= c.d) LIMIT 10
-- answer: [[" 2026-01-03", "string"], ["2026-01-02", "string"], ["2026-01-02T12:00:00", "string"], ["2026-01-03", "string"], ["2026-01-31", "string"], ["2026-02-01", "string"], ["2026-1-2", "string"]]
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 1) AND (s.ds <= p.last) LIMIT 10
-- answer: [[" 2026-01-03", "string"], ["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT s.id, p.name FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), ((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-02')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string') AND (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-02' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN ('2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN promotions p ON p.g = 1 JOIN calendar c ON s.ds BETWEEN c.d AND p.last
WHERE c.ds = '2026-01-02'

-- case: one end of a BETWEEN in a join that keeps rows of the other side
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 2) AND (f.day >= p.from_day) LIMIT 8
-- answer: [[20484, "date"], [20485, "date"], [20512, "date"]]
SELECT p.name, f.id FROM promotions p
LEFT JOIN (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` >= DATE'2026-01-04')) OR typeof(`day`) <> 'date')) f ON f.day BETWEEN p.from_day AND date_add(p.to_day, f.id - 5) AND p.g = 2

-- case: open ranges, by dates
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g IN (1, 3)) AND (f.day >= p.from_day) AND (f.day <= p.to_day OR p.to_day IS NULL) LIMIT 8
-- answer: [[20454, "date"], [20455, "date"], [20485, "date"], [20512, "date"]]
SELECT f.id, p.name FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2026-01-02' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR `day` >= DATE'2026-02-01')) OR typeof(`day`) <> 'date')) f JOIN promotions p
ON f.day >= p.from_day AND (f.day <= p.to_day OR p.to_day IS NULL) WHERE p.g IN (1, 3)

-- case: a range beside an equality on another column
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 1) AND (s.ds >= p.first) AND (s.ds <= p.last) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-02' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN promotions p ON s.amount = p.g * 10 AND s.ds >= p.first AND s.ds <= p.last
WHERE p.g = 1

-- case: a range on one partition column and an equality of other types on another
-- key query: SELECT s.`region` AS key1, typeof(s.`region`) AS type1, s.`ds` AS key2, typeof(s.`ds`) AS type2 FROM (partitions) AS s(`region`, `ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g < 3) AND (upper(s.region) = upper(p.region)) AND (s.ds >= p.first) LIMIT 12
-- answer: [["north", "string", "2026-01-01", "string"], ["north", "string", "2026-01-02", "string"], ["north", "string", "2026-01-02T12:00:00", "string"], ["north", "string", "2026-01-31", "string"], ["north", "string", "2026-1-2", "string"], ["south", "string", "2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), ((`region`, `ds`) IN (('south', '2026-01-01'), ('south', '2026-01-03'), ('west', ' 2026-01-03'))) IS NOT TRUE) OR typeof(`region`) <> 'string' OR typeof(`ds`) <> 'string')) s JOIN promotions p ON upper(s.region) = upper(p.region) AND s.ds >= p.first WHERE p.g < 3

-- case: or of equalities
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 2) AND (s.ds = p.first OR s.ds = p.last) LIMIT 10
-- answer: [["2026-01-31", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-04')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN promotions p ON (s.ds = p.first OR s.ds = p.last) WHERE p.g = 2

-- case: greater than a scalar subquery
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds > (SELECT max(l.ds) FROM loads l WHERE l.g = 1)) LIMIT 10
-- answer: [["2026-02-01", "string"], ["2026-1-2", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-01')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE s.ds > (SELECT max(l.ds) FROM loads l WHERE l.g = 1)

-- case: days before the latest partition of another table
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds >= (SELECT date_sub(max(r.ds), 30) FROM returns r)) LIMIT 10
-- answer: [[" 2026-01-03", "string"], ["2026-01-02", "string"], ["2026-01-02T12:00:00", "string"], ["2026-01-03", "string"], ["2026-01-31", "string"], ["2026-02-01", "string"], ["2026-1-2", "string"]]
SELECT s.ds, s.region, s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), ((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-02')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE s.ds >= (SELECT date_sub(max(r.ds), 30) FROM returns r)

-- case: the latest partition of another table, or a day where it has none
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`) WHERE 'starpruner' IS NOT NULL AND (NOT f.day <= (SELECT CAST(min(r.ds) AS DATE) FROM returns r)) LIMIT 8
-- answer: [[20455, "date"], [20456, "date"], [20484, "date"], [20485, "date"], [20512, "date"]]
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds > (SELECT coalesce(max(r.ds), '2026-01-03') FROM returns r WHERE r.ds > '2030')) LIMIT 10
-- answer: [["2026-01-31", "string"], ["2026-02-01", "string"], ["2026-1-2", "string"]]
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`) WHERE 'starpruner' IS NOT NULL AND (f.day >= (SELECT date_sub(max(r.ds), 1) FROM returns r WHERE r.ds > '2030')) LIMIT 8
-- answer: []
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-04')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE s.ds > (SELECT coalesce(max(r.ds), '2026-01-03') FROM returns r WHERE r.ds > '2030')
UNION ALL SELECT f.id FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR `day` BETWEEN DATE'2026-02-02' AND DATE'2026-02-27' OR `day` >= DATE'2026-03-01')) OR typeof(`day`) <> 'date')) f WHERE f.day >= (SELECT date_sub(max(r.ds), 1) FROM returns r WHERE r.ds > '2030')
UNION ALL SELECT f.id FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` >= DATE'2026-01-02')) OR typeof(`day`) <> 'date')) f WHERE NOT f.day <= (SELECT CAST(min(r.ds) AS DATE) FROM returns r)

-- case: days after the last partition but one of another table
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds >= (SELECT ds FROM returns ORDER BY ds DESC LIMIT 1 OFFSET 1)) LIMIT 10
-- answer: [["2026-01-02", "string"], ["2026-01-02T12:00:00", "string"], ["2026-01-03", "string"], ["2026-01-31", "string"], ["2026-02-01", "string"], ["2026-1-2", "string"]]
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (to_date(s.ds) IN (SELECT r.ds FROM returns r ORDER BY r.ds LIMIT 2)) LIMIT 10
-- answer: [["2026-01-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-02')) AND `ds` NOT IN (' 2026-01-03')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE s.ds >= (SELECT ds FROM returns ORDER BY ds DESC LIMIT 1 OFFSET 1)
UNION ALL SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE to_date(s.ds) IN (SELECT r.ds FROM returns r ORDER BY r.ds LIMIT 2)

-- case: between two scalar subqueries
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds BETWEEN (SELECT min(c.ds) FROM calendar c WHERE c.month = 2) AND (SELECT max(c.ds) FROM calendar c WHERE c.month = 2)) LIMIT 10
-- answer: [["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-01')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s
WHERE s.ds BETWEEN (SELECT min(c.ds) FROM calendar c WHERE c.month = 2) AND (SELECT max(c.ds) FROM calendar c WHERE c.month = 2)

-- case: days before a date in a subquery
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`) WHERE 'starpruner' IS NOT NULL AND (datediff((SELECT max(c.d) FROM calendar c WHERE c.holiday), f.day) BETWEEN 0 AND 28) LIMIT 8
-- answer: [[20456, "date"], [20484, "date"]]
SELECT f.id FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` BETWEEN DATE'2026-01-03' AND DATE'2026-01-31' OR `day` BETWEEN DATE'2026-02-02' AND DATE'2026-02-27' OR `day` >= DATE'2026-03-01')) OR typeof(`day`) <> 'date')) f WHERE datediff((SELECT max(c.d) FROM calendar c WHERE c.holiday), f.day) BETWEEN 0 AND 28

-- case: a subquery behind IN with values of another type
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT c.d FROM calendar c WHERE c.holiday) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "date"], ["2026-01-31", "date"], [null, "date"]]
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds IN (SELECT c.d FROM calendar c WHERE c.holiday)) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE s.ds IN (SELECT c.d FROM calendar c WHERE c.holiday)

-- case: a scalar subquery of another type
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT max(c.d) FROM calendar c WHERE c.month = 1) AS reducer(key1) LIMIT 2
-- answer: [["2026-01-31", "date"]]
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds = (SELECT max(c.d) FROM calendar c WHERE c.month = 1)) LIMIT 10
-- answer: [["2026-01-31", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE s.ds = (SELECT max(c.d) FROM calendar c WHERE c.month = 1)

-- case: an expression in a subquery behind IN
-- key query: SELECT f.`dt` AS key, typeof(f.`dt`) AS type FROM (partitions) AS f(`dt`) WHERE 'starpruner' IS NOT NULL AND (to_date(CAST(f.dt AS STRING), 'yyyyMMdd') IN (SELECT c.d FROM calendar c WHERE c.month = 2)) LIMIT 6
-- answer: [[20260201, "int"]]
SELECT f.id FROM (SELECT * FROM by_number WHERE (array_contains(array(TRUE), (`dt` <= 20260100 OR `dt` BETWEEN 20260103 AND 20260130 OR `dt` >= 20260132)) OR typeof(`dt`) <> 'int')) f WHERE to_date(CAST(f.dt AS STRING), 'yyyyMMdd') IN (SELECT c.d FROM calendar c WHERE c.month = 2)

-- case: NOT IN
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (s.ds NOT IN (SELECT c.ds FROM calendar c WHERE c.month = 1 AND c.ds IS NOT NULL)) LIMIT 10
-- answer: [[" 2026-01-03", "string"], ["2026-01-02T12:00:00", "string"], ["2026-02-01", "string"], ["2026-1-2", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), ((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-01')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE s.ds NOT IN (SELECT c.ds FROM calendar c WHERE c.month = 1 AND c.ds IS NOT NULL)

-- case: EXISTS with a range
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`) WHERE 'starpruner' IS NOT NULL AND (EXISTS (SELECT 1 FROM promotions p WHERE s.ds BETWEEN p.first AND p.last AND p.g = 2)) LIMIT 10
-- answer: [["2026-01-31", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-04')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s WHERE EXISTS (SELECT 1 FROM promotions p WHERE s.ds BETWEEN p.first AND p.last AND p.g = 2)

-- case: EXISTS with a condition on another column too
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 2) AND (s.ds BETWEEN p.first AND p.last) LIMIT 10
-- answer: [["2026-01-31", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-04')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s
WHERE EXISTS (SELECT 1 FROM promotions p WHERE s.ds BETWEEN p.first AND p.last AND s.amount > p.g AND p.g = 2)

-- case: NOT EXISTS
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`) WHERE 'starpruner' IS NOT NULL AND (NOT EXISTS (SELECT 1 FROM calendar c WHERE c.d = f.day AND c.month = 1)) LIMIT 8
-- answer: [[20485, "date"], [20512, "date"], [null, "date"]]
SELECT f.id FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR `day` >= DATE'2026-02-01' OR `day` IS NULL)) OR typeof(`day`) <> 'date')) f WHERE NOT EXISTS (SELECT 1 FROM calendar c WHERE c.d = f.day AND c.month = 1)

-- case: a correlated scalar subquery
-- key query: SELECT unix_date(f.`day`) AS key, typeof(f.`day`) AS type FROM (partitions) AS f(`day`) WHERE 'starpruner' IS NOT NULL AND ((SELECT max(c.holiday) FROM calendar c WHERE c.d = f.day) = true) LIMIT 8
-- answer: [[20454, "date"], [20484, "date"]]
SELECT f.id FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2026-01-01' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR `day` BETWEEN DATE'2026-02-02' AND DATE'2026-02-27' OR `day` >= DATE'2026-03-01')) OR typeof(`day`) <> 'date')) f WHERE (SELECT max(c.holiday) FROM calendar c WHERE c.d = f.day) = true

-- case: the null-supplying side
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 1) AND (s.ds BETWEEN p.first AND p.last) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT p.name, s.id FROM promotions p LEFT JOIN (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-02' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s ON s.ds BETWEEN p.first AND p.last AND p.g = 1

-- case: a left semi join
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.holiday) AND (to_date(s.ds) = c.d) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s LEFT SEMI JOIN calendar c ON to_date(s.ds) = c.d AND c.holiday

-- case: the fact in a derived table
-- key query: SELECT `x`.`day` AS key, typeof(`x`.`day`) AS type FROM (partitions) AS `x`(`day`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.holiday) AND (to_date(x.day) = c.d) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"]]
SELECT x.id FROM (SELECT id, ds AS day FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) AS sales WHERE amount > 10) x JOIN calendar c ON to_date(x.day) = c.d WHERE c.holiday

-- case: the fact in branches of a union
-- key query: SELECT `x`.`ds` AS key, typeof(`x`.`ds`) AS type FROM (partitions) AS `x`(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.ym = '2026-02') AND (to_date(x.ds) = c.d) LIMIT 10
-- answer: [["2026-02-01", "string"]]
-- key query: SELECT `x`.`ds` AS key, typeof(`x`.`ds`) AS type FROM (partitions) AS `x`(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.ym = '2026-02') AND (to_date(x.ds) = c.d) LIMIT 5
-- answer: [["2026-02-01", "string"]]
SELECT x.id FROM (SELECT id, ds FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-01')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) AS sales UNION ALL SELECT id, ds FROM (SELECT * FROM returns WHERE (array_contains(array(TRUE), ((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-03')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) AS returns) x
JOIN calendar c ON to_date(x.ds) = c.d WHERE c.ym = '2026-02'

-- case: an outer filter
-- key query: SELECT reduced_key AS key, typeof(reduced_key) AS type FROM (SELECT s.`ds` AS reduced_key, c.`ym` AS `ym` FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (to_date(s.ds) = c.d)) AS `x` WHERE 'starpruner' IS NOT NULL AND (x.ym = '2026-02') LIMIT 10
-- answer: [["2026-02-01", "string"]]
SELECT x.id FROM (SELECT s.id, c.ym FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-01')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN calendar c ON to_date(s.ds) = c.d) x WHERE x.ym = '2026-02'

-- case: a snowflake
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p JOIN periods q ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (p.name = q.name) AND (q.country = 'IT') AND (s.ds BETWEEN p.first AND p.last) LIMIT 10
-- answer: [["2026-01-31", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-04')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN promotions p ON s.ds BETWEEN p.first AND p.last JOIN periods q ON p.name = q.name
WHERE q.country = 'IT'

-- case: a view as the small side
-- key query: SELECT f.`dt` AS key, typeof(f.`dt`) AS type FROM (partitions) AS f(`dt`), calendar_view c WHERE 'starpruner' IS NOT NULL AND (f.dt + 0 = c.date_key) LIMIT 6
-- answer: [[20260101, "int"], [20260102, "int"], [20260131, "int"]]
SELECT f.id FROM (SELECT * FROM by_number WHERE (array_contains(array(TRUE), (`dt` <= 20260200 OR `dt` >= 20260202)) OR typeof(`dt`) <> 'int')) f JOIN calendar_view c ON f.dt + 0 = c.date_key

-- case: the statement's own filter on the partitions
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.holiday) AND (to_date(s.ds) = c.d) LIMIT 5
-- answer: [["2026-01-31", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) >= DATE'2026-01-03')) AND `ds` NOT IN ('2026-01-02T12:00:00', '2026-1-2')) OR `ds` IS NULL)) OR typeof(`ds`) <> 'string')) s JOIN calendar c ON to_date(s.ds) = c.d WHERE c.holiday AND s.ds >= '2026-01-02' AND s.region IN ('north', 'west')

-- case: a function of the session
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 1) AND (s.ds BETWEEN p.first AND p.last) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-02' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN promotions p ON s.ds BETWEEN p.first AND p.last WHERE p.g = 1 AND current_database() <> 'nowhere'

-- case: no partition matches
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.year = 1999) AND (to_date(s.ds) = c.d) LIMIT 10
-- answer: []
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN calendar c ON to_date(s.ds) = c.d WHERE c.year = 1999

-- case: the fact's columns padded by a join below, where nothing matches null
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), calendar c WHERE 'starpruner' IS NOT NULL AND (c.holiday) AND (to_date(s.ds) = c.d) LIMIT 7
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"]]
SELECT l.g, s.id FROM loads l LEFT JOIN (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) >= DATE'2026-01-03')) AND `ds` NOT IN ('2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s ON l.ds = s.ds AND s.region = 'north'
JOIN calendar c ON to_date(s.ds) = c.d AND c.holiday

-- case: strings of all kinds
-- key query: SELECT n.`name` AS key, typeof(n.`name`) AS type FROM (partitions) AS n(`name`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g < 3) AND (lower(trim(n.name)) = p.name) LIMIT 8
-- answer: [["New Year", "string"], ["new year", "string"], ["winter ", "string"]]
SELECT n.id FROM (SELECT * FROM named WHERE (array_contains(array(TRUE), (`name` < CAST(X'6261636B5C736C617368' AS STRING) OR (`name` > CAST(X'6261636B5C736C617368' AS STRING) AND `name` < CAST(X'69742773' AS STRING)) OR (`name` > CAST(X'69742773' AS STRING) AND `name` < 'é😀') OR `name` > 'é😀')) OR typeof(`name`) <> 'string')) n JOIN promotions p ON lower(trim(n.name)) = p.name WHERE p.g < 3

-- case: LIKE with a pattern in the small side
-- key query: SELECT n.`name` AS key, typeof(n.`name`) AS type FROM (partitions) AS n(`name`), promotions p WHERE 'starpruner' IS NOT NULL AND (p.g = 2) AND (n.name LIKE concat(p.name, '%')) LIMIT 8
-- answer: [["winter ", "string"]]
SELECT n.id FROM (SELECT * FROM named WHERE (array_contains(array(TRUE), (`name` < 'New Year' OR (`name` > 'New Year' AND `name` < CAST(X'6261636B5C736C617368' AS STRING)) OR (`name` > CAST(X'6261636B5C736C617368' AS STRING) AND `name` < CAST(X'69742773' AS STRING)) OR (`name` > CAST(X'69742773' AS STRING) AND `name` < 'new year') OR (`name` > 'new year' AND `name` < 'é😀') OR `name` > 'é😀')) OR typeof(`name`) <> 'string')) n JOIN promotions p ON n.name LIKE concat(p.name, '%') WHERE p.g = 2

-- case: a day that a CTE casts
-- key query: SELECT unix_date(s.`starpruner_1`) AS key, typeof(s.`starpruner_1`) AS type FROM (SELECT CAST(day AS STRING) AS `ds`, by_day.`day` AS `starpruner_1` FROM (partitions) AS by_day(`day`) UNION ALL SELECT NULL, NULL) AS s, calendar c WHERE 'starpruner' IS NOT NULL AND (c.holiday) AND (s.ds = c.ds) LIMIT 8
-- answer: [[20454, "date"], [20484, "date"]]
WITH staged AS (SELECT id, amount, CAST(day AS STRING) AS ds FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2026-01-01' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR `day` BETWEEN DATE'2026-02-02' AND DATE'2026-02-27' OR `day` >= DATE'2026-03-01')) OR typeof(`day`) <> 'date')) AS by_day WHERE amount > 10)
SELECT s.id, c.ym FROM staged s JOIN calendar c ON s.ds = c.ds WHERE c.holiday

-- case: a number that a derived table computes of two columns, and that another one renames
-- key query: SELECT `t`.`starpruner_1` AS key1, typeof(`t`.`starpruner_1`) AS type1, `t`.`starpruner_2` AS key2, typeof(`t`.`starpruner_2`) AS type2 FROM (SELECT f.year * 100 + f.month AS `ym`, f.`month` AS `starpruner_1`, f.`year` AS `starpruner_2` FROM (partitions) AS f(`month`, `year`)) AS `t`, calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 2) AND (t.ym = c.year * 100 + c.month) LIMIT 7
-- answer: [[2, "int", 2026, "int"]]
SELECT t.id FROM (SELECT x.id, x.m AS ym FROM (SELECT id, f.year * 100 + f.month AS m FROM (SELECT * FROM by_month WHERE (array_contains(array(TRUE), ((`month` <= 0 OR `month` BETWEEN 2 AND 11 OR `month` >= 14) OR (`month` IN (1) AND (`year` <= 2025 OR `year` >= 2027)) OR (`month` IN (12) AND (`year` <= 2024 OR `year` >= 2026 OR `year` IS NULL)) OR ((`month` IN (13) OR `month` IS NULL) AND (`year` <= 2025 OR `year` >= 2027 OR `year` IS NULL)))) OR typeof(`month`) <> 'int' OR typeof(`year`) <> 'int')) f) x) t
JOIN calendar c ON t.ym = c.year * 100 + c.month WHERE c.month = 2

-- case: a computed column of the side that an outer join within pads
-- key query: SELECT `x`.`starpruner_1` AS key, typeof(`x`.`starpruner_1`) AS type FROM (SELECT to_date(s.ds) AS `day`, s.`ds` AS `starpruner_1` FROM (partitions) AS s(`ds`) UNION ALL SELECT NULL, NULL) AS `x`, calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 1) AND (c.holiday) AND (x.day = c.d) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"]]
SELECT x.g, x.day FROM (SELECT l.g, to_date(s.ds) AS day FROM loads l LEFT JOIN (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s ON l.ds = s.ds) x
JOIN calendar c ON x.day = c.d WHERE c.month = 1 AND c.holiday

-- case: a computed column in IN, in EXISTS and beside a scalar subquery
-- key query: SELECT s.`starpruner_1` AS key, typeof(s.`starpruner_1`) AS type FROM (SELECT upper(name) AS `n`, named.`name` AS `starpruner_1` FROM (partitions) AS named(`name`) UNION ALL SELECT NULL, NULL) AS s WHERE 'starpruner' IS NOT NULL AND (n IN (SELECT upper(name) FROM periods WHERE g = 1)) LIMIT 8
-- answer: [["New Year", "string"], ["new year", "string"]]
-- key query: SELECT `y`.`starpruner_1` AS key, typeof(`y`.`starpruner_1`) AS type FROM (SELECT dt DIV 100 AS `ym`, by_number.`dt` AS `starpruner_1` FROM (partitions) AS by_number(`dt`) UNION ALL SELECT NULL, NULL) AS `y` WHERE 'starpruner' IS NOT NULL AND (y.ym > (SELECT max(year * 100 + month) FROM calendar WHERE month = 1 AND holiday)) LIMIT 6
-- answer: [[20260201, "int"]]
-- key query: SELECT unix_date(`x`.`starpruner_1`) AS key, typeof(`x`.`starpruner_1`) AS type FROM (SELECT date_add(day, 1) AS `next`, by_day.`day` AS `starpruner_1` FROM (partitions) AS by_day(`day`) UNION ALL SELECT NULL, NULL) AS `x` WHERE 'starpruner' IS NOT NULL AND (EXISTS (SELECT 1 FROM calendar c WHERE c.d = x.next AND c.month = 2)) LIMIT 8
-- answer: [[20484, "date"]]
WITH s AS (SELECT id, upper(name) AS n FROM (SELECT * FROM named WHERE (array_contains(array(TRUE), (`name` < CAST(X'6261636B5C736C617368' AS STRING) OR (`name` > CAST(X'6261636B5C736C617368' AS STRING) AND `name` < CAST(X'69742773' AS STRING)) OR (`name` > CAST(X'69742773' AS STRING) AND `name` < 'winter ') OR (`name` > 'winter ' AND `name` < 'é😀') OR `name` > 'é😀')) OR typeof(`name`) <> 'string')) AS named) SELECT id FROM s WHERE n IN (SELECT upper(name) FROM periods WHERE g = 1)
UNION ALL SELECT id FROM (SELECT id, date_add(day, 1) AS next FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR `day` BETWEEN DATE'2026-02-02' AND DATE'2026-02-27' OR `day` >= DATE'2026-03-01')) OR typeof(`day`) <> 'date')) AS by_day) x
WHERE EXISTS (SELECT 1 FROM calendar c WHERE c.d = x.next AND c.month = 2)
UNION ALL SELECT id FROM (SELECT id, dt DIV 100 AS ym FROM (SELECT * FROM by_number WHERE (array_contains(array(TRUE), (`dt` <= 20260100 OR `dt` BETWEEN 20260103 AND 20260130 OR `dt` >= 20260132)) OR typeof(`dt`) <> 'int')) AS by_number) y
WHERE y.ym > (SELECT max(year * 100 + month) FROM calendar WHERE month = 1 AND holiday)

-- case: a computed column that is grouped by, shown once, and numbered by windows
-- key query: SELECT x.`starpruner_1` AS key, typeof(x.`starpruner_1`) AS type FROM (SELECT to_date(ds) AS `day`, sales.`ds` AS `starpruner_1` FROM (partitions) AS sales(`ds`) UNION ALL SELECT NULL, NULL) AS x, calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 1) AND (c.holiday) AND (x.day = c.d) LIMIT 10
-- answer: [["2026-01-01", "string"], ["2026-01-31", "string"]]
-- key query: SELECT `y`.`starpruner_1` AS key, typeof(`y`.`starpruner_1`) AS type FROM (SELECT dt DIV 100 AS `ym`, by_number.`dt` AS `starpruner_1` FROM (partitions) AS by_number(`dt`) UNION ALL SELECT NULL, NULL) AS `y`, calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 1) AND (y.ym = c.year * 100 + c.month) LIMIT 6
-- answer: [[20260101, "int"], [20260102, "int"], [20260131, "int"]]
-- key query: SELECT unix_date(`z`.`starpruner_1`) AS key, typeof(`z`.`starpruner_1`) AS type FROM (SELECT date_add(day, 1) AS `d`, by_day.`day` AS `starpruner_1` FROM (partitions) AS by_day(`day`) UNION ALL SELECT NULL, NULL) AS `z`, calendar c WHERE 'starpruner' IS NOT NULL AND (c.month = 2) AND (`z`.`d` = c.`d`) LIMIT 8
-- answer: [[20484, "date"]]
WITH stg AS (SELECT to_date(ds) AS day, region, amount FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) AS sales),
days AS (SELECT day, region, sum(amount) AS a FROM stg GROUP BY day, region HAVING count(*) > 0)
SELECT x.region, x.a, row_number() OVER (PARTITION BY x.day ORDER BY x.region) AS r FROM days x
JOIN calendar c ON x.day = c.d WHERE c.month = 1 AND c.holiday
UNION ALL SELECT 'number', y.n, y.m FROM (SELECT DISTINCT dt DIV 100 AS ym, 1 AS n, 2 AS m FROM (SELECT * FROM by_number WHERE (array_contains(array(TRUE), (`dt` <= 20260200 OR `dt` >= 20260202)) OR typeof(`dt`) <> 'int')) AS by_number) y
JOIN calendar c ON y.ym = c.year * 100 + c.month AND c.month = 1
UNION ALL SELECT 'window', z.id, z.n FROM (SELECT d, id, count(*) OVER (PARTITION BY d) AS n
  FROM (SELECT id, date_add(day, 1) AS d FROM (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-31' OR `day` BETWEEN DATE'2026-02-02' AND DATE'2026-02-27' OR `day` >= DATE'2026-03-01')) OR typeof(`day`) <> 'date')) AS by_day) w) z JOIN calendar c USING (d) WHERE c.month = 2

-- case: columns of two types that USING compares
-- key query: SELECT `c`.`ds` AS key, typeof(`c`.`ds`) AS type FROM (SELECT d AS ds, month FROM calendar) AS `c` WHERE 'starpruner' IS NOT NULL AND (c.month = 1) LIMIT 5001
-- answer: [["2026-01-01", "date"], ["2026-01-02", "date"], ["2026-01-03", "date"], ["2026-01-31", "date"], [null, "date"]]
-- key query: SELECT s.`ds` AS key, typeof(s.`ds`) AS type FROM (partitions) AS s(`ds`), (SELECT d AS ds, month FROM calendar) AS `c` WHERE 'starpruner' IS NOT NULL AND (c.month = 1) AND (s.`ds` = `c`.`ds`) LIMIT 10
-- answer: [[" 2026-01-03", "string"], ["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-02T12:00:00", "string"], ["2026-01-03", "string"], ["2026-01-31", "string"], ["2026-1-2", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), ((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN (SELECT d AS ds, month FROM calendar) c USING (ds) WHERE c.month = 1

-- case: the last day of each, of days that are bounded
-- key query: SELECT sales.`ds` AS key, typeof(sales.`ds`) AS type FROM (partitions) AS sales(`ds`) WHERE 'starpruner' IS NOT NULL AND ((ds BETWEEN '2026-01-02' AND '2026-01-31')) LIMIT 10
-- answer: [["2026-01-02", "string"], ["2026-01-02T12:00:00", "string"], ["2026-01-03", "string"], ["2026-01-31", "string"]]
SELECT s.id, l.last FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-02' AND DATE'2026-01-31' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN (' 2026-01-03', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN (
  SELECT region, max(ds) AS last FROM sales WHERE ds BETWEEN '2026-01-02' AND '2026-01-31' AND amount <> 50 GROUP BY region
) l ON s.region = l.region AND s.ds = l.last

-- case: the first days of a CTE that is read twice, of none, and of days that are padded with nulls
-- key query: SELECT b.`ds` AS key, typeof(b.`ds`) AS type FROM (partitions) AS b(`ds`) WHERE 'starpruner' IS NOT NULL AND ((b.ds < '2026-01-02')) LIMIT 10
-- answer: [[" 2026-01-03", "string"], ["2026-01-01", "string"]]
-- key query: SELECT unix_date(by_day.`day`) AS key, typeof(by_day.`day`) AS type FROM (partitions) AS by_day(`day`) WHERE 'starpruner' IS NOT NULL AND ((day > DATE'2026-02-01')) LIMIT 8
-- answer: [[20512, "date"]]
-- key query: SELECT r.`ds` AS key, typeof(r.`ds`) AS type FROM (partitions) AS r(`ds`) WHERE 'starpruner' IS NOT NULL AND ((r.ds > '2026-01-02')) LIMIT 10
-- answer: [["2026-01-02T12:00:00", "string"], ["2026-01-03", "string"], ["2026-01-31", "string"], ["2026-02-01", "string"], ["2026-1-2", "string"]]
WITH x AS (SELECT r.amount, min(r.ds) AS first, max(r.ds) AS last FROM sales r WHERE r.ds > '2026-01-02' GROUP BY r.amount)
SELECT x.first, s.id FROM x LEFT JOIN (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-03')) AND `ds` NOT IN (' 2026-01-03')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s ON s.ds = x.first UNION ALL SELECT s.ds, s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2025-12-31' OR try_cast(`ds` AS DATE) >= DATE'2026-01-03')) AND `ds` NOT IN (' 2026-01-03')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN x ON s.ds = x.last
UNION ALL SELECT y.day, f.id FROM (SELECT max(day) AS day FROM by_day WHERE day > DATE'2026-02-01' AND id > 99) y
LEFT JOIN (SELECT * FROM by_day WHERE (array_contains(array(TRUE), (`day` <= DATE'2025-12-31' OR `day` BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR `day` >= DATE'2026-02-02')) OR typeof(`day`) <> 'date')) f ON f.day = y.day
UNION ALL SELECT z.last, s.id FROM (SELECT * FROM sales WHERE (array_contains(array(TRUE), (((coalesce(CAST(try_cast(`ds` AS DATE) AS STRING) <> `ds`, TRUE) OR (try_cast(`ds` AS DATE) <= DATE'2026-01-01' OR try_cast(`ds` AS DATE) BETWEEN DATE'2026-01-04' AND DATE'2026-01-30' OR try_cast(`ds` AS DATE) >= DATE'2026-02-02')) AND `ds` NOT IN ('2026-01-02T12:00:00', '2026-1-2')) AND `ds` IS NOT NULL)) OR typeof(`ds`) <> 'string')) s JOIN (
  SELECT a.id, max(b.ds) AS last FROM sales a LEFT JOIN returns b ON a.ds = b.ds AND b.ds < '2026-01-02' GROUP BY a.id) z ON s.ds = z.last
