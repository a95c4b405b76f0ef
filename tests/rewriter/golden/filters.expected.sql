-- Written by pytest --update-goldens from filters.toml; read the difference before you commit it.

-- case: conjuncts of ON and of WHERE, the client's own words
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year >= 2026) AND (month LIKE '2026%') AND (d.dow = 5 OR d.dow IN (6, 7)) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds AND d.year >= 2026 -- since we moved
WHERE (month LIKE '2026%' AND (d.dow = 5 OR d.dow IN (6, 7))) AND s.amount > 0

-- case: deterministic functions, CASE, CAST, BETWEEN, IS NULL
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (upper(d.month) = '2026-01') AND (CASE WHEN d.dow > 5 THEN 1 ELSE 0 END = 0) AND (CAST(d.year AS STRING) = '2026') AND (d.dow BETWEEN 1 AND 5) AND (d.month IS NOT NULL) AND (NOT d.dow = 9) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s, dates d
WHERE s.ds = d.ds AND upper(d.month) = '2026-01' AND CASE WHEN d.dow > 5 THEN 1 ELSE 0 END = 0
  AND CAST(d.year AS STRING) = '2026' AND d.dow BETWEEN 1 AND 5 AND d.month IS NOT NULL AND NOT d.dow = 9

-- case: a conjunct that reads the fact too is left out
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01' AND d.dow < s.amount

-- case: a random conjunct is left out
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01' AND d.dow > rand() - 1

-- case: a closed subquery in a conjunct
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = (SELECT max(store_id) + 1 FROM stores WHERE country = 'NO')) AND (d.dow IN (SELECT dow FROM dates WHERE year = 2026)) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
WHERE d.dow = (SELECT max(store_id) + 1 FROM stores WHERE country = 'NO') AND d.dow IN (SELECT dow FROM dates WHERE year = 2026)

-- case: conjuncts with a correlated subquery, a fact or a LIMIT are left out
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
WHERE d.month = '2026-01' AND d.dow <= (SELECT max(q.dow) FROM dates q WHERE q.month = d.month)
  AND d.dow < (SELECT max(id) FROM sales_2025) + 9 AND d.dow >= (SELECT dow FROM dates ORDER BY month LIMIT 1)

-- case: what a disjunction implies
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (((d.dow = 5)) OR ((d.dow = 6) AND (d.year = 2026)) OR ((d.dow = 7))) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s, dates d
WHERE s.ds = d.ds AND ((d.dow = 5 AND s.amount > 30) OR (s.region = 'north' AND d.dow = 6 AND d.year = 2026) OR d.dow = 7)

-- case: timestamps as Tableau, Power BI, Looker and Superset write them
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (CAST(TRUNC(CAST(t.opened AS TIMESTAMP), 'MM') AS DATE) = DATE'2001-01-01') AND (t.opened >= timestamp '2001-01-01 00:00:00') AND (t.opened < TIMESTAMP('2003-01-01')) AND (t.opened >= to_timestamp('2001-01-01 00:00:00.000000')) AND (date_trunc('MONTH', t.opened) < TIMESTAMP_NTZ '2002-01-01 00:00:00') LIMIT 5001
-- answer: [["north", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`region` IN ('north') OR typeof(`region`) <> 'string')) s JOIN stores t ON s.region = t.region
WHERE CAST(TRUNC(CAST(t.opened AS TIMESTAMP), 'MM') AS DATE) = DATE'2001-01-01'
  AND t.opened >= timestamp '2001-01-01 00:00:00' AND t.opened < TIMESTAMP('2003-01-01')
  AND t.opened >= to_timestamp('2001-01-01 00:00:00.000000') AND date_trunc('MONTH', t.opened) < TIMESTAMP_NTZ '2002-01-01 00:00:00'

-- case: timestamps of other zones, of parts and of numbers, and steps between them
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (from_utc_timestamp(t.opened, 'Europe/Oslo') < '2002-01-01') AND (unix_timestamp(t.opened) > 0) AND (unix_timestamp(CAST(t.opened AS STRING), 'yyyy-MM-dd') < 1e9) AND (make_timestamp(year(t.opened), 1, 1, 0, 0, 0) <= t.opened) AND (timestampadd(MONTH, 1, t.opened) < t.opened + INTERVAL 40 DAYS) AND (timestampdiff(DAY, t.opened, timestamp_seconds(1e9)) < 400) AND (extract(dow FROM t.opened - INTERVAL '1' DAY) IN (1, 2, 3)) LIMIT 5001
-- answer: [["north", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`region` IN ('north') OR typeof(`region`) <> 'string')) s JOIN stores t ON s.region = t.region
WHERE from_utc_timestamp(t.opened, 'Europe/Oslo') < '2002-01-01' AND unix_timestamp(t.opened) > 0
  AND unix_timestamp(CAST(t.opened AS STRING), 'yyyy-MM-dd') < 1e9 AND make_timestamp(year(t.opened), 1, 1, 0, 0, 0) <= t.opened
  AND timestampadd(MONTH, 1, t.opened) < t.opened + INTERVAL 40 DAYS AND timestampdiff(DAY, t.opened, timestamp_seconds(1e9)) < 400
  AND extract(dow FROM t.opened - INTERVAL '1' DAY) IN (1, 2, 3)

-- case: parts of texts, arrays, maps and JSON
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (array_contains(split(d.month, '-'), '01')) AND (split(d.month, '-')[0] = '2026') AND (size(split(d.month, '-')) = 2) AND (element_at(map('2026-01', 1, '2026-02', 2), d.month) = 1) AND (get_json_object(concat('{"y": ', d.year, '}'), '$.y') = '2026') AND (struct(d.year, d.dow) >= struct(2026, 5)) LIMIT 5001
-- answer: [["2026-01-02", "string"], ["2026-01-03", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
WHERE array_contains(split(d.month, '-'), '01') AND split(d.month, '-')[0] = '2026' AND size(split(d.month, '-')) = 2
  AND element_at(map('2026-01', 1, '2026-02', 2), d.month) = 1 AND get_json_object(concat('{"y": ', d.year, '}'), '$.y') = '2026'
  AND struct(d.year, d.dow) >= struct(2026, 5)

-- case: texts that only begin like the clock
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month NOT IN ('Nowhere', 'Now Playing', 'todayUTC', 'tomorrowland')) AND (d.month NOT LIKE 'today%') LIMIT 5001
-- answer: [["it's", "string"], ["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], ["2030-01-01", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01', '2030-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds
WHERE d.month NOT IN ('Nowhere', 'Now Playing', 'todayUTC', 'tomorrowland') AND d.month NOT LIKE 'today%'
