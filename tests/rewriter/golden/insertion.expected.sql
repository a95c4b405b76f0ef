-- Written by pytest --update-goldens from insertion.toml; read the difference before you commit it.

-- case: comments between tokens
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = /* Friday */ 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT /* , */ s.id -- FROM dates
FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) /* the fact */ AS s -- and its alias
JOIN dates d ON s.ds /*=*/ = d.ds WHERE d.dow = /* Friday */ 5 -- end

-- case: quoted and non-ASCII names, offsets in characters
-- key query: SELECT `d``é`.`ds` AS key, typeof(`d``é`.`ds`) AS type FROM `dates` AS `d``é` WHERE 'starpruner' IS NOT NULL AND (`d``é`.`dow` = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT '中文😀' AS `é`, `s😀`.id FROM (SELECT * FROM `sales` WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) `s😀` JOIN `dates` AS `d``é` ON `s😀`.`ds` = `d``é`.ds WHERE `d``é`.`dow` = 5

-- case: names in another case
-- key query: SELECT D.`ds` AS key, typeof(D.`ds`) AS type FROM Dates D WHERE 'starpruner' IS NOT NULL AND (D.Dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT S.ID FROM (SELECT * FROM SALES WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN Dates D ON S.DS = d.dS WHERE D.Dow = 5

-- case: quotes, semicolons and keywords inside literals
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month <> 'a''); WHERE') AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, 'x; FROM sales' AS lit FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.month <> 'a''); WHERE' AND d.dow = 5;

-- case: a hint that names the fact
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT /*+ BROADCAST(d), MERGE(s) */ s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5

-- case: SELECT * keeps its columns and their order
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM dates WHERE 'starpruner' IS NOT NULL AND (dates.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT * FROM dates JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales ON sales.ds = dates.ds WHERE dates.dow = 5

-- case: the same table twice, only one of them joined
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, o.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds JOIN sales o ON o.id = s.id
WHERE d.dow = 5

-- case: LATERAL VIEW above the join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, x FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds LATERAL VIEW explode(array(1, 2)) e AS x
WHERE d.dow = 5

-- case: no spaces where none are needed
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow=5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT(s.id)FROM(SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON(s.ds=d.ds)WHERE(d.dow=5))s

-- case: double-quoted strings and backslashes, under default settings
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = "2026-01") AND (d.month <> 'a\\'b') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.month = "2026-01" AND d.month <> 'a\'b'

-- case: columns named by database
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM dates WHERE 'starpruner' IS NOT NULL AND (dates.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT golden.sales.id FROM golden.sales JOIN dates ON (sales.`ds` IN ('2026-01-02') OR typeof(sales.`ds`) <> 'string') AND sales.ds = dates.ds WHERE dates.dow = 5

-- case: all columns named by database, a filter in parentheses, a comment at the end
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM golden.dates WHERE 'starpruner' IS NOT NULL AND (golden.dates.dow = 5 OR golden.dates.dow = 6) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT golden.dates.month, sum(golden.sales.amount) FROM golden.dates INNER JOIN golden.sales
ON ((sales.`ds` IN ('2026-01-02', '2026-01-03') OR typeof(sales.`ds`) <> 'string') AND golden.dates.ds=golden.sales.ds) WHERE (golden.dates.dow = 5 OR golden.dates.dow = 6)
GROUP BY golden.dates.month -- by month

-- case: columns named by database, without WHERE, the fact on the side that is padded
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM golden.dates WHERE 'starpruner' IS NOT NULL AND (golden.dates.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT golden.dates.ds, golden.sales.id FROM golden.dates
LEFT JOIN golden.sales ON (sales.`ds` IN ('2026-01-02') OR typeof(sales.`ds`) <> 'string') AND golden.dates.ds = golden.sales.ds AND golden.dates.dow = 5
ORDER BY golden.dates.ds

-- case: columns named by database, below a join that keeps the fact's rows
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM golden.dates WHERE 'starpruner' IS NOT NULL AND (golden.dates.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT golden.sales.id, golden.stores.country FROM golden.sales
LEFT JOIN golden.stores ON golden.sales.region = golden.stores.region AND golden.sales.amount > 10
JOIN golden.dates ON (sales.`ds` IN ('2026-01-02') OR typeof(sales.`ds`) <> 'string') AND golden.sales.ds = golden.dates.ds WHERE golden.dates.dow = 5

-- case: two facts whose columns are named by database, beside one condition
-- key query: SELECT dates.`ds` AS key, typeof(dates.`ds`) AS type FROM golden.dates WHERE 'starpruner' IS NOT NULL AND (golden.dates.dow BETWEEN 4 AND 5) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT golden.sales.id, golden.sales_2025.id
FROM golden.sales, golden.sales_2025, golden.dates
WHERE (sales.`ds` IN ('2026-01-01', '2026-01-02') OR typeof(sales.`ds`) <> 'string') AND (sales_2025.`ds` IN ('2026-01-01', '2026-01-02') OR typeof(sales_2025.`ds`) <> 'string') AND golden.sales.ds = golden.dates.ds AND golden.sales_2025.ds = golden.dates.ds
AND golden.dates.dow BETWEEN 4 AND 5

-- case: columns named by database, the keys of an expression
-- key query: SELECT substr(golden.offers.day, 1, 10) AS key, typeof(substr(golden.offers.day, 1, 10)) AS type FROM golden.offers WHERE 'starpruner' IS NOT NULL AND (golden.offers.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-05", "string"], ["2026-02-02", "string"], [null, "string"]]
SELECT golden.sales.id FROM golden.sales JOIN golden.offers
ON (sales.`ds` IN ('2026-01-01', '2026-01-02', '2026-01-05', '2026-02-02') OR typeof(sales.`ds`) <> 'string') AND golden.sales.ds = substr(golden.offers.day, 1, 10) AND golden.offers.g = 1
