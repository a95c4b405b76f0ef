-- Written by pytest --update-goldens from files/file_hints.toml; read the difference before you commit it.

-- case: a filter without a join
SELECT id, x FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x = 5

-- case: a filter with its sides exchanged, on an aliased table
SELECT c.id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/0|100|1')) OR typeof(`x`) <> 'int')) AS c WHERE 9 < c.x AND 15 > c.x

-- case: IN and BETWEEN
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/0|100|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x IN (1, 14L, 300) AND x BETWEEN 2 AND 20

-- case: strings and dates
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`d`) <> 'date' OR typeof(`s`) <> 'string')) AS clustered WHERE s >= 'x' OR d = DATE'2026-01-05'

-- case: decimals and booleans
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/0|100|1')) OR typeof(`c`) <> 'decimal(5,2)' OR typeof(`o`) <> 'boolean')) AS clustered WHERE c <= 14.25 AND o = FALSE

-- case: <=> with a value
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/0|100|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x <=> 14

-- case: a filter under NOT
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (101L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/1|101|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int')) AS skewed WHERE NOT (x = 10)

-- case: all but some values
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L, 101L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1', 'file:/skewed/1|101|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE x <> 20 AND y NOT IN ('a', 'b')

-- case: nulls alone
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/0|100|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x IS NULL OR x = 14

-- case: NOT over OR
SELECT id, x FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE NOT (x = 20 OR y = 'a')

-- case: NOT over AND is true where a part is false, also where another one is null
SELECT id, x, y FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE NOT (x = 10 AND y = 'a')

-- case: AND and OR within each other, under NOT
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE NOT (x <> 5 AND (d > DATE'2026-01-05' OR NOT x = 14 OR d IS NOT NULL))

-- case: a list of tuples
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (103L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/3|103|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE (x, y) IN ((10, 'b'), (20, 'c'))

-- case: NOT IN a list of tuples: structs with nulls are in none
SELECT id, x, y FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE (x, y) NOT IN ((10, 'a'), (20, 'c'))

-- case: one tuple, of which one part is not known
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (103L, 102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/3|103|1', 'file:/skewed/2|102|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE (y, x + 0, x) = ('b', 10, 10)

-- case: a number as text, where Spark casts the literal
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x = '5'

-- case: a list of numbers and texts, which Spark compares as numbers or as texts
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x IN (5, '7')

-- case: all but some numbers as texts
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1')) OR typeof(`x`) <> 'int')) AS skewed WHERE x NOT IN ('20', '-7')

-- case: a day as text
SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`d`) <> 'date')) AS clustered WHERE d = '2026-01-05'

-- case: one of two skewed columns: its files and others
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1')) OR typeof(`x`) <> 'int')) AS skewed WHERE x = 10

-- case: the other one
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1', 'file:/skewed/0|100|1')) OR typeof(`y`) <> 'string')) AS skewed WHERE y = 'b'

