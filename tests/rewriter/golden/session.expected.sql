-- Written by pytest --update-goldens from session.toml; read the difference before you commit it.

-- case: a session function in a filter
-- key query: (SELECT d.`ds` AS key, typeof(d.`ds`) AS type, current_database() AS current_database_assumed FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month <> current_database()) AND (d.dow = 5) LIMIT 5001) UNION ALL SELECT NULL, NULL, current_database()
-- answer: [["2026-01-02", "string", "golden"], [null, null, "golden"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-02') OR typeof(`ds`) <> 'string' OR current_database() <> 'golden')) s JOIN dates d ON s.ds = d.ds WHERE d.month <> current_database() AND d.dow = 5

-- case: no key found
-- key query: (SELECT d.`ds` AS key, typeof(d.`ds`) AS type, current_schema() AS current_schema_assumed FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.month = current_schema()) LIMIT 5001) UNION ALL SELECT NULL, NULL, current_schema()
-- answer: [[null, null, "golden"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (FALSE OR current_schema() <> 'golden')) s JOIN dates d ON s.ds = d.ds WHERE d.month = current_schema()

-- case: inside a derived table, with a comment before the parenthesis
-- key query: (SELECT `d`.`ds` AS key, typeof(`d`.`ds`) AS type, current_catalog() AS current_catalog_assumed FROM (SELECT ds FROM dates WHERE month < current_catalog /* its name */ ()) AS `d` LIMIT 5001) UNION ALL SELECT NULL, NULL, current_catalog()
-- answer: [["it's", "string", "spark_catalog"], ["2026-01-01", "string", "spark_catalog"], ["2026-01-02", "string", "spark_catalog"], ["2026-01-03", "string", "spark_catalog"], ["2026-02-01", "string", "spark_catalog"], ["2030-01-01", "string", "spark_catalog"], [null, "string", "spark_catalog"], [null, null, "spark_catalog"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01', '2030-01-01', CAST(X'69742773' AS STRING)) OR typeof(`ds`) <> 'string' OR current_catalog() <> 'spark_catalog')) s
JOIN (SELECT ds FROM dates WHERE month < current_catalog /* its name */ ()) d ON s.ds = d.ds

-- case: in the key itself
-- key query: (SELECT replace(o.region, current_database(), 'x') AS key1, typeof(replace(o.region, current_database(), 'x')) AS type1, o.`ds` AS key2, typeof(o.`ds`) AS type2, current_database() AS current_database_assumed FROM offers o WHERE 'starpruner' IS NOT NULL AND (o.g = 1) LIMIT 5001) UNION ALL SELECT NULL, NULL, NULL, NULL, current_database()
-- answer: [["east", "string", "2026-02-01", "string", "golden"], ["north", "string", "2026-01-01", "string", "golden"], ["north", "string", null, "string", "golden"], ["south", "string", "2026-01-02", "string", "golden"], [null, "string", "2026-01-01", "string", "golden"], [null, "string", "2026-01-03", "string", "golden"], [null, null, null, null, "golden"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (((`ds` IN ('2026-01-01') AND `region` IN ('north')) OR (`ds` IN ('2026-01-02') AND `region` IN ('south')) OR (`ds` IN ('2026-02-01') AND `region` IN ('east'))) OR typeof(`region`) <> 'string' OR typeof(`ds`) <> 'string' OR current_database() <> 'golden')) s JOIN offers o ON s.region = replace(o.region, current_database(), 'x') AND s.ds = o.ds
WHERE o.g = 1

-- case: the day of the clock
-- key query: (SELECT d.`ds` AS key, typeof(d.`ds`) AS type, unix_date(current_date()) AS current_date_assumed FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.year < year(now())) AND (d.ds <= CAST(date_sub(Current_Timestamp ( ), 1) AS STRING)) LIMIT 5001) UNION ALL SELECT NULL, NULL, unix_date(current_date())
-- answer: [[null, null, 20786]]
SELECT s.id FROM (SELECT * FROM sales WHERE (FALSE OR current_date() <> DATE'2026-11-29')) s JOIN dates d ON s.ds = d.ds
WHERE d.year < year(now()) AND d.ds <= CAST(date_sub(Current_Timestamp ( ), 1) AS STRING)

-- case: the day that the clock is cast to
-- key query: (SELECT d.`ds` AS key, typeof(d.`ds`) AS type, unix_date(current_date()) AS current_date_assumed FROM dates d WHERE 'starpruner' IS NOT NULL AND (d.ds <= CAST(CAST(now ( ) AS DATE) AS STRING)) LIMIT 5001) UNION ALL SELECT NULL, NULL, unix_date(current_date())
-- answer: [["2026-01-01", "string", 20786], ["2026-01-02", "string", 20786], ["2026-01-03", "string", 20786], ["2026-02-01", "string", 20786], [null, null, 20786]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02', '2026-01-03', '2026-02-01') OR typeof(`ds`) <> 'string' OR current_date() <> DATE'2026-11-29')) s JOIN dates d ON s.ds = d.ds WHERE d.ds <= CAST(CAST(now ( ) AS DATE) AS STRING)

-- case: a column with the name of a session function
-- key query: SELECT c.`ds` AS key, typeof(c.`ds`) AS type FROM clocks c WHERE 'starpruner' IS NOT NULL AND (c.user = 'me') LIMIT 5001
-- answer: [["2026-01-01", "string"], ["2026-01-02", "string"]]
SELECT s.id FROM (SELECT * FROM sales WHERE (`ds` IN ('2026-01-01', '2026-01-02') OR typeof(`ds`) <> 'string')) s JOIN clocks c ON s.ds = c.ds WHERE c.user = 'me'
