-- Written by pytest --update-goldens from iceberg/times.toml; read the difference before you commit it.

-- case: instants
-- key query: SELECT unix_micros(s.`at`) AS key, typeof(s.`at`) AS type FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[1767528000000000, "timestamp"], [1767528000000001, "timestamp"], [1767830400000000, "timestamp"], [null, "timestamp"]]
SELECT t.id FROM (SELECT * FROM timed WHERE ((`at` IN (TIMESTAMP'2026-01-08 00:00:00.000000+00:00') OR `at` BETWEEN TIMESTAMP'2026-01-04 12:00:00.000000+00:00' AND TIMESTAMP'2026-01-04 12:00:00.000001+00:00') OR typeof(`at`) <> 'timestamp')) t JOIN moments s ON t.at = s.at WHERE s.g = 1

-- case: local times
-- key query: SELECT CAST(s.`local` AS STRING) AS key, typeof(s.`local`) AS type FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [["2026-01-04 12:00:00", "timestamp_ntz"], ["2026-01-04 12:00:00.000001", "timestamp_ntz"], ["2026-01-08 00:00:00", "timestamp_ntz"], [null, "timestamp_ntz"]]
SELECT t.id FROM (SELECT * FROM timed WHERE ((`local` IN (TIMESTAMP_NTZ'2026-01-08 00:00:00.000000') OR `local` BETWEEN TIMESTAMP_NTZ'2026-01-04 12:00:00.000000' AND TIMESTAMP_NTZ'2026-01-04 12:00:00.000001') OR typeof(`local`) <> 'timestamp_ntz')) t JOIN moments s ON t.local = s.local WHERE s.g = 1

-- case: null matches null
-- key query: SELECT unix_micros(s.`at`) AS key, typeof(s.`at`) AS type FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[1767528000000000, "timestamp"], [1767528000000001, "timestamp"], [1767830400000000, "timestamp"], [null, "timestamp"]]
SELECT t.id FROM (SELECT * FROM timed WHERE ((`at` IN (TIMESTAMP'2026-01-08 00:00:00.000000+00:00') OR `at` BETWEEN TIMESTAMP'2026-01-04 12:00:00.000000+00:00' AND TIMESTAMP'2026-01-04 12:00:00.000001+00:00' OR `at` IS NULL) OR typeof(`at`) <> 'timestamp')) t JOIN moments s ON t.at <=> s.at WHERE s.g = 1

-- case: days of instants
-- key query: SELECT unix_micros(date_trunc('DAY', date_add(key, 0))) AS begins, typeof(key) AS type, unix_micros(date_trunc('DAY', date_add(key, 1))) AS next_begins, unix_micros(date_trunc('DAY', date_add(key, 2))) AS following_begins, current_timezone() AS current_timezone_assumed FROM (SELECT DISTINCT s.`day` AS key FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1)) WHERE key IS NOT NULL LIMIT 5001
-- answer: [[1767484800000000, "date", 1767571200000000, 1767657600000000, "UTC"], [1767830400000000, "date", 1767916800000000, 1768003200000000, "UTC"]]
SELECT t.id FROM (SELECT * FROM timed WHERE ((`at` BETWEEN TIMESTAMP'2026-01-04 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-04 23:59:59.999999+00:00' OR `at` BETWEEN TIMESTAMP'2026-01-08 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-08 23:59:59.999999+00:00') OR typeof(`at`) <> 'timestamp' OR current_timezone() <> 'UTC')) t JOIN moments s ON CAST(t.at AS DATE) = s.day WHERE s.g = 1

-- case: days of local times
-- key query: SELECT (greatest(least(unix_date(key), 2932898), -25204) + 0L) * 86400000000L AS begins, typeof(key) AS type, (greatest(least(unix_date(key), 2932898), -25204) + 1L) * 86400000000L AS next_begins, (greatest(least(unix_date(key), 2932898), -25204) + 2L) * 86400000000L AS following_begins FROM (SELECT DISTINCT s.`day` AS key FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1)) WHERE key IS NOT NULL LIMIT 5001
-- answer: [[1767484800000000, "date", 1767571200000000, 1767657600000000], [1767830400000000, "date", 1767916800000000, 1768003200000000]]
SELECT t.id FROM (SELECT * FROM timed WHERE ((`local` BETWEEN TIMESTAMP_NTZ'2026-01-04 00:00:00.000000' AND TIMESTAMP_NTZ'2026-01-04 23:59:59.999999' OR `local` BETWEEN TIMESTAMP_NTZ'2026-01-08 00:00:00.000000' AND TIMESTAMP_NTZ'2026-01-08 23:59:59.999999') OR typeof(`local`) <> 'timestamp_ntz')) t JOIN moments s ON s.day = t.local::date WHERE s.g = 1

