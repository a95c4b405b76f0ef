-- Written by pytest --update-goldens from nulls.toml; read the difference before you commit it.

-- case: a null key is dropped, and the null partition with it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.year = 2026

-- case: an empty small table
-- key query: SELECT n.`ds` AS key, typeof(n.`ds`) AS type FROM nothing n WHERE 'starpruner' IS NOT NULL AND (n.g = 1) LIMIT 5001
-- answer: []
SELECT s.id FROM (SELECT * FROM sales WHERE FALSE) s JOIN nothing n ON s.ds = n.ds WHERE n.g = 1

-- case: only null keys
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IS NULL) LIMIT 5001
-- answer: [[null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE FALSE) s JOIN dates d ON s.ds = d.ds WHERE d.dow IS NULL

-- case: an aggregate over nothing still has its row
-- key query: SELECT n.`ds` AS key, typeof(n.`ds`) AS type FROM nothing n WHERE 'starpruner' IS NOT NULL AND (n.g = 1) LIMIT 5001
-- answer: []
SELECT count(*) AS n, max(s.id) AS m FROM (SELECT * FROM sales WHERE FALSE) s JOIN nothing n ON s.ds = n.ds WHERE n.g = 1
