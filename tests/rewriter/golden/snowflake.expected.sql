-- Written by pytest --update-goldens from snowflake.toml; read the difference before you commit it.

-- case: filtered by the next table
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t JOIN keys q ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (t.store_id = q.i) AND (q.g = 2) LIMIT 5001
-- answer: [["south", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`region` IN ('south') OR typeof(`region`) <> 'string')) s JOIN stores t ON s.region = t.region JOIN dates d ON t.store_id + 3 > d.dow AND t.store_id = d.dow - 3
JOIN keys q ON t.store_id = q.i WHERE q.g = 2

-- case: two steps away, in a comma join
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t JOIN keys q ON 'starpruner' IS NOT NULL JOIN dates d ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (t.store_id = q.i) AND (q.g < 3) AND (d.dow = q.i) AND (d.year = 2026) LIMIT 5001
-- answer: []
SELECT s.id FROM (SELECT * FROM sales WHERE FALSE) s, stores t, keys q, dates d
WHERE s.region = t.region AND t.store_id = q.i AND d.dow = q.i AND d.year = 2026 AND q.g < 3

-- case: an unfiltered table on the way
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t JOIN keys q ON 'starpruner' IS NOT NULL JOIN dates d ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (t.store_id = q.i) AND (d.dow = q.i) AND (d.year = 0) LIMIT 5001
-- answer: []
SELECT s.id FROM (SELECT * FROM sales WHERE FALSE) s, stores t, keys q, dates d WHERE s.region = t.region AND t.store_id = q.i AND d.dow = q.i AND d.year = 0

-- case: a filter above a LEFT JOIN that keeps the small side
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t JOIN keys q ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (t.country = 'IT') AND (t.store_id = q.i) AND (q.g = 2) LIMIT 5001
-- answer: [["south", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`region` IN ('south') OR typeof(`region`) <> 'string')) s JOIN stores t ON s.region = t.region LEFT JOIN keys q ON t.store_id = q.i
WHERE q.g = 2 AND t.country = 'IT'
