-- Written by pytest --update-goldens from composite.toml; read the difference before you commit it.

-- case: two columns of one dimension
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN offers o ON s.ds = o.ds AND s.region = o.region WHERE o.g = 1

-- case: using
-- key query: SELECT offers.`region` AS key1, typeof(offers.`region`) AS type1, offers.`ds` AS key2, typeof(offers.`ds`) AS type2 FROM offers WHERE 'starpruner' IS NOT NULL AND (offers.g = 1) LIMIT 5001
-- answer: [["east", "string", "2026-02-01", "string"], ["north", "string", "2026-01-01", "string"], ["north", "string", null, "string"], ["south", "string", "2026-01-02", "string"], [null, "string", "2026-01-01", "string"], [null, "string", "2026-01-03", "string"]]
SELECT * FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`region`) <> 'string' OR typeof(`ds`) <> 'string')) AS sales JOIN offers USING (region, ds) WHERE offers.g = 1

-- case: pairs that are every combination
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 2) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", "south", "string"], ["2026-01-02", "string", "north", "string"], ["2026-01-02", "string", "south", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-01', '2026-01-02') AND `region` IN ('north', 'south')) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s, offers o WHERE s.ds = o.ds AND o.region = s.region AND o.g = 2

-- case: tuples in a subquery
-- key query: SELECT reducer.key1 AS key1, typeof(reducer.key1) AS type1, reducer.key2 AS key2, typeof(reducer.key2) AS type2 FROM (SELECT o.ds, o.region FROM offers o WHERE o.g = 1) AS reducer(key1, key2) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s WHERE (s.ds, s.region) IN (SELECT o.ds, o.region FROM offers o WHERE o.g = 1)

-- case: a tuple of which one column is no partition column
-- key query: SELECT reducer.key2 AS key, typeof(reducer.key2) AS type FROM (SELECT o.g, o.region FROM offers o WHERE o.g = 1) AS reducer(key1, key2) LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], ["south", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`region` IN ('east', 'north', 'south') OR typeof(`region`) <> 'string')) s WHERE (s.id, s.region) IN (SELECT o.g, o.region FROM offers o WHERE o.g = 1)

-- case: exists with two equalities
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s WHERE EXISTS (SELECT 1 FROM offers o WHERE o.ds = s.ds AND o.region = s.region AND o.g = 1)

-- case: one column compared twice
-- key query: SELECT o.`ds` AS key1, typeof(o.`ds`) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", null, "string"], ["2026-01-02", "string", "south", "string"], ["2026-01-03", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"]]
-- key query: SELECT o.`day` AS key, typeof(o.`day`) AS type FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-05", "string"], ["2026-02-02", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN offers o ON s.ds = o.ds AND s.region = o.region AND s.ds = o.day WHERE o.g = 1

-- case: columns of two dimensions are not paired
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
-- key query: SELECT t.`region` AS key, typeof(t.`region`) AS type FROM stores t WHERE 'starpruner' IS NOT NULL AND (t.country = 'NO') LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], [null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE ((`ds` IN ('2026-01-02') AND `region` IN ('east', 'north')) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN dates d ON s.ds = d.ds JOIN stores t ON s.region = t.region
WHERE d.dow = 5 AND t.country = 'NO'

-- case: an expression and a column
-- key query: SELECT concat(substr(o.day, 1, 8), '01') AS key1, typeof(concat(substr(o.day, 1, 8), '01')) AS type1, o.`region` AS key2, typeof(o.`region`) AS type2 FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001
-- answer: [["2026-01-01", "string", "north", "string"], ["2026-01-01", "string", "south", "string"], ["2026-01-01", "string", null, "string"], ["2026-02-01", "string", "east", "string"], [null, "string", "north", "string"], [null, "string", null, "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north', 'south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`ds`) <> 'string' OR typeof(`region`) <> 'string')) s JOIN offers o ON s.ds = concat(substr(o.day, 1, 8), '01') AND s.region = o.region
WHERE o.g = 1
