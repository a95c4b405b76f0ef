-- Written by pytest --update-goldens from probed.toml; read the difference before you commit it.

-- case: NOT EXISTS
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT d.ds FROM dates d
WHERE d.month = '2026-01' AND NOT EXISTS (SELECT 1 FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s WHERE s.ds = d.ds AND s.region = 'south')

-- case: EXISTS with an aggregate, under OR
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT d.ds, d.dow FROM dates d
WHERE d.year = 2026 AND (d.dow = 2 OR EXISTS (SELECT count(*) FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds = d.ds HAVING count(*) > 2))

-- case: a scalar subquery that is shown
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IN (2, 4)) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2030-01-01", "string"]]
SELECT d.ds, (SELECT sum(s.amount) FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2030-01-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds = d.ds) AS amount FROM dates d
WHERE d.dow IN (2, 4)

-- case: right of LEFT ANTI JOIN
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT d.ds FROM dates d LEFT ANTI JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s ON s.ds = d.ds AND s.region = 'south' WHERE d.year = 2026

-- case: right of LEFT SEMI JOIN, with <=>
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT d.ds FROM dates d LEFT SEMI JOIN (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR `ds` IS NULL) OR typeof(`ds`) <> 'string')) s ON s.ds <=> d.ds WHERE d.month = '2026-01'

-- case: a subquery in the ON of an inner join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT d.ds, t.store_id FROM stores t
JOIN dates d ON d.dow = t.store_id + 3 AND NOT EXISTS (SELECT 1 FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s WHERE s.ds = d.ds AND s.amount > 20)
WHERE d.month = '2026-01'

-- case: the filter on a neighbour of the outer row
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d JOIN offers o ON 'starpruner' IS NOT NULL WHERE 'starpruner' IS NOT NULL AND (o.ds = d.ds) AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"]]
SELECT d.ds FROM dates d JOIN offers o ON o.ds = d.ds
WHERE o.g = 1 AND NOT EXISTS (SELECT 1 FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds = d.ds AND s.amount > 20)

-- case: a total for each row, by LATERAL
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT d.ds, l.n FROM dates d, LATERAL (SELECT sum(amount) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds = d.ds) l WHERE d.dow = 4

-- case: rows for each row, by JOIN LATERAL with a condition
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IN (4, 5)) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT d.ds, l.id FROM dates d JOIN LATERAL (SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s WHERE d.ds = s.ds AND s.amount > 10) l ON l.id > 1
WHERE d.dow IN (4, 5)

-- case: rows without any, by LEFT JOIN LATERAL, whose condition pads the others
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT d.ds, l.n FROM dates d LEFT JOIN LATERAL (SELECT count(*) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s WHERE s.ds = d.ds) l ON d.dow = 4
