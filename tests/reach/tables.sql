-- A star of facts in the ways that warehouses partition them, and dimensions that tools join them with.
-- Days are the 1st, 11th and 21st of each month of 2023 and 2024; the calendar has every day of both years.
CREATE TABLE calendar USING parquet AS
  SELECT CAST(date_format(d, 'yyyyMMdd') AS INT) AS date_key, d AS cal_date, CAST(d AS STRING) AS ds,
    date_format(d, 'yyyy-MM') AS ym, year(d) AS year, quarter(d) AS quarter, month(d) AS month,
    date_format(d, 'MMMM') AS month_name, day(d) AS day, date_format(d, 'EEEE') AS weekday, weekofyear(d) AS week,
    CASE WHEN day(d) = 11 THEN NULL ELSE date_format(d, 'MM-dd') IN ('01-01', '05-01', '11-01', '12-21') END AS is_holiday,
    CASE date_format(d, 'MM-dd') WHEN '01-01' THEN 'New Year' WHEN '05-01' THEN 'Labour Day'
      WHEN '11-01' THEN 'All Saints' WHEN '12-21' THEN 'Solstice' END AS holiday_name,
    CAST(d AS TIMESTAMP) AS cal_ts
  FROM (SELECT /*+ COALESCE(1) */ explode(sequence(DATE'2023-01-01', DATE'2024-12-31')) AS d);

CREATE TABLE stores (store_id INT, store_name STRING, city STRING, region STRING, country STRING, opened DATE) USING parquet;
INSERT INTO stores VALUES
  (1, 'Harbour', 'Oslo', 'north', 'NO', DATE'2015-05-01'), (2, 'Fjord', 'Bergen', 'north', 'NO', DATE'2018-02-11'),
  (3, 'Forum', 'Rome', 'south', 'IT', DATE'2016-09-21'), (4, 'Duomo', 'Milan', 'south', 'IT', NULL),
  (5, 'Prater', 'Vienna', 'east', 'AT', DATE'2021-01-01'), (6, 'Closed', NULL, NULL, NULL, NULL);

CREATE TABLE products (product_id INT, product_name STRING, category STRING, brand STRING, list_price DECIMAL(10,2)) USING parquet;
INSERT INTO products VALUES
  (1, 'Robot', 'Toys', 'Acme', 19.90), (2, 'Kite', 'Toys', 'Nowhere', 9.50), (3, 'Lamp', 'Home', 'Lux', 45.00),
  (4, 'Rug', 'Home', NULL, 120.00), (5, 'Tea', 'Food', 'Acme', 4.20), (6, 'Mystery', NULL, NULL, NULL);

CREATE TABLE customers (customer_id INT, customer_name STRING, segment STRING, country STRING) USING parquet;
INSERT INTO customers VALUES
  (1, 'Ada', 'Consumer', 'NO'), (2, 'Bo', 'Corporate', 'IT'), (3, 'Cy', 'Consumer', 'AT'), (4, 'Di', NULL, NULL);

CREATE TABLE promotions (promo_id INT, promo_name STRING, kind STRING, start_ds STRING, end_ds STRING, start_date DATE, end_date DATE) USING parquet;
INSERT INTO promotions VALUES
  (1, 'Winter Sale', 'discount', '2023-12-20', '2024-01-12', DATE'2023-12-20', DATE'2024-01-12'),
  (2, 'Spring Days', 'bundle', '2024-03-10', '2024-03-22', DATE'2024-03-10', DATE'2024-03-22'),
  (3, 'Summer Sale', 'discount', '2024-07-01', '2024-07-31', DATE'2024-07-01', DATE'2024-07-31'),
  (4, 'Open End', 'loyalty', '2024-11-01', NULL, DATE'2024-11-01', NULL);

CREATE TABLE params (param_name STRING, report_ds STRING, report_date DATE, report_key INT, report_ym STRING) USING parquet;
INSERT INTO params VALUES ('current', '2024-06-11', DATE'2024-06-11', 20240611, '2024-06');

CREATE TABLE settings (setting STRING, setting_value STRING) USING parquet;
INSERT INTO settings VALUES ('report_ds', '2024-06-11'), ('first_ds', '2024-05-01'), ('currency', 'EUR');

CREATE TABLE user_security (login STRING, region STRING, first_ds STRING) USING parquet;
INSERT INTO user_security VALUES ('demo', 'north', '2024-01-01'), ('other', 'south', '2023-01-01'), ('demo', 'east', NULL);

