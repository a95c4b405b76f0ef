-- Written by pytest --update-goldens from metastore.toml; read the difference before you commit it.

-- case: a partition column whose name begins with an underscore
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT f.id FROM (SELECT * FROM odd WHERE (array_contains(array('2026-01-01', '2026-01-02', '2026-01-03'), `_ds`) OR typeof(`_ds`) <> 'string')) f JOIN dates d ON f._ds = d.ds WHERE d.month = '2026-01'

-- case: a partition column that is named like a keyword of the filter's, with null
-- key query: SELECT p.`number` AS key, typeof(p.`number`) AS type FROM paths p WHERE 'starpruner' IS NOT NULL AND (p.g = 1) LIMIT 5001
-- answer: [[1, "int"], [2, "int"], [null, "int"]]
SELECT f.id FROM (SELECT * FROM odd WHERE (array_contains(array(TRUE), (`in` BETWEEN 1 AND 2 OR `in` IS NULL)) OR typeof(`in`) <> 'int')) f JOIN paths p ON f.`in` <=> p.number WHERE p.g = 1

-- case: two such columns together
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 4) LIMIT 5001
-- answer: [["2026-01-01", "string"]]
-- key query: SELECT p.`number` AS key, typeof(p.`number`) AS type FROM paths p WHERE 'starpruner' IS NOT NULL AND (p.g = 1) LIMIT 5001
-- answer: [[1, "int"], [2, "int"], [null, "int"]]
SELECT f.id FROM (SELECT * FROM odd WHERE ((array_contains(array(1, 2), `in`) AND array_contains(array('2026-01-01'), `_ds`)) OR typeof(`_ds`) <> 'string' OR typeof(`in`) <> 'int')) f JOIN dates d JOIN paths p ON f._ds = d.ds AND f.`in` = p.number WHERE d.dow = 4 AND p.g = 1

-- case: a view that gives such a column another name
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = '2026-01') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"], ["2026-01-03", "string"], [null, "string"]]
SELECT f.id FROM (SELECT * FROM odd_renamed WHERE (array_contains(array('2026-01-01', '2026-01-02', '2026-01-03'), `day`) OR typeof(`day`) <> 'string')) f JOIN dates d ON f.day = d.ds WHERE d.month = '2026-01'

-- case: another table's column of such a name, for which Spark infers the same
-- key query: SELECT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.dow = 5) LIMIT 5001
-- answer: [["2026-01-02", "string"]]
SELECT s.id, o.id FROM (SELECT * FROM sales WHERE (array_contains(array('2026-01-02'), `ds`) OR typeof(`ds`) <> 'string')) s JOIN dates d ON s.ds = d.ds LEFT JOIN (SELECT * FROM odd WHERE (array_contains(array('2026-01-02'), `_ds`) OR typeof(`_ds`) <> 'string')) o ON o._ds = s.ds WHERE d.dow = 5

-- case: a key that ends in a backslash, beside a filter on another partition column
-- key query: SELECT p.`path` AS key, typeof(p.`path`) AS type FROM paths p WHERE 'starpruner' IS NOT NULL AND (p.number = 1) LIMIT 5001
-- answer: [["x\\", "string"]]
SELECT f.id FROM (SELECT * FROM by_path WHERE (array_contains(array(CAST(X'785C' AS STRING)), `path`) OR typeof(`path`) <> 'string')) f JOIN paths p ON f.path = p.path WHERE p.number = 1 AND f.kind = 'dir'

-- case: a key with both quotes
-- key query: SELECT p.`path` AS key, typeof(p.`path`) AS type FROM paths p WHERE 'starpruner' IS NOT NULL AND (p.g = 2) LIMIT 5001
-- answer: [["a\"b'c", "string"]]
SELECT f.id FROM (SELECT * FROM by_path WHERE (array_contains(array(CAST(X'6122622763' AS STRING)), `path`) OR typeof(`path`) <> 'string')) f JOIN paths p ON f.path = p.path WHERE p.g = 2

-- case: keys and names that a filter can say, in tables like those
-- key query: SELECT s.`region` AS key, typeof(s.`region`) AS type FROM stores s WHERE 'starpruner' IS NOT NULL AND (s.country = 'NO') LIMIT 5001
-- answer: [["east", "string"], ["north", "string"], [null, "string"]]
SELECT f.id FROM (SELECT * FROM by_path WHERE (`kind` IN ('east', 'north') OR typeof(`kind`) <> 'string')) f JOIN stores s ON f.kind = s.region WHERE s.country = 'NO'
