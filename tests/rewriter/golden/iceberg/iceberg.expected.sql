-- Written by pytest --update-goldens from iceberg/iceberg.toml; read the difference before you commit it.

-- case: a column with bounds
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [750, "int"], [null, "int"]]
SELECT t.id FROM (SELECT * FROM sorted WHERE (`k` IN (5, 750) OR typeof(`k`) <> 'int')) t JOIN small s ON t.k = s.k WHERE s.g = 1

-- case: more keys than one list may have
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 4) LIMIT 5001
-- answer: [[0, "int"], [102, "int"], [105, "int"], [108, "int"], [111, "int"], [114, "int"], [117, "int"], [12, "int"], [120, "int"], [123, "int"], [126, "int"], [129, "int"], [132, "int"], [135, "int"], [138, "int"], [141, "int"], [144, "int"], [147, "int"], [15, "int"], [150, "int"], [153, "int"], [156, "int"], [159, "int"], [162, "int"], [165, "int"], [168, "int"], [171, "int"], [174, "int"], [177, "int"], [18, "int"], [180, "int"], [183, "int"], [186, "int"], [189, "int"], [192, "int"], [195, "int"], [198, "int"], [201, "int"], [204, "int"], [207, "int"], [21, "int"], [210, "int"], [213, "int"], [216, "int"], [219, "int"], [222, "int"], [225, "int"], [228, "int"], [231, "int"], [234, "int"], [237, "int"], [24, "int"], [240, "int"], [243, "int"], [246, "int"], [249, "int"], [252, "int"], [255, "int"], [258, "int"], [261, "int"], [264, "int"], [267, "int"], [27, "int"], [270, "int"], [273, "int"], [276, "int"], [279, "int"], [282, "int"], [285, "int"], [288, "int"], [291, "int"], [294, "int"], [297, "int"], [3, "int"], [30, "int"], [300, "int"], [303, "int"], [306, "int"], [309, "int"], [312, "int"], [315, "int"], [318, "int"], [321, "int"], [324, "int"], [327, "int"], [33, "int"], [330, "int"], [333, "int"], [336, "int"], [339, "int"], [342, "int"], [345, "int"], [348, "int"], [351, "int"], [354, "int"], [357, "int"], [36, "int"], [360, "int"], [363, "int"], [366, "int"], [369, "int"], [372, "int"], [375, "int"], [378, "int"], [381, "int"], [384, "int"], [387, "int"], [39, "int"], [390, "int"], [393, "int"], [396, "int"], [399, "int"], [402, "int"], [405, "int"], [408, "int"], [411, "int"], [414, "int"], [417, "int"], [42, "int"], [420, "int"], [423, "int"], [426, "int"], [429, "int"], [432, "int"], [435, "int"], [438, "int"], [441, "int"], [444, "int"], [447, "int"], [45, "int"], [450, "int"], [453, "int"], [456, "int"], [459, "int"], [462, "int"], [465, "int"], [468, "int"], [471, "int"], [474, "int"], [477, "int"], [48, "int"], [480, "int"], [483, "int"], [486, "int"], [489, "int"], [492, "int"], [495, "int"], [498, "int"], [501, "int"], [504, "int"], [507, "int"], [51, "int"], [510, "int"], [513, "int"], [516, "int"], [519, "int"], [522, "int"], [525, "int"], [528, "int"], [531, "int"], [534, "int"], [537, "int"], [54, "int"], [540, "int"], [543, "int"], [546, "int"], [549, "int"], [552, "int"], [555, "int"], [558, "int"], [561, "int"], [564, "int"], [567, "int"], [57, "int"], [570, "int"], [573, "int"], [576, "int"], [579, "int"], [582, "int"], [585, "int"], [588, "int"], [591, "int"], [594, "int"], [597, "int"], [6, "int"], [60, "int"], [600, "int"], [603, "int"], [606, "int"], [609, "int"], [612, "int"], [615, "int"], [618, "int"], [621, "int"], [624, "int"], [627, "int"], [63, "int"], [630, "int"], [633, "int"], [636, "int"], [639, "int"], [642, "int"], [645, "int"], [648, "int"], [651, "int"], [654, "int"], [657, "int"], [66, "int"], [660, "int"], [663, "int"], [666, "int"], [669, "int"], [672, "int"], [675, "int"], [678, "int"], [681, "int"], [684, "int"], [687, "int"], [69, "int"], [690, "int"], [693, "int"], [696, "int"], [699, "int"], [702, "int"], [705, "int"], [708, "int"], [711, "int"], [714, "int"], [717, "int"], [72, "int"], [720, "int"], [723, "int"], [726, "int"], [729, "int"], [732, "int"], [735, "int"], [738, "int"], [741, "int"], [744, "int"], [747, "int"], [75, "int"], [78, "int"], [81, "int"], [84, "int"], [87, "int"], [9, "int"], [90, "int"], [93, "int"], [96, "int"], [99, "int"]]
SELECT t.id FROM (SELECT * FROM sorted WHERE ((`k` IN (0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 102, 105, 108, 111, 114, 117, 120, 123, 126, 129, 132, 135, 138, 141, 144, 147, 150, 153, 156, 159, 162, 165, 168, 171, 174, 177, 180, 183, 186, 189, 192, 195, 198, 201, 204, 207, 210, 213, 216, 219, 222, 225, 228, 231, 234, 237, 240, 243, 246, 249, 252, 255, 258, 261, 264, 267, 270, 273, 276, 279, 282, 285, 288, 291, 294, 297, 300, 303, 306, 309, 312, 315, 318, 321, 324, 327, 330, 333, 336, 339, 342, 345, 348, 351, 354, 357, 360, 363, 366, 369, 372, 375, 378, 381, 384, 387, 390, 393, 396, 399, 402, 405, 408, 411, 414, 417, 420, 423, 426, 429, 432, 435, 438, 441, 444, 447, 450, 453, 456, 459, 462, 465, 468, 471, 474, 477, 480, 483, 486, 489, 492, 495, 498, 501, 504, 507, 510, 513, 516, 519, 522, 525, 528, 531, 534, 537, 540, 543, 546, 549, 552, 555, 558, 561, 564, 567, 570, 573, 576, 579, 582, 585, 588, 591, 594, 597, 600, 603, 606, 609, 612, 615, 618, 621, 624, 627, 630, 633, 636, 639, 642, 645, 648, 651, 654, 657, 660, 663, 666, 669, 672, 675, 678, 681, 684, 687, 690, 693, 696, 699, 702, 705, 708, 711, 714, 717, 720, 723, 726, 729, 732, 735, 738, 741, 744, 747) AND (`k` IN (0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 51, 54, 57, 60, 63, 66, 69, 72, 75, 78, 81, 84, 87, 90, 93, 96, 99, 102, 105, 108, 111, 114, 117, 120, 123, 126, 129, 132, 135, 138, 141, 144, 147, 150, 153, 156, 159, 162, 165, 168, 171, 174, 177, 180, 183, 186, 189, 192, 195, 198, 201, 204, 207, 210, 213, 216, 219, 222, 225, 228, 231, 234, 237, 240, 243, 246, 249, 252, 255, 258, 261, 264, 267, 270, 273, 276, 279, 282, 285, 288, 291, 294, 297, 300, 303, 306, 309, 312, 315, 318, 321, 324, 327, 330, 333, 336, 339, 342, 345, 348, 351, 354, 357, 360, 363, 366, 369, 372, 375, 378, 381, 384, 387, 390, 393, 396, 399, 402, 405, 408, 411, 414, 417, 420, 423, 426, 429, 432, 435, 438, 441, 444, 447, 450, 453, 456, 459, 462, 465, 468, 471, 474, 477, 480, 483, 486, 489, 492, 495, 498, 501, 504, 507, 510, 513, 516, 519, 522, 525, 528, 531, 534, 537, 540, 543, 546, 549, 552, 555, 558, 561, 564, 567, 570, 573, 576, 579, 582, 585, 588, 591, 594, 597) OR `k` IN (600, 603, 606, 609, 612, 615, 618, 621, 624, 627, 630, 633, 636, 639, 642, 645, 648, 651, 654, 657, 660, 663, 666, 669, 672, 675, 678, 681, 684, 687, 690, 693, 696, 699, 702, 705, 708, 711, 714, 717, 720, 723, 726, 729, 732, 735, 738, 741, 744, 747))) OR typeof(`k`) <> 'int')) t JOIN small s ON t.k = s.k WHERE s.g = 4