CREATE TABLE fiscal_periods (period INT, fiscal_year INT, fiscal_quarter STRING, period_name STRING, start_date DATE, end_date DATE, start_ds STRING, end_ds STRING, status STRING) USING parquet;
INSERT INTO fiscal_periods
  SELECT /*+ COALESCE(1) */ fy * 100 + p, fy, concat('Q', ceil(p / 3)), concat('P', p), add_months(DATE'2022-04-01', (fy - 2023) * 12 + p - 1),
    last_day(add_months(DATE'2022-04-01', (fy - 2023) * 12 + p - 1)),
    CAST(add_months(DATE'2022-04-01', (fy - 2023) * 12 + p - 1) AS STRING),
    CAST(last_day(add_months(DATE'2022-04-01', (fy - 2023) * 12 + p - 1)) AS STRING),
    CASE WHEN fy = 2025 AND p > 6 THEN 'open' ELSE 'closed' END
  FROM (SELECT explode(array(2023, 2024, 2025)) AS fy) LATERAL VIEW explode(sequence(1, 12)) periods AS p;

CREATE TABLE store_history (store_id INT, manager STRING, format STRING, valid_from STRING, valid_to STRING) USING parquet;
INSERT INTO store_history VALUES
  (1, 'Ola', 'small', '2023-01-01', '2023-12-31'), (1, 'Kari', 'large', '2024-01-01', NULL),
  (3, 'Pia', 'small', '2023-01-01', '2024-05-31'), (3, 'Ugo', 'large', '2024-06-01', NULL), (5, NULL, 'small', '2024-03-01', NULL);

-- Lists that users upload: days of a campaign, and months with a target.
CREATE TABLE seed_campaign_days (ds STRING, campaign STRING) USING parquet;
INSERT INTO seed_campaign_days VALUES ('2024-02-01', 'mail'), ('2024-02-11', 'mail'), ('2024-09-01', 'radio'), (NULL, 'radio');
CREATE TABLE targets (ym STRING, region STRING, target DECIMAL(12,2)) USING parquet;
INSERT INTO targets VALUES ('2024-01', 'north', 500.00), ('2024-01', 'south', 450.00), ('2024-02', 'north', 520.00), ('2024-03', NULL, 100.00);

CREATE TABLE sales (sale_id BIGINT, store_id INT, product_id INT, customer_id INT, promo_id INT, quantity INT, amount DECIMAL(12,2), ds STRING) USING parquet PARTITIONED BY (ds);
INSERT INTO sales
  SELECT /*+ COALESCE(1) */ date_key * 10L + n, 1 + (date_key + n) % 6, IF(n = 4, NULL, 1 + (month + n) % 5), 1 + n % 4, IF(n = 2, 1 + month % 4, NULL),
    n, CAST(n * 10 + month AS DECIMAL(12,2)), ds
  FROM calendar LATERAL VIEW explode(array(1, 2, 3, 4)) numbers AS n WHERE day IN (1, 11, 21)
  UNION ALL SELECT 1L, 1, 1, 1, CAST(NULL AS INT), 1, 5.00, CAST(NULL AS STRING);

CREATE TABLE orders (order_id BIGINT, customer_id INT, store_id INT, status STRING, total DECIMAL(12,2), ordered_at TIMESTAMP, order_date DATE) USING parquet PARTITIONED BY (order_date);
INSERT INTO orders
  SELECT /*+ COALESCE(1) */ date_key * 10L + n, 1 + n % 4, 1 + (month + n) % 6, element_at(array('open', 'paid', NULL), n), CAST(n * 25 + day AS DECIMAL(12,2)),
    timestampadd(HOUR, n * 7, CAST(cal_date AS TIMESTAMP)), cal_date
  FROM calendar LATERAL VIEW explode(array(1, 2, 3)) numbers AS n WHERE day IN (1, 11, 21);

CREATE TABLE inventory (store_id INT, product_id INT, on_hand INT, reserved INT, date_key INT) USING parquet PARTITIONED BY (date_key);
INSERT INTO inventory
  SELECT /*+ COALESCE(1) */ 1 + n % 6, 1 + (month + n) % 6, n * 7 + day, IF(n = 3, NULL, n), date_key
  FROM calendar LATERAL VIEW explode(array(1, 2, 3)) numbers AS n WHERE day IN (1, 21);

