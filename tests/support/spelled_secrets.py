"""Statements with a secret, in the spellings that people and tools use, and statements that only look like them.

The secret is always SECRET. A line of SPELLINGS is one statement; `\\n` in it is a line break.
"""

from typing import Final

SECRET: Final = "hunter2"  # noqa: S105 - a made up one

SPELLINGS: Final = tuple(
    line.replace("\\n", "\n")
    for line in r"""
SET spark.hadoop.fs.s3a.secret.key=hunter2
set x = hunter2
SET `spark.x`=hunter2
/* a dashboard */ SET x=hunter2
/* a /* nested */ b */ SET x=hunter2
-- a comment\nSET x=hunter2
SET x\n=\nhunter2;
SET x = a=hunter2
SETT spark.hadoop.fs.s3a.secret.key=hunter2
SET VAR password = 'hunter2'
SET hivevar:pw = 'hunter2'
DECLARE password STRING DEFAULT 'hunter2'
SELECT * FROM t WHERE password = 'hunter2'
SELECT * FROM t WHERE PassWord="hunter2"
SELECT * FROM t WHERE passwd='hunter2'
SELECT * FROM t WHERE pwd = 'hunter2'
SELECT * FROM t WHERE u.pwd <=> 'hunter2'
SELECT * FROM t WHERE user_password <> 'hunter2'
SELECT * FROM t WHERE `password` == 'hunter2'
SELECT * FROM t WHERE `my password` = 'hunter2'
SELECT * FROM t WHERE `u`.`access`.`key` = 'hunter2'
SELECT * FROM t WHERE "password" = 'hunter2'
SELECT * FROM t WHERE 'hunter2' = password
SELECT * FROM t WHERE 'hunter2'=u.`password`
SELECT * FROM t WHERE concat('a', 'hunter2') = password
SELECT * FROM t WHERE password = concat('a', 'hunter2')
SELECT * FROM t WHERE password BETWEEN 'a' AND 'hunter2'
SELECT * FROM t WHERE password NOT BETWEEN lower('a') AND lower('hunter2')
SELECT * FROM t WHERE password BETWEEN concat('a', 'b') AND concat('c', 'hunter2') AND x = 1
SELECT * FROM t WHERE password = 'a' || 'hunter2'
SELECT * FROM t WHERE password = 'a' /* b */ 'hunter2'
SELECT * FROM t WHERE password = 'a' -- b\n'hunter2'
SELECT * FROM t WHERE password = 'it''s hunter2'
SELECT * FROM t WHERE password = 'it\'s hunter2'
SELECT * FROM t WHERE password = r'a\' 'hunter2'
SELECT * FROM t WHERE password = R"hunter2"
SELECT * FROM t WHERE password /* the old one */ = /* or */ 'hunter2'
SELECT * FROM t WHERE password -- the old one\n = 'hunter2'
SELECT * FROM t WHERE password IN ('a', 'hunter2')
SELECT * FROM t WHERE password NOT IN ('hunter2')
SELECT * FROM t WHERE password LIKE 'hunter2%'
SELECT * FROM t WHERE password RLIKE 'hunter2'
SELECT * FROM t WHERE lower(password) = 'hunter2'
SELECT * FROM t WHERE sha2(password, 256) = sha2('hunter2', 256)
SELECT * FROM t WHERE password = cast('hunter2' AS string)
SELECT * FROM t WHERE password = X'hunter2'
SELECT * FROM t WHERE password = hunter2
SELECT * FROM t WHERE password=ab/hunter2+c==
SELECT * FROM t WHERE password = 'hunter2
SELECT * FROM t WHERE password = "hunter2
SELECT * FROM t WHERE m['password'] = 'hunter2'
SELECT * FROM t WHERE get_json_object(j, '$.password') = 'hunter2'
SELECT * FROM t WHERE api_key = 'hunter2' AND ds = '2024-01-01'
SELECT * FROM t WHERE apikey = 'hunter2'
SELECT * FROM t WHERE accessToken = 'hunter2'
SELECT * FROM t WHERE auth_token IN ('a', 'b', 'hunter2')
SELECT * FROM t WHERE client_secret = 'hunter2'
SELECT 'hunter2' AS password
SELECT 'hunter2' password FROM t
SELECT upper('hunter2') AS user_password FROM t
SELECT map('password', 'hunter2')
SELECT map('pa' 'ssword', 'hunter2')
SELECT named_struct('user', 'bob', 'api.key', 'hunter2')
SELECT aes_encrypt(c, 'hunter2', 'GCM') FROM t
SELECT aes_decrypt(unbase64(c), 'hunter2') FROM t
SELECT from_json('{"user": "bob", "password": "hunter2"}', 's')
SELECT '{\"token\":\"hunter2\"}'
SELECT 'Authorization: Bearer hunter2'
SELECT 'Bearer hunter2'
SELECT 1 -- password: hunter2
SELECT 1 /* password='hunter2' */
SELECT 1 /* OPTIONS (password "hunter2") */
SELECT * FROM VALUES ('bob', 'hunter2') AS t(name, password)
INSERT INTO users (name, password) VALUES ('bob', 'hunter2')
INSERT INTO users (password, name) VALUES ('a', 'bob'), ('hunter2', 'eve')
INSERT INTO users (name, password) SELECT 'bob', 'hunter2'
INSERT INTO settings VALUES ('password', 'hunter2')
UPDATE users SET password = 'hunter2', name = 'bob' WHERE id = 1
MERGE INTO u USING s ON u.id = s.id WHEN MATCHED THEN UPDATE SET u.password = 'hunter2'
MERGE INTO u USING s ON u.id = s.id WHEN NOT MATCHED THEN INSERT (id, password) VALUES (s.id, 'hunter2')
CREATE TABLE t USING jdbc OPTIONS (password 'hunter2', url 'y')
CREATE TABLE t USING jdbc OPTIONS (password = 'hunter2')
CREATE TABLE t USING jdbc OPTIONS ('password' 'hunter2')
CREATE TABLE t USING jdbc OPTIONS ("password" = "hunter2")
CREATE TABLE t USING jdbc OPTIONS (`password` 'hunter2')
CREATE TABLE t USING jdbc OPTIONS (password /* the new one */ 'hunter2')
CREATE TABLE t USING jdbc OPTIONS (password=hunter2)
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:mysql://h/d?user=bob&password=hunter2', dbtable 'x')
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:mysql://h/d?pass' 'word=hunter2')
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:mysql://h/d?password=' 'hunter2')
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:sqlserver://h;user=bob;pwd=hunter2;')
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:postgresql://bob:hunter2@h/d')
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:oracle:thin:bob/hunter2@//h:1521/d')
CREATE TABLE t USING kafka OPTIONS (kafka.sasl.jaas.config 'X required username="u" password="hunter2";')
CREATE TABLE t USING kafka OPTIONS ('kafka.ssl.keystore.password' 'hunter2')
CREATE TABLE t USING parquet LOCATION 's3a://AKIA:hunter2@bucket/x'
CREATE TABLE t USING csv LOCATION 'https://a.blob.example/x?sv=1&sig=hunter2'
CREATE TABLE t USING x OPTIONS (connectionString 'Endpoint=sb://h/;SharedAccessKey=hunter2')
CREATE TABLE t USING x OPTIONS ('fs.azure.account.key.a.dfs.example' = 'hunter2')
ALTER TABLE t SET TBLPROPERTIES ('api.key' = "hunter2")
ALTER TABLE t SET SERDEPROPERTIES ('secret' = 'hunter2')
CREATE CONNECTION c TYPE mysql OPTIONS (host 'h', password 'hunter2')
create connection_x password 'hunter2'
CREATE USER bob IDENTIFIED BY PASSWORD 'hunter2'
COPY INTO t FROM 's3://b' WITH (CREDENTIAL (AWS_KEY = 'hunter2'))
EXECUTE IMMEDIATE 'SELECT * FROM t WHERE password = "hunter2"'
EXECUTE IMMEDIATE 'CREATE TABLE t USING jdbc OPTIONS (password ''hunter2'')'
ADD JAR s3a://bob:hunter2@bucket/x.jar
CALL connect(user => 'bob', password => 'hunter2')
SELECT * FROM read_files('x', secret_key => 'hunter2')
SELECT * FROM t WHERE password = 4711 OR pin_token = 'hunter2'
SELECT * FROM a UNION ALL SELECT * FROM b WHERE ((password) = ('hunter2'))
SELECT CASE WHEN password = 'hunter2' THEN 'a' ELSE 'b' END FROM t
WITH u AS (SELECT * FROM t WHERE password = 'hunter2') SELECT * FROM u
EXPLAIN REWRITE SELECT * FROM f JOIN d ON f.k = d.k WHERE d.password = 'hunter2'
""".strip().splitlines()
)

