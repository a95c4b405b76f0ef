-- Written by pytest --update-goldens from outer_joins.toml; read the difference before you commit it.

-- case: the fact null-supplying in a LEFT JOIN
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT d.ds, s.id FROM dates d LEFT JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s ON s.ds = d.ds WHERE d.dow = 5

-- case: the fact null-supplying in a RIGHT JOIN, filtered in ON
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT d.ds, s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s RIGHT OUTER JOIN dates d ON s.ds = d.ds AND d.dow = 5

-- case: left semi join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT SEMI JOIN dates d ON s.ds = d.ds AND d.dow = 5

-- case: an outer join below the fact's inner join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, t.country, d.dow FROM stores t LEFT JOIN (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s ON t.region = s.region JOIN dates d ON s.ds = d.ds
WHERE d.dow = 5

-- case: an equality in WHERE over an outer join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, d.dow FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s FULL JOIN dates d ON s.ds = d.ds WHERE s.ds = d.ds AND d.dow = 5

-- case: under a preserved side, filtered above it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, t.country FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds LEFT JOIN stores t ON s.region = t.region AND t.country = 'NO'
WHERE d.dow = 5

-- case: a filter above a null-supplying join is left out
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year = 2026) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], ["2026-02-01", "string"], [null, "string"]]
SELECT t.store_id, s.id, d.dow
FROM stores t LEFT JOIN ((SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds AND d.year = 2026) ON t.region = s.region
WHERE coalesce(d.dow, 5) = 5

-- case: filters below and beside, in the ON of the join that pads
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT t.store_id, s.id
FROM stores t LEFT JOIN ((SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds) ON t.region = s.region AND d.dow = 5

-- case: above an anti join
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s LEFT ANTI JOIN stores t ON s.region = t.region AND t.country = 'IT' JOIN dates d ON s.ds = d.ds
WHERE d.dow = 4

-- case: both facts of a FULL JOIN by USING
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT ds, s.id, t.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s FULL JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t USING (ds) JOIN dates d USING (ds) WHERE d.dow = 4

-- case: both facts of a FULL JOIN by coalesce
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT d.ds, s.id, t.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s FULL JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t ON s.ds = t.ds AND s.region = t.region
JOIN dates d ON d.ds = coalesce(t.ds, s.ds) WHERE d.dow = 4

-- case: by two columns of a FULL JOIN, as pairs
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
SELECT ds, region, s.id, t.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s FULL JOIN (SELECT * FROM sales_2025 WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) t USING (ds, region) JOIN offers o USING (ds, region)
WHERE o.g = 1

-- case: daily totals that a FULL JOIN pairs, in a derived table
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT x.day, x.n, x.m FROM (SELECT coalesce(a.ds, b.ds) AS day, a.n, b.m
  FROM (SELECT ds, sum(amount) AS n FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales GROUP BY ds) a
  FULL JOIN (SELECT ds, count(*) AS m FROM (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) AS sales_2025 GROUP BY ds) b ON a.ds = b.ds) x
JOIN dates d ON x.day = d.ds WHERE d.dow = 4

-- case: the column that USING shows, in a derived table
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT ds FROM dates WHERE dow = 4) AS reducer(key1) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
SELECT x.ds, x.a, x.b FROM (SELECT ds, max(s.id) AS a, max(t.id) AS b
  FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) s FULL JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01') OR typeof(`ds`) <> 'string')) t USING (ds) GROUP BY ds) x
WHERE x.ds IN (SELECT ds FROM dates WHERE dow = 4)

-- case: rows without a partner, by coalesce
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IN (4, 5)) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT d.ds, s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s LEFT JOIN (SELECT * FROM sales_2025 WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) t ON s.ds = t.ds JOIN dates d ON d.ds = coalesce(s.ds, t.ds)
WHERE d.dow IN (4, 5) AND t.id IS NULL