CREATE TABLE web_events (event_id BIGINT, customer_id INT, page STRING, duration_s INT, year INT, month INT, day INT) USING parquet PARTITIONED BY (year, month, day);
INSERT INTO web_events
  SELECT /*+ COALESCE(1) */ date_key * 10L + n, 1 + n % 4, element_at(array('home', 'cart', NULL), n), n * 30, year, month, day
  FROM calendar LATERAL VIEW explode(array(1, 2, 3)) numbers AS n WHERE day IN (1, 15);

CREATE TABLE clicks (click_id BIGINT, product_id INT, cost DECIMAL(8,4), ds STRING, hour INT) USING parquet PARTITIONED BY (ds, hour);
INSERT INTO clicks
  SELECT /*+ COALESCE(1) */ date_key * 100L + h, 1 + (h + month) % 6, CAST(0.01 * h AS DECIMAL(8,4)), ds, h
  FROM calendar LATERAL VIEW explode(array(0, 8, 20)) hours AS h WHERE year = 2024 AND day IN (1, 11);

CREATE TABLE shipments (shipment_id BIGINT, store_id INT, weight_kg DECIMAL(8,2), ds STRING, region STRING) USING parquet PARTITIONED BY (ds, region);
INSERT INTO shipments
  SELECT /*+ COALESCE(1) */ date_key * 10L + n, 1 + n % 6, CAST(n + month AS DECIMAL(8,2)), ds, element_at(array('north', 'south', 'east'), n)
  FROM calendar LATERAL VIEW explode(array(1, 2, 3)) numbers AS n WHERE year = 2024 AND day IN (1, 21);

CREATE TABLE budgets (store_id INT, product_id INT, budget DECIMAL(12,2), ym STRING) USING parquet PARTITIONED BY (ym);
INSERT INTO budgets
  SELECT /*+ COALESCE(1) */ n, 1 + n % 5, CAST(n * 100 + month AS DECIMAL(12,2)), ym
  FROM calendar LATERAL VIEW explode(array(1, 2, 3, 5)) numbers AS n WHERE day = 1;

CREATE TABLE returns (return_id BIGINT, sale_id BIGINT, product_id INT, refund DECIMAL(12,2), ds STRING) USING parquet PARTITIONED BY (ds);
INSERT INTO returns
  SELECT /*+ COALESCE(1) */ date_key * 10L, date_key * 10L + 1, 1 + month % 6, CAST(month AS DECIMAL(12,2)), ds FROM calendar WHERE day IN (11, 21);

CREATE TABLE gl_entries (entry_id BIGINT, account STRING, amount DECIMAL(12,2), period INT) USING parquet PARTITIONED BY (period);
INSERT INTO gl_entries
  SELECT /*+ COALESCE(1) */ period * 10L + n, element_at(array('4000', '5000', NULL), n), CAST(n * 1000 + period % 100 AS DECIMAL(12,2)), period
  FROM fiscal_periods LATERAL VIEW explode(array(1, 2, 3)) numbers AS n;

CREATE VIEW holidays AS SELECT ds, cal_date, date_key, holiday_name, year FROM calendar WHERE is_holiday;
CREATE VIEW dim_date AS SELECT *, concat(year, ' Q', quarter) AS year_quarter FROM calendar;
CREATE VIEW v_sales AS
  SELECT s.sale_id, s.amount, s.quantity, s.ds, c.year AS cal_year, c.month_name, c.ym, st.store_name, st.region, p.category
  FROM sales s JOIN calendar c ON s.ds = c.ds JOIN stores st ON s.store_id = st.store_id
  LEFT JOIN products p ON s.product_id = p.product_id;
CREATE VIEW v_secure_shipments AS
  SELECT sh.* FROM shipments sh JOIN user_security u ON sh.region = u.region WHERE u.login = current_user();
CREATE VIEW v_orders AS SELECT order_id, customer_id, store_id, status, total AS order_total, order_date AS order_day FROM orders;
CREATE VIEW v_order_margin AS
  SELECT o.order_id, o.total, c.year AS order_year, c.month AS order_month FROM orders o LEFT JOIN calendar c ON o.order_date = c.cal_date;

CREATE TABLE daily_revenue (ds STRING, revenue DECIMAL(22,2)) USING parquet;

CREATE TABLE store_days (store_id INT, city STRING, region STRING, country STRING, dt STRING) USING parquet PARTITIONED BY (dt);
INSERT INTO store_days
  SELECT /*+ COALESCE(1) */ store_id, city, region, country, ds FROM stores CROSS JOIN calendar
  WHERE ds IN ('2024-12-01', '2024-12-11', '2024-12-21');
CREATE VIEW v_store_days_current AS SELECT * FROM store_days WHERE dt = (SELECT max(dt) FROM store_days);
