-- Written by pytest --update-goldens from files/range_in.toml; read the difference before you commit it.

-- case: keys of a join
-- key query: SELECT s.`x` AS key, typeof(s.`x`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [null, "int"]]
SELECT c.id FROM (SELECT * FROM clustered WHERE (`x` IN (5) OR typeof(`x`) <> 'int') AND ((_metadata.file_size NOT IN (103L, 102L, 101L) OR unix_millis(_metadata.file_modification_time) NOT IN (1L) OR concat(_metadata.file_path, '|', CAST(_metadata.file_size AS STRING), '|', CAST(unix_millis(_metadata.file_modification_time) AS STRING)) NOT IN ('file:/clustered/3|103|1', 'file:/clustered/2|102|1', 'file:/clustered/1|101|1')) OR typeof(`x`) <> 'int')) c JOIN small s ON c.x = s.x WHERE s.g = 1

-- case: of pairs each column by itself, and no partition column with another
-- key query: SELECT s.`x` AS key1, typeof(s.`x`) AS type1, s.`p` AS key2, typeof(s.`p`) AS type2 FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 3) LIMIT 5001
-- answer: [[1, "int", "a", "string"], [18, "int", "b", "string"]]
SELECT f.id FROM (SELECT * FROM parted WHERE (`p` IN ('a', 'b') OR typeof(`p`) <> 'string') AND (`x` IN (1, 18) OR typeof(`x`) <> 'int')) f JOIN small s ON f.x = s.x AND f.p = s.p WHERE s.g = 3

-- case: Hive's format that Spark converts: row groups are skipped, and no file is named
-- key query: SELECT s.`x` AS key, typeof(s.`x`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [null, "int"]]
SELECT h.id FROM (SELECT * FROM in_hive WHERE (`x` IN (5) OR typeof(`x`) <> 'int')) h JOIN small s ON h.x = s.x WHERE s.g = 1

-- case: the same with partitions
-- key query: SELECT s.`x` AS key1, typeof(s.`x`) AS type1, s.`p` AS key2, typeof(s.`p`) AS type2 FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 3) LIMIT 5001
-- answer: [[1, "int", "a", "string"], [18, "int", "b", "string"]]
SELECT h.id FROM (SELECT * FROM in_hive_parted WHERE (`p` IN ('a', 'b') OR typeof(`p`) <> 'string') AND (`x` IN (1, 18) OR typeof(`x`) <> 'int')) h JOIN small s ON h.x = s.x AND h.p = s.p WHERE s.g = 3
