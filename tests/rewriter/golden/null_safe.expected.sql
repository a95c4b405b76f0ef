-- Written by pytest --update-goldens from null_safe.toml; read the difference before you commit it.

-- case: null among the keys
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR `ds` IS NULL) OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds <=> d.ds WHERE d.month = '2026-01'

-- case: null is the only key
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IS NULL) LIMIT 5001
-- answer: [[null, "string"]]
SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IS NULL OR typeof(`ds`) <> 'string')) s JOIN dates d ON d.ds <=> s.ds WHERE d.dow IS NULL

-- case: no null among the keys
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds <=> d.ds WHERE d.dow = 5

-- case: the fact on the null-supplying side
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT d.dow, s.id FROM dates d LEFT JOIN (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR `ds` IS NULL) OR typeof(`ds`) <> 'string')) s ON s.ds <=> d.ds AND d.month = '2026-01'

-- case: one column of a pair
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND (`region` IN ('north') OR `region` IS NULL)) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-01-03') AND `region` IS NULL) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN offers o ON s.ds = o.ds AND s.region <=> o.region WHERE o.g = 1

-- case: exists
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR `ds` IS NULL) OR typeof(`ds`) <> 'string')) s WHERE EXISTS (SELECT 1 FROM dates d WHERE d.ds <=> s.ds AND d.month = '2026-01')

-- case: spelled without <=>, as Power BI writes it
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IS NULL) LIMIT 5001
-- answer: [[null, "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR `ds` IS NULL) OR typeof(`ds`) <> 'string')) s JOIN dates d ON (s.ds = d.ds OR (s.ds IS NULL AND d.ds IS NULL)) WHERE d.month = '2026-01'
UNION ALL SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN dates d ON (d.ds IS NULL AND s.ds IS NULL) OR s.ds = d.ds WHERE d.dow = 5
UNION ALL SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IS NULL OR typeof(`ds`) <> 'string')) s, dates d WHERE (d.ds = s.ds OR s.ds IS NULL AND d.ds IS NULL) AND d.dow IS NULL

-- case: IS NOT DISTINCT FROM, and its negation negated
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow IS NULL) LIMIT 5001
-- answer: [[null, "string"]]
SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR `ds` IS NULL) OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds IS NOT DISTINCT FROM d.ds WHERE d.month = '2026-01'
UNION ALL SELECT s.id, s.ds FROM (SELECT * FROM sales WHERE (`ds` IS NULL OR typeof(`ds`) <> 'string')) s JOIN dates d ON NOT (s.ds IS DISTINCT FROM d.ds) WHERE d.dow IS NULL

-- case: spelled without <=> for each column of a pair
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IS NULL AND `region` IN ('north')) OR (`ds` IN ('2026-01-01') AND (`region` IN ('north') OR `region` IS NULL)) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-01-03') AND `region` IS NULL) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN offers o
  ON (s.ds = o.ds OR (s.ds IS NULL AND o.ds IS NULL)) AND (s.region = o.region OR (s.region IS NULL AND o.region IS NULL))
WHERE o.g = 1

-- case: spelled without <=> in EXISTS
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03') OR `ds` IS NULL) OR typeof(`ds`) <> 'string')) s
WHERE EXISTS (SELECT 1 FROM dates d WHERE (d.ds = s.ds OR (d.ds IS NULL AND s.ds IS NULL)) AND d.month = '2026-01')
