-- Written by pytest --update-goldens from files/buckets.toml; read the difference before you commit it.

-- case: a few keys
-- key query: SELECT s.`x` AS key, typeof(s.`x`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g IN (1, 2)) LIMIT 5001
-- answer: [[10, "int"], [20, "int"], [5, "int"], [null, "int"]]
SELECT b.id FROM (SELECT * FROM bucketed WHERE (`k` IN (5, 10, 20) OR typeof(`k`) <> 'int')) b JOIN small s ON b.k = s.x WHERE s.g IN (1, 2)

-- case: a key that matches null
-- key query: SELECT s.`x` AS key, typeof(s.`x`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [null, "int"]]
SELECT b.id FROM (SELECT * FROM bucketed WHERE (`k` IN (5) OR `k` IS NULL OR typeof(`k`) <> 'int')) b JOIN small s ON b.k <=> s.x WHERE s.g = 1