# Of these nothing is hidden.
HARMLESS: Final = tuple(
    r"""
SELECT sum(s.amount) FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = 'may' AND s.n > 5
SELECT * FROM t WHERE event IN ('password', 'login') AND ds = '2024-01-01'
SELECT * FROM t WHERE event = 'token' AND ds = '2024-01-01'
SELECT password, 'x' AS kind FROM t WHERE ds = '2024-01-01' LIMIT 10
SELECT count(password), 5 FROM t WHERE ds = '2024-01-01'
SELECT * FROM t WHERE password IS NOT NULL AND ds = '2024-01-01'
SELECT * FROM a JOIN b ON a.token = b.token AND b.ds = '2024-01-01'
SELECT * FROM a JOIN b USING (token) WHERE ds = '2024-01-01'
SELECT token FROM t GROUP BY token HAVING count(*) > 5 ORDER BY token LIMIT 10
SELECT sum(prompt_tokens) FROM t WHERE total_tokens > 100 AND token_count = 5
SELECT * FROM t WHERE password_changed_at > '2024-01-01' AND token_type = 'bearer'
SELECT * FROM t WHERE tokenizer = 'x' AND secretary = 'bob' AND passenger = 'eve'
SELECT * FROM (SELECT * FROM t WHERE ds = '2024-01-01') token WHERE x = 'y'
CREATE TABLE t (name STRING, password STRING COMMENT 'hashed') USING parquet LOCATION 's3://bucket/x'
CREATE TABLE t USING parquet LOCATION 'abfss://data@account.dfs.example/x'
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:mysql://h:3306/d?useSSL=true', dbtable 'x')
CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:oracle:thin:@//h:1521/d', user 'bob')
ALTER TABLE t SET TBLPROPERTIES ('comment' = 'x', 'retention' = '7')
INSERT INTO t (name, age) VALUES ('bob', 5)
UPDATE t SET name = 'bob' WHERE mail = 'bob@example.org'
SELECT 'it''s', "a 'b'", r'\d' -- a comment
SELECT 1 /* traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' */
ADD JAR s3a://bucket/x.jar
SET a.b
""".strip().splitlines()
)
