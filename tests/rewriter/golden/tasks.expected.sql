-- Written by pytest --update-goldens from tasks.toml; read the difference before you commit it.

-- case: chance without a seed
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01' AND rand() >= 0 AND uuid() IS NOT NULL

-- case: names that are no calls
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.rand, s.spark_partition_id FROM (SELECT id AS rand, ds, amount AS spark_partition_id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) AS sales) s
  JOIN dates d ON s.ds = d.ds WHERE d.dow = 5
