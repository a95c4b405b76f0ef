-- Written by pytest --update-goldens from types.toml; read the difference before you commit it.

-- case: int
-- key query: SELECT q.`i` AS key, typeof(q.`i`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[-2147483648, "int"], [1, "int"], [7, "int"], [null, "int"]]
SELECT f.id FROM (SELECT * FROM by_int WHERE (`k` IN (-2147483648, 1, 7) OR typeof(`k`) <> 'int')) f JOIN keys q ON f.k = q.i WHERE q.g = 1

-- case: tinyint
-- key query: SELECT q.`t` AS key, typeof(q.`t`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[-128, "tinyint"], [1, "tinyint"], [7, "tinyint"], [null, "tinyint"]]
SELECT f.id FROM (SELECT * FROM by_tinyint WHERE (`k` IN (-128Y, 1Y, 7Y) OR typeof(`k`) <> 'tinyint')) f JOIN keys q ON f.k = q.t WHERE q.g = 1

-- case: smallint
-- key query: SELECT q.`h` AS key, typeof(q.`h`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[-32768, "smallint"], [1, "smallint"], [7, "smallint"], [null, "smallint"]]
SELECT f.id FROM (SELECT * FROM by_smallint WHERE (`k` IN (-32768S, 1S, 7S) OR typeof(`k`) <> 'smallint')) f JOIN keys q ON f.k = q.h WHERE q.g = 1

-- case: bigint
-- key query: SELECT q.`b` AS key, typeof(q.`b`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[-9223372036854775808, "bigint"], [1, "bigint"], [7, "bigint"], [null, "bigint"]]
SELECT f.id FROM (SELECT * FROM by_bigint WHERE (`k` IN (-9223372036854775808L, 1L, 7L) OR typeof(`k`) <> 'bigint')) f JOIN keys q ON f.k = q.b WHERE q.g = 1

-- case: date
-- key query: SELECT unix_date(q.`d`) AS key, typeof(q.`d`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[-719162, "date"], [20454, "date"], [22280, "date"], [null, "date"]]
SELECT f.id FROM (SELECT * FROM by_date WHERE (`k` IN (DATE'0001-01-01', DATE'2026-01-01', DATE'2031-01-01') OR typeof(`k`) <> 'date')) f JOIN keys q ON f.k = q.d WHERE q.g = 1

-- case: boolean
-- key query: SELECT q.`o` AS key, typeof(q.`o`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[null, "boolean"], [true, "boolean"]]
SELECT f.id FROM (SELECT * FROM by_boolean WHERE (`k` IN (TRUE) OR typeof(`k`) <> 'boolean')) f JOIN keys q ON f.k = q.o WHERE q.g = 1

-- case: decimal of equal precision and scale
-- key query: SELECT q.`c` AS key, typeof(q.`c`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [["-999.99", "decimal(5,2)"], ["1.00", "decimal(5,2)"], ["7.00", "decimal(5,2)"], [null, "decimal(5,2)"]]
SELECT f.id FROM (SELECT * FROM by_decimal WHERE (`k` IN (CAST('-999.99' AS DECIMAL(5,2)), CAST('1.00' AS DECIMAL(5,2)), CAST('7.00' AS DECIMAL(5,2))) OR typeof(`k`) <> 'decimal(5,2)')) f JOIN keys q ON f.k = q.c WHERE q.g = 1

-- case: string, with quotes, backslashes, other scripts and what substitution would read
-- key query: SELECT q.`s` AS key, typeof(q.`s`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [["a'b", "string"], ["${x}", "string"], ["1", "string"], ["a b/c=d%e", "string"], ["back\\slash", "string"], ["é中😀", "string"]]
SELECT f.id FROM (SELECT * FROM by_string WHERE (array_contains(array(CAST(X'247B787D' AS STRING), '1', 'a b/c=d%e', CAST(X'612762' AS STRING), CAST(X'6261636B5C736C617368' AS STRING), 'é中😀'), `k`) OR typeof(`k`) <> 'string' OR length(`k`) < 0)) f JOIN keys q ON f.k = q.s WHERE q.g = 1

-- case: int against bigint: keys that do not fit are dropped
-- key query: SELECT q.`b` AS key, typeof(q.`b`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[-9223372036854775808, "bigint"], [1, "bigint"], [7, "bigint"], [null, "bigint"]]
SELECT f.id FROM (SELECT * FROM by_int WHERE (`k` IN (1, 7) OR typeof(`k`) <> 'int')) f JOIN keys q ON f.k = q.b WHERE q.g = 1

-- case: bigint against smallint
-- key query: SELECT q.`h` AS key, typeof(q.`h`) AS type FROM keys q WHERE 'starpruner' IS NOT NULL AND (q.g = 1) LIMIT 5001
-- answer: [[-32768, "smallint"], [1, "smallint"], [7, "smallint"], [null, "smallint"]]
SELECT f.id FROM (SELECT * FROM by_bigint WHERE (`k` IN (-32768L, 1L, 7L) OR typeof(`k`) <> 'bigint')) f JOIN keys q ON f.k = q.h WHERE q.g = 1