-- case: pairs of two columns
-- key query: SELECT s.`k` AS key1, typeof(s.`k`) AS type1, s.`l` AS key2, typeof(s.`l`) AS type2 FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int", 35, "bigint"], [750, "int", 5250, "bigint"], [null, "int", 7, "bigint"]]
SELECT t.id FROM (SELECT * FROM sorted WHERE (((`k` IN (5) AND `l` IN (35L)) OR (`k` IN (750) AND `l` IN (5250L))) OR typeof(`k`) <> 'int' OR typeof(`l`) <> 'bigint')) t JOIN small s ON t.k = s.k AND t.l = s.l WHERE s.g = 1

-- case: pairs of partitions
-- key query: SELECT s.`a` AS key1, typeof(s.`a`) AS type1, s.`b` AS key2, typeof(s.`b`) AS type2 FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) AND (s.k IS NOT NULL) LIMIT 5001
-- answer: [[1, "int", 1, "int"], [2, "int", 2, "int"]]
SELECT t.id FROM (SELECT * FROM crossed WHERE (((`a` IN (1) AND `b` IN (1)) OR (`a` IN (2) AND `b` IN (2))) OR typeof(`a`) <> 'int' OR typeof(`b`) <> 'int')) t JOIN small s ON t.a = s.a AND t.b = s.b WHERE s.g = 1 AND s.k IS NOT NULL

-- case: buckets
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g IN (1, 2)) LIMIT 5001
-- answer: [[105, "int"], [5, "int"], [750, "int"], [null, "int"]]
SELECT t.id FROM (SELECT * FROM hashed WHERE (`k` IN (5, 105, 750) OR typeof(`k`) <> 'int')) t JOIN small s ON t.k = s.k WHERE s.g IN (1, 2)