-- case: both skewed columns: one file
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (103L, 102L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/3|103|1', 'file:/skewed/2|102|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE x = 10 AND y = 'b'

-- case: pairs under OR stay pairs
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (103L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/3|103|1', 'file:/skewed/1|101|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) AS skewed WHERE (x = 10 AND y = 'a' AND id < 100) OR (x = 20 AND y = 'c')

-- case: a value that is not skewed: others alone
SELECT id FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L, 101L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1', 'file:/skewed/1|101|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int')) AS skewed WHERE x = 50

-- case: of a partition that is read, not of others
SELECT id FROM (SELECT * FROM parted WHERE ((_metadata.file_size NOT IN (101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/parted/1|101|1')) OR typeof(`p`) <> 'string' OR typeof(`x`) <> 'int')) AS parted WHERE p = 'a' AND x > 15

-- case: the ON of the side that is padded
SELECT s.g, c.id FROM small s LEFT JOIN (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) c ON s.x = c.id AND c.x = 5

-- case: an outer join made inner by the filter itself
SELECT s.g, c.id FROM small s LEFT JOIN (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) c ON s.x = c.id WHERE c.x = 5

-- case: keys of a join
-- key query: SELECT s.`x` AS key, typeof(s.`x`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [null, "int"]]
SELECT c.id FROM (SELECT * FROM clustered WHERE (`x` IN (5) OR typeof(`x`) <> 'int') AND ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) c JOIN small s ON c.x = s.x WHERE s.g = 1

-- case: keys of a wider integer type
-- key query: SELECT s.`b` AS key, typeof(s.`b`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g IN (1, 4)) LIMIT 5001
-- answer: [[5, "bigint"], [99999999999, "bigint"], [null, "bigint"]]
SELECT c.id FROM (SELECT * FROM clustered WHERE (`x` IN (5) OR typeof(`x`) <> 'int') AND ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) c JOIN small s ON c.x = s.b WHERE s.g IN (1, 4)

-- case: keys that match null
-- key query: SELECT s.`x` AS key, typeof(s.`x`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 4) LIMIT 5001
-- answer: [[null, "int"]]
SELECT c.id FROM (SELECT * FROM clustered WHERE (`x` IS NULL OR typeof(`x`) <> 'int') AND ((_metadata.file_size NOT IN (101L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/1|101|1', 'file:/clustered/0|100|1')) OR typeof(`x`) <> 'int')) c JOIN small s ON c.x <=> s.x WHERE s.g = 4

-- case: pairs of keys
-- key query: SELECT s.`x` AS key1, typeof(s.`x`) AS type1, s.`y` AS key2, typeof(s.`y`) AS type2 FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 2) LIMIT 5001
-- answer: [[10, "int", "a", "string"], [20, "int", "c", "string"]]
SELECT k.id FROM (SELECT * FROM skewed WHERE (`x` IN (10, 20) OR typeof(`x`) <> 'int') AND (`y` IN ('a', 'c') OR typeof(`y`) <> 'string') AND ((_metadata.file_size NOT IN (103L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/3|103|1', 'file:/skewed/1|101|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) k JOIN small s ON k.x = s.x AND k.y = s.y WHERE s.g = 2

-- case: keys of a partition column and another one, of which the other one tells files apart
-- key query: SELECT s.`x` AS key1, typeof(s.`x`) AS type1, s.`p` AS key2, typeof(s.`p`) AS type2 FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 3) AND (s.x < 10) LIMIT 5001
-- answer: [[1, "int", "a", "string"]]
SELECT f.id FROM (SELECT * FROM parted WHERE (`p` IN ('a') OR typeof(`p`) <> 'string') AND (`x` IN (1) OR typeof(`x`) <> 'int') AND ((_metadata.file_size NOT IN (103L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/parted/3|103|1')) OR typeof(`x`) <> 'int' OR typeof(`p`) <> 'string')) f JOIN small s ON f.x = s.x AND f.p = s.p WHERE s.g = 3 AND s.x < 10

-- case: keys and a filter together
-- key query: SELECT s.`x` AS key, typeof(s.`x`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 2) LIMIT 5001
-- answer: [[10, "int"], [20, "int"]]
SELECT k.id FROM (SELECT * FROM skewed WHERE (`x` IN (10, 20) OR typeof(`x`) <> 'int') AND ((_metadata.file_size NOT IN (101L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/1|101|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int' OR typeof(`y`) <> 'string')) k JOIN small s ON k.x = s.x WHERE s.g = 2 AND k.y = 'c'

-- case: a subquery behind IN
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT x FROM small WHERE g = 2) AS reducer(key1) LIMIT 5001
-- answer: [[10, "int"], [20, "int"]]
SELECT id FROM (SELECT * FROM clustered WHERE (`x` IN (10, 20) OR typeof(`x`) <> 'int') AND ((_metadata.file_size NOT IN (103L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/0|100|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x IN (SELECT x FROM small WHERE g = 2)

-- case: in a CTE and in a subquery that must not match
WITH some AS (SELECT id, x FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x < 9)
SELECT x FROM some WHERE NOT EXISTS (SELECT 1 FROM (SELECT * FROM skewed WHERE ((_metadata.file_size NOT IN (102L, 101L, 100L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/skewed/2|102|1', 'file:/skewed/1|101|1', 'file:/skewed/0|100|1')) OR typeof(`x`) <> 'int')) k WHERE k.x = 50 AND k.id = some.id)

-- case: a query that writes
INSERT INTO written SELECT id FROM (SELECT * FROM clustered WHERE ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) AS clustered WHERE x = 5