-- case: a day that is computed
-- key query: SELECT unix_micros(date_trunc('DAY', date_add(key, 0))) AS begins, typeof(key) AS type, unix_micros(date_trunc('DAY', date_add(key, 1))) AS next_begins, unix_micros(date_trunc('DAY', date_add(key, 2))) AS following_begins, current_timezone() AS current_timezone_assumed FROM (SELECT DISTINCT date_add(s.day, 1) AS key FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1)) WHERE key IS NOT NULL LIMIT 5001
-- answer: [[1767571200000000, "date", 1767657600000000, 1767744000000000, "UTC"], [1767916800000000, "date", 1768003200000000, 1768089600000000, "UTC"]]
SELECT t.id FROM (SELECT * FROM timed WHERE ((`at` BETWEEN TIMESTAMP'2026-01-05 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-05 23:59:59.999999+00:00' OR `at` BETWEEN TIMESTAMP'2026-01-09 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-09 23:59:59.999999+00:00') OR typeof(`at`) <> 'timestamp' OR current_timezone() <> 'UTC')) t JOIN moments s ON CAST(t.at AS DATE) = date_add(s.day, 1) WHERE s.g = 1

-- case: a day and a time together
-- key query: SELECT CAST(s.`local` AS STRING) AS key, typeof(s.`local`) AS type FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [["2026-01-04 12:00:00", "timestamp_ntz"], ["2026-01-04 12:00:00.000001", "timestamp_ntz"], ["2026-01-08 00:00:00", "timestamp_ntz"], [null, "timestamp_ntz"]]
-- key query: SELECT unix_micros(date_trunc('DAY', date_add(key, 0))) AS begins, typeof(key) AS type, unix_micros(date_trunc('DAY', date_add(key, 1))) AS next_begins, unix_micros(date_trunc('DAY', date_add(key, 2))) AS following_begins, current_timezone() AS current_timezone_assumed FROM (SELECT DISTINCT s.`day` AS key FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 1)) WHERE key IS NOT NULL LIMIT 5001
-- answer: [[1767484800000000, "date", 1767571200000000, 1767657600000000, "UTC"], [1767830400000000, "date", 1767916800000000, 1768003200000000, "UTC"]]
SELECT t.id FROM (SELECT * FROM timed WHERE (((`at` BETWEEN TIMESTAMP'2026-01-04 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-04 23:59:59.999999+00:00' OR `at` BETWEEN TIMESTAMP'2026-01-08 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-08 23:59:59.999999+00:00') AND (`local` IN (TIMESTAMP_NTZ'2026-01-08 00:00:00.000000') OR `local` BETWEEN TIMESTAMP_NTZ'2026-01-04 12:00:00.000000' AND TIMESTAMP_NTZ'2026-01-04 12:00:00.000001')) OR typeof(`local`) <> 'timestamp_ntz' OR typeof(`at`) <> 'timestamp' OR current_timezone() <> 'UTC')) t JOIN moments s ON CAST(t.at AS DATE) = s.day AND t.local = s.local WHERE s.g = 1

-- case: no day
-- key query: SELECT unix_micros(date_trunc('DAY', date_add(key, 0))) AS begins, typeof(key) AS type, unix_micros(date_trunc('DAY', date_add(key, 1))) AS next_begins, unix_micros(date_trunc('DAY', date_add(key, 2))) AS following_begins, current_timezone() AS current_timezone_assumed FROM (SELECT DISTINCT s.`day` AS key FROM moments s WHERE 'starpruner' IS NOT NULL AND (s.g = 99)) WHERE key IS NOT NULL LIMIT 5001
-- answer: []
SELECT count(*) FROM (SELECT * FROM timed WHERE FALSE) t JOIN moments s ON CAST(t.at AS DATE) = s.day WHERE s.g = 99

-- case: the padded side of an outer join
-- key query: SELECT unix_micros(date_trunc('DAY', date_add(key, 0))) AS begins, typeof(key) AS type, unix_micros(date_trunc('DAY', date_add(key, 1))) AS next_begins, unix_micros(date_trunc('DAY', date_add(key, 2))) AS following_begins, current_timezone() AS current_timezone_assumed FROM (SELECT DISTINCT `s`.`day` AS key FROM (SELECT * FROM moments WHERE g = 1) AS `s`) WHERE key IS NOT NULL LIMIT 5001
-- answer: [[1767484800000000, "date", 1767571200000000, 1767657600000000, "UTC"], [1767830400000000, "date", 1767916800000000, 1768003200000000, "UTC"]]
SELECT s.day, t.id FROM (SELECT * FROM moments WHERE g = 1) s LEFT JOIN (SELECT * FROM timed WHERE ((`at` BETWEEN TIMESTAMP'2026-01-04 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-04 23:59:59.999999+00:00' OR `at` BETWEEN TIMESTAMP'2026-01-08 00:00:00.000000+00:00' AND TIMESTAMP'2026-01-08 23:59:59.999999+00:00') OR typeof(`at`) <> 'timestamp' OR current_timezone() <> 'UTC')) t ON CAST(t.at AS DATE) = s.day