-- case: days of months
-- key query: SELECT unix_date(s.`day`) AS key, typeof(s.`day`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[20517, "date"], [20765, "date"], [null, "date"]]
SELECT t.id FROM (SELECT * FROM monthly WHERE (`day` IN (DATE'2026-03-05', DATE'2026-11-08') OR typeof(`day`) <> 'date')) t JOIN small s ON t.day = s.day WHERE s.g = 1

-- case: null matches null
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [750, "int"], [null, "int"]]
SELECT t.id FROM (SELECT * FROM sorted WHERE ((`k` IN (5, 750) OR `k` IS NULL) OR typeof(`k`) <> 'int')) t JOIN small s ON t.k <=> s.k WHERE s.g = 1

-- case: no key
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 99) LIMIT 5001
-- answer: []
SELECT count(*) FROM (SELECT * FROM sorted WHERE FALSE) t JOIN small s ON t.k = s.k WHERE s.g = 99

-- case: a column that was of another type, and files with deletes
-- key query: SELECT s.`l` AS key, typeof(s.`l`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g IN (1, 2)) LIMIT 5001
-- answer: [[0, "bigint"], [35, "bigint"], [5250, "bigint"], [7, "bigint"]]
SELECT t.id, t.name FROM (SELECT * FROM evolved WHERE (`k` IN (0L, 7L, 35L, 5250L) OR typeof(`k`) <> 'bigint')) t JOIN small s ON t.k = s.l WHERE s.g IN (1, 2)

-- case: a column that had another name
-- key query: SELECT reducer.key1 AS key, typeof(reducer.key1) AS type FROM (SELECT concat('o', 'ld') FROM small s WHERE s.g = 1) AS reducer(key1) LIMIT 5001
-- answer: [["old", "string"]]
SELECT t.id FROM (SELECT * FROM evolved WHERE (`name` IN ('old') OR typeof(`name`) <> 'string')) t WHERE t.name IN (SELECT concat('o', 'ld') FROM small s WHERE s.g = 1)

-- case: what could be UUIDs stands beside what cannot
-- key query: SELECT s.`s` AS key, typeof(s.`s`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g IN (1, 2)) LIMIT 5001
-- answer: [["a6a05680-8de1-4a21-b645-5bb15d46be36", "string"], ["n5", "string"], ["n750", "string"], ["n9", "string"]]
SELECT t.id FROM (SELECT * FROM sorted WHERE (`s` IN ('a6a05680-8de1-4a21-b645-5bb15d46be36', 'n5', 'n750', 'n9') OR typeof(`s`) <> 'string' OR `s` IN (''))) t JOIN small s ON t.s = s.s WHERE s.g IN (1, 2)

-- case: the padded side of an outer join
-- key query: SELECT `s`.`k` AS key, typeof(`s`.`k`) AS type FROM (SELECT * FROM small WHERE g = 1) AS `s` LIMIT 5001
-- answer: [[5, "int"], [750, "int"], [null, "int"]]
SELECT s.k, t.id FROM (SELECT * FROM small WHERE g = 1) s LEFT JOIN (SELECT * FROM sorted WHERE (`k` IN (5, 750) OR typeof(`k`) <> 'int')) t ON t.k = s.k

-- case: a UNION of two tables
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [750, "int"], [null, "int"]]
SELECT u.id FROM (SELECT id, k FROM (SELECT * FROM sorted WHERE (`k` IN (5, 750) OR typeof(`k`) <> 'int')) AS sorted UNION ALL SELECT id, k FROM (SELECT * FROM hashed WHERE (`k` IN (5, 750) OR typeof(`k`) <> 'int')) AS hashed) u JOIN small s ON u.k = s.k WHERE s.g = 1

-- case: a view
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [750, "int"], [null, "int"]]
SELECT t.id FROM (SELECT * FROM sorted_view WHERE (`key` IN (5, 750) OR typeof(`key`) <> 'int')) t JOIN small s ON t.key = s.k WHERE s.g = 1

-- case: two restrictions on one scan
-- key query: SELECT s.`k` AS key, typeof(s.`k`) AS type FROM small s WHERE 'starpruner' IS NOT NULL AND (s.g = 1) LIMIT 5001
-- answer: [[5, "int"], [750, "int"], [null, "int"]]
-- key query: SELECT r.`l` AS key, typeof(r.`l`) AS type FROM small r WHERE 'starpruner' IS NOT NULL AND (r.g = 1) LIMIT 5001
-- answer: [[35, "bigint"], [5250, "bigint"], [7, "bigint"]]
SELECT t.id FROM (SELECT * FROM sorted WHERE ((`k` IN (5, 750) AND `l` IN (7L, 35L, 5250L)) OR typeof(`k`) <> 'int' OR typeof(`l`) <> 'bigint')) t JOIN small s ON t.k = s.k JOIN small r ON t.l = r.l WHERE s.g = 1 AND r.g = 1
