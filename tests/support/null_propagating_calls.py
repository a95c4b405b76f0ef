"""Calls and forms that `rewriter.sql.null_logic` takes to be null where an operand is, operand by operand."""


def _listed(text: str) -> list[str]:
    return [" ".join(item.split()) for item in text.split(";")]


# Each has its operands between `|`; those in brackets do not make the call null, or are not said to.
CALLS = _listed("""
    abs(1); add_months(DATE'2026-01-31'|1); boolean('true'); ceil(1.5); ceil(1.55|[1]); ceiling(1.5);
    ceiling(1.55|[1]); char_length('ab'); character_length('ab'); len('ab'); length('ab'); div(4|2);
    coalesce(1); concat('a'); concat('a'|'b'); concat('a'|'b'|'c'); concat('a'|'b'|'c'|'d');
    contains('ab'|'b'); collate('a'|['UTF8_BINARY']); date('2026-01-02'); date_add(DATE'2026-01-02'|1);
    date_sub(DATE'2026-01-02'|1); date_diff(DATE'2026-01-02'|DATE'2026-01-01');
    datediff(DATE'2026-01-02'|DATE'2026-01-01'); dateadd(DATE'2026-01-02'|1);
    date_format(DATE'2026-01-02'|['yyyy']); date_part(['year']|DATE'2026-01-02');
    date_trunc(['MM']|DATE'2026-01-02'); trunc(DATE'2026-01-02'|['MM']); day(DATE'2026-01-02');
    dayofmonth(DATE'2026-01-02'); dayofweek(DATE'2026-01-02'); dayofyear(DATE'2026-01-02'); double('1');
    float('1'); endswith('ab'|'b'); startswith('ab'|'a'); floor(1.5); floor(1.55|[1]);
    hour(TIMESTAMP'2026-01-02 03:04:05'); minute(TIMESTAMP'2026-01-02 03:04:05');
    second(TIMESTAMP'2026-01-02 03:04:05'); ilike('a'|'A'); ilike('a'|'A'|['/']); like('a'|'a');
    like('a'|'a'|['/']); rlike('a'|'a'); regexp_like('a'|'a'); initcap('ab'); instr('ab'|'b');
    instr('ab'|'b'|[1]); instr('ab'|'b'|[1]|[1]); int('1'); last_day(DATE'2026-01-02'); lcase('A'); lower('A');
    ucase('a'); upper('a'); left('ab'|1); right('ab'|1); locate('b'|'ab'); locate('b'|'ab'|[1]);
    position('b'|'ab'); position('b'|'ab'|[1]); lpad('a'|3); lpad('a'|3|'x'); rpad('a'|3); rpad('a'|3|'x');
    ltrim(' a'); ltrim('x'|'xa'); rtrim('a '); rtrim('x'|'ax'); trim(' a '); trim('x'|'xax');
    make_date(2026|1|2); mod(5|3); pmod(5|3); month(DATE'2026-01-02');
    months_between(DATE'2026-01-02'|DATE'2026-02-02');
    months_between(DATE'2026-01-02'|DATE'2026-02-02'|[TRUE]); pow(2|3); power(2|3); quarter(DATE'2026-01-02');
    regexp_extract('a1'|'([0-9])'); regexp_extract('a1'|'([0-9])'|[1]); regexp_replace('a'|'a'|'b');
    regexp_replace('a'|'a'|'b'|[1]); replace('a'|'a'); replace('a'|'a'|'b'); reverse('ab'); round(1.5);
    round(1.55|[1]); sign(1); signum(1); sqrt(4); split_part('a-b'|'-'|1); string(1); substr('ab'|1);
    substr('ab'|1|1); substring('ab'|1); substring('ab'|1|1); timestamp('2026-01-02 03:04:05');
    to_date('2026-01-02'); to_date('2026-01-02'|['yyyy-MM-dd']); to_timestamp('2026-01-02');
    to_timestamp('2026-01-02'|['yyyy-MM-dd']); weekday(DATE'2026-01-02'); weekofyear(DATE'2026-01-02');
    year(DATE'2026-01-02')
""")
# Operators, and forms with words between their operands.
FORMS = _listed("""
    {1} + {2}; {1} - {2}; {1} * {2}; {1} / {2}; {1} % {2}; {1} DIV {2}; {1} & {2}; {1} | {2}; {1} ^ {2}; -{1};
    ~{1}; {1} = {2}; {1} == {2}; {1} <> {2}; {1} != {2}; {1} < {2}; {1} <= {2}; {1} > {2}; {1} >= {2};
    {1} || {2}; CAST({1} AS STRING); TRY_CAST({1} AS STRING); {1}::STRING; {1} LIKE {2}; {1} NOT LIKE {2};
    {1} ILIKE {2}; {1} RLIKE {2}; {1} REGEXP {2}; {1} LIKE {2} ESCAPE '/'; {1} LIKE ANY ('1', '2');
    {1} NOT LIKE ALL ('1', '2'); {1} IN (2, 3); {1} NOT IN (2, 3); {1} BETWEEN 0 AND 2;
    {1} NOT BETWEEN 0 AND 2; EXTRACT(DAY FROM {1} + DATE'2026-01-01'); TRIM(BOTH {1} FROM {2});
    TRIM(LEADING {1} FROM {2}); SUBSTRING({1} FROM {2}); POSITION({1} IN {2}); NOT ({1} = {2});
    CASE WHEN {1} = {2} THEN TRUE END; CASE {1} WHEN {2} THEN TRUE END; IF({1} = {2}, TRUE, NULL);
    NULLIF({1}, 2); CAST({1} AS STRING) COLLATE UTF8_BINARY; {1} + INTERVAL 1 DAY; {1} = {2} AND TRUE;
    {1} = {2} OR FALSE; nvl({1}, NULL); nvl2({1}, 1, NULL)
""")
# Conditions over {1} that may be true where it is null.
LETS_NULL_PASS = _listed("""
    {1} IS NULL; {1} IS NOT NULL OR TRUE; {1} <=> NULL; NOT ({1} <=> 1); {1} IS DISTINCT FROM 1;
    {1} IS NOT DISTINCT FROM NULL; coalesce({1}, 1) = 1; nvl({1}, 1) = 1; ifnull({1}, 1) = 1;
    nvl2({1}, FALSE, TRUE); if({1} = 1, FALSE, TRUE); CASE WHEN {1} = 1 THEN FALSE ELSE TRUE END;
    CASE {1} WHEN 1 THEN FALSE ELSE TRUE END; greatest({1}, 1) = 1; least({1}, 1) = 1;
    concat_ws('-', {1}, 'a') = 'a'; ({1} = 1) IS NOT TRUE; ({1} = 1) IS UNKNOWN; isnull({1});
    NOT isnotnull({1}); {1} = 1 OR TRUE; ({1}, 1) IN ((CAST(NULL AS INT), 1)); decode({1}, NULL, 'x') = 'x';
    size(array({1})) = 1; {1} NOT IN (SELECT 1 WHERE FALSE); EXISTS (SELECT {1}); hash({1}) = hash(NULL);
    typeof({1}) = 'int'; NOT (2 BETWEEN 3 AND {1}); struct({1}, 1) = struct({1}, 1);
    format_string('%s', {1}) = 'null'
""")


def calls() -> list[tuple[str, list[str]]]:
    """The names of the calls with their operands."""
    return [(text[: text.index("(")], text[text.index("(") + 1 : -1].split("|")) for text in CALLS]
