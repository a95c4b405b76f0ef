import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.hive.jdbc.HiveStatement;

/**
 * Takes the steps of a JDBC client in a database of its own, named first on the command line, against each server
 * whose URL follows, and prints what it saw of each as one JSON object: step by step, a list of lines. A step that
 * fails says how.
 */
final class JdbcSteps {
    /** A result of which more would only make a difference hard to read; the rest is counted and hashed. */
    private static final int ROWS_SHOWN = 100;
    /** Long enough that a statement is at work when it is cancelled, short enough to be waited for. */
    private static final int SLEEP_BEFORE_CANCEL_MS = 3_000;
    private static final String TEN_SECONDS =
        "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) FROM range(0, 10, 1, 1)";

    /** Made and dropped by the steps; two programs at a time need two names. */
    private final String database;
    private final String url;
    private final Connection connection;
    private final Map<String, List<String>> answers = new LinkedHashMap<>();

    private JdbcSteps(String database, String url) throws SQLException {
        this.database = database;
        this.url = url;
        this.connection = DriverManager.getConnection(url, "tester", "secret");
    }

    public static void main(String[] words) throws SQLException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String url : Arrays.copyOfRange(words, 1, words.length)) {
            JdbcSteps steps = new JdbcSteps(words[0], url);
            steps.takeAll();
            steps.connection.close();
            out.println(Json.object(steps.answers));
        }
    }

    private void takeAll() {
        step("tables", lines -> makeTables());
        step("what the server is", this::everythingAboutTheServer);
        catalogCalls();
        step("every type", lines -> query(lines, EVERY_TYPE));
        step("every type by its getter", this::typedGetters);
        step("nulls", lines -> query(lines, "SELECT * FROM VALUES (1, 'a', true), (NULL, NULL, NULL) AS t(a, b, c)"));
        step("unicode", lines -> query(lines, "SELECT 'Zażółć gęślą jaźń' AS `naïve`, '日本語' AS b, '🦔' AS c"));
        step("no rows", lines -> query(lines, "SELECT id, 'x' AS x FROM range(0)"));
        step("prepared with every setter", this::prepared);
        step("prepared with quotes", this::preparedQuotes);
        step("prepared without a value", lines -> preparedQuery(lines, "SELECT ?, ?", s -> s.setInt(1, 1)));
        for (int size : new int[] {1, 7, 1_000, 100_000}) {
            step("fetch size " + size, lines -> fetch(lines, size));
        }
        step("at most five rows", this::maxRows);
        step("statements open at once", this::openAtOnce);
        step("closed half read", this::closedHalfRead);
        step("sixty megabytes in a batch", this::sixtyMegabytes);
        step("a star join", lines -> query(lines, STAR_JOIN));
        step("cancelled from another thread", this::cancelled);
        step("out of time", this::outOfTime);
        step("the log of a statement", this::queryLog);
        step("kinds of execute", this::kindsOfExecute);
        errors();
        step("the session", this::theSession);
        step("settings in the URL", this::settingsInTheUrl);
        step("tables dropped", lines -> execute("DROP DATABASE " + database + " CASCADE"));
    }

    // --- catalog

    private void makeTables() throws SQLException {
        execute("DROP DATABASE IF EXISTS " + database + " CASCADE");
        execute("CREATE DATABASE " + database + " COMMENT 'made by a JDBC client'");
        execute("CREATE TABLE " + database + ".facts (id BIGINT COMMENT 'its number', amount DECIMAL(10,2), note STRING,"
            + " tags ARRAY<STRING>, ds DATE) USING parquet PARTITIONED BY (ds) COMMENT 'a fact table'");
        execute("CREATE TABLE " + database + ".odd_names (`a b` INT, `naïve` STRING) USING parquet");
        execute("CREATE VIEW " + database + ".some_facts AS SELECT id, ds FROM " + database + ".facts");
    }

    /** Calls whatever DatabaseMetaData offers without arguments; but the list of all schemas is others' to change. */
    private void everythingAboutTheServer(List<String> lines) throws Exception {
        DatabaseMetaData about = connection.getMetaData();
        Method[] methods = DatabaseMetaData.class.getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            boolean isOurs = method.getReturnType() != Connection.class && !method.getName().equals("getSchemas");
            if (method.getParameterCount() > 0 || method.isDefault() || !isOurs) {
                continue;
            }
            lines.add("-- " + method.getName());
            try {
                Object found = method.invoke(about);
                if (found instanceof ResultSet rows) {
                    show(lines, rows);
                } else {
                    lines.add(String.valueOf(found).replace(url.split("/")[2], "HOST:PORT"));
                }
            } catch (InvocationTargetException failed) {
                lines.add(failure(failed.getCause()));
            } catch (SQLException | RuntimeException failed) {
                lines.add(failure(failed));
            }
        }
    }

    private void catalogCalls() {
        String mine = database;
        String[] views = {"VIEW"};
        catalog("schemas by pattern", about -> about.getSchemas(null, "%" + mine.substring(4)));
        catalog("tables", about -> about.getTables(null, mine, "%", null));
        catalog("tables in upper case", about -> about.getTables(null, mine.toUpperCase(), "%", null));
        catalog("tables by pattern", about -> about.getTables(null, mine, "f_cts", null));
        catalog("tables that are views", about -> about.getTables(null, mine, "%", views));
        catalog("tables nowhere", about -> about.getTables(null, "no_such_schema", "%", null));
        catalog("tables of a catalog", about -> about.getTables("", mine, null, new String[] {"TABLE"}));
        catalog("columns", about -> about.getColumns(null, mine, "%", "%"));
        catalog("columns by pattern", about -> about.getColumns(null, mine, "facts", "a%"));
        catalog("functions", about -> about.getFunctions(null, "default", "date\\_%"));
        catalog("primary keys", about -> about.getPrimaryKeys(null, mine, "facts"));
        catalog("imported keys", about -> about.getImportedKeys(null, mine, "facts"));
        catalog("exported keys", about -> about.getExportedKeys(null, mine, "facts"));
        catalog("cross reference", about -> about.getCrossReference(null, mine, "facts", null, mine, "some_facts"));
        catalog("procedures", about -> about.getProcedures(null, null, "%"));
        catalog("procedure columns", about -> about.getProcedureColumns(null, null, "%", "%"));
        catalog("indexes", about -> about.getIndexInfo(null, mine, "facts", false, true));
        catalog("user-defined types", about -> about.getUDTs(null, mine, "%", null));
        catalog("table privileges", about -> about.getTablePrivileges(null, mine, "facts"));
        catalog("best row identifier", about -> about.getBestRowIdentifier(null, mine, "facts", 0, true));
    }

    private void catalog(String name, CatalogCall call) {
        step(name, lines -> show(lines, call.make(connection.getMetaData())));
    }

    // --- values

    private static final String EVERY_TYPE =
        "SELECT true AS a_boolean, 1Y AS a_tinyint, 2S AS a_smallint, 3 AS an_int, 4L AS a_bigint, 1.5F AS a_float,"
            + " 2.5D AS a_double, 12.34BD AS a_decimal, 'text' AS a_string, CAST('c' AS CHAR(3)) AS a_char,"
            + " CAST('v' AS VARCHAR(3)) AS a_varchar, X'00ff41' AS a_binary, DATE'2024-02-29' AS a_date,"
            + " TIMESTAMP'2024-02-29 12:34:56.789' AS a_timestamp,"
            + " INTERVAL '1 02:03:04' DAY TO SECOND AS a_day_interval, INTERVAL '1-2' YEAR TO MONTH AS a_month_interval,"
            + " array(1, 2) AS an_array, map('a', 1) AS a_map, named_struct('x', 1, 'y', 'z') AS a_struct,"
            + " CAST('NaN' AS DOUBLE) AS not_a_number, NULL AS a_null";

    private void typedGetters(List<String> lines) throws Exception {
        try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(EVERY_TYPE)) {
            row.next();
            lines.add(row.getBoolean("a_boolean") + " " + row.getByte("a_tinyint") + " " + row.getShort("a_smallint"));
            lines.add(row.getInt("an_int") + " " + row.getLong("a_bigint") + " " + row.getFloat("a_float"));
            lines.add(row.getDouble("a_double") + " " + row.getBigDecimal("a_decimal") + " " + row.getDate("a_date"));
            lines.add(row.getTimestamp("a_timestamp") + " " + row.getObject("a_day_interval"));
            lines.add(row.getInt("a_null") + " " + row.wasNull() + " " + row.getString("a_null"));
            try (InputStream binary = row.getBinaryStream("a_binary")) {
                lines.add(HexFormat.of().formatHex(binary.readAllBytes()));
            }
            lines.add(row.findColumn("a_struct") + " " + row.next());
        }
    }

    private void prepared(List<String> lines) throws Exception {
        String[] names = "z y x w v u t s r q p o".split(" ");
        StringBuilder sql = new StringBuilder("SELECT '?' AS question_mark");
        for (String name : names) {
            sql.append(", ? AS ").append(name);
        }
        preparedQuery(lines, sql.toString(), statement -> {
            statement.setBoolean(1, true);
            statement.setByte(2, (byte) -1);
            statement.setShort(3, (short) 2);
            statement.setInt(4, Integer.MIN_VALUE);
            statement.setLong(5, Long.MAX_VALUE);
            statement.setFloat(6, 1.5f);
            statement.setDouble(7, -2.5e-10);
            statement.setString(8, "text");
            statement.setDate(9, Date.valueOf("2024-02-29"));
            statement.setTimestamp(10, Timestamp.valueOf("2024-02-29 12:34:56.789"));
            statement.setNull(11, Types.INTEGER);
            statement.setObject(12, new BigDecimal("12.3400"));
        });
    }

    private void preparedQuotes(List<String> lines) throws Exception {
        preparedQuery(lines, "SELECT ? AS a, 'it''s ?' AS b, ? AS c", statement -> {
            statement.setString(1, "it's \"quoted\" \\ and ? asked, 日本語");
            statement.setString(2, "");
        });
    }

    private void preparedQuery(List<String> lines, String sql, Setters setters) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            setters.set(statement);
            show(lines, statement.executeQuery());
        }
    }

    // --- rows

    private void fetch(List<String> lines, int size) throws SQLException {
        long rows = Math.min(100_001L, 40L * size);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(size);
            String sql = "SELECT id, concat('row ', id) AS label, IF(id % 3 = 0, NULL, id) AS n FROM range(" + rows + ")";
            showCounted(lines, statement.executeQuery(sql));
        }
    }

    private void maxRows(List<String> lines) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setMaxRows(5);
            show(lines, statement.executeQuery("SELECT id FROM range(100)"));
        }
    }

    private void openAtOnce(List<String> lines) throws SQLException {
        try (Statement first = connection.createStatement(); Statement second = connection.createStatement()) {
            first.setFetchSize(10);
            second.setFetchSize(7);
            ResultSet ups = first.executeQuery("SELECT id FROM range(50)");
            ResultSet downs = second.executeQuery("SELECT 50 - id FROM range(50)");
            StringBuilder read = new StringBuilder();
            while (ups.next() && downs.next()) {
                read.append(ups.getLong(1)).append('/').append(downs.getLong(1)).append(' ');
            }
            lines.add(read.toString());
        }
    }

    private void closedHalfRead(List<String> lines) throws SQLException {
        Statement statement = connection.createStatement();
        statement.setFetchSize(10);
        ResultSet rows = statement.executeQuery("SELECT id FROM range(1000)");
        rows.next();
        rows.close();
        show(lines, statement.executeQuery("SELECT 'used again' AS it"));
        statement.close();
        lines.add(statement.isClosed() + " " + rows.isClosed());
    }

    private void sixtyMegabytes(List<String> lines) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(1_000);
            ResultSet rows = statement.executeQuery("SELECT id, repeat(chr(int(65 + id % 26)), 1000000) FROM range(60)");
            showCounted(lines, rows);
        }
    }

    private static final String STAR_JOIN =
        "SELECT v.* FROM small_star.visits v JOIN small_star.days d ON v.ds = d.ds"
            + " WHERE d.weekday = 'Sunday' ORDER BY v.id";

    // --- the course of a statement. HiveStatement.executeAsync is left out: both drivers wait in it for a word about
    // results that Spark never says.

    private void cancelled(List<String> lines) throws Exception {
        try (Statement statement = connection.createStatement()) {
            CompletableFuture<Void> cancel = CompletableFuture.runAsync(() -> cancelLater(statement));
            try {
                showCounted(lines, statement.executeQuery(TEN_SECONDS));
            } catch (SQLException failed) {
                lines.add(failure(failed));
            }
            cancel.join();
            show(lines, statement.executeQuery("SELECT 'used again' AS it"));
        }
    }

    private static void cancelLater(Statement statement) {
        try {
            Thread.sleep(SLEEP_BEFORE_CANCEL_MS);
            statement.cancel();
        } catch (InterruptedException | SQLException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private void outOfTime(List<String> lines) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            lines.add("timeout " + statement.getQueryTimeout());
            showCounted(lines, statement.executeQuery(TEN_SECONDS));
        }
    }

    private void queryLog(List<String> lines) throws SQLException {
        try (HiveStatement statement = (HiveStatement) connection.createStatement()) {
            statement.executeQuery("SELECT 'logged' AS it").close();
            lines.add("more: " + statement.hasMoreLogs());
            lines.addAll(statement.getQueryLog(true, 10));
        }
    }

    private void kindsOfExecute(List<String> lines) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            lines.add("select: " + statement.execute("SELECT 1") + " " + statement.getUpdateCount());
            lines.add("create: " + statement.execute("CREATE TEMPORARY VIEW kinds AS SELECT 1 AS k"));
            lines.add("insert: " + statement.executeUpdate(
                "INSERT INTO " + database + ".odd_names VALUES (1, 'one'), (2, NULL)") + " " + statement.getUpdateCount());
            show(lines, statement.executeQuery("SELECT * FROM " + database + ".odd_names ORDER BY 1"));
            lines.add("settings: " + statement.execute("SET spark.sql.session.timeZone=Asia/Tokyo"));
            show(lines, statement.executeQuery("SELECT current_timezone(), TIMESTAMP'2024-01-01 00:00:00Z' AS t"));
            lines.add("reset: " + statement.execute("RESET spark.sql.session.timeZone"));
        }
    }

    private void errors() {
        String[] failing = {
            "SELECT * FROM no_such_table", "SELEC 1", "SELECT no_such_column FROM range(1)", "SELECT 1; SELECT 2",
            "SELECT raise_error('it was planned so')", "SELECT CAST('x' AS INT)", "",
        };
        for (String sql : failing) {
            step("error in " + sql, lines -> query(lines, sql));
        }
        step("no batches", lines -> {
            try (Statement statement = connection.createStatement()) {
                statement.addBatch("SELECT 1");
                lines.add(Arrays.toString(statement.executeBatch()));
            }
        });
        step("no callable statements", lines -> lines.add(String.valueOf(connection.prepareCall("SELECT 1"))));
    }

    // --- the session

    private void theSession(List<String> lines) throws SQLException {
        lines.add("catalog " + connection.getCatalog() + ", schema " + connection.getSchema());
        connection.setSchema(database);
        lines.add("schema " + connection.getSchema());
        query(lines, "SELECT current_database(), count(*) FROM facts");
        connection.setSchema("default");
        lines.add("valid " + connection.isValid(10) + ", warnings " + connection.getWarnings());
        lines.add("commits by itself " + connection.getAutoCommit() + ", read only " + connection.isReadOnly());
        connection.setClientInfo("ApplicationName", "steps");
        lines.add("isolation " + connection.getTransactionIsolation() + ", closed " + connection.isClosed());
    }

    private void settingsInTheUrl(List<String> lines) throws SQLException {
        String set = url.replace("/default", "/" + database) + "?spark.sql.session.timeZone=Asia/Tokyo#word=hello";
        try (Connection other = DriverManager.getConnection(set, "tester", "secret");
            Statement statement = other.createStatement()) {
            show(lines, statement.executeQuery("SELECT current_database(), current_timezone(), '${hivevar:word}'"));
        }
        lines.add("a database that is not there:");
        try (Connection other = DriverManager.getConnection(url.replace("/default", "/no_such_database"))) {
            lines.add("opened " + other.getSchema());
        } catch (SQLException failed) {
            lines.add(failure(failed));
        }
    }

    // --- how a step is taken and shown

    private void step(String name, Step step) {
        List<String> lines = new ArrayList<>();
        try {
            step.take(lines);
        } catch (Exception failed) {
            lines.add(failure(failed));
        }
        answers.put(name, lines);
    }

    private static String failure(Throwable failed) {
        String state = failed instanceof SQLException sql ? sql.getSQLState() + " " + sql.getErrorCode() : "";
        return "failed: " + failed.getClass().getSimpleName() + " " + state + " " + failed.getMessage();
    }

    private void execute(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private void query(List<String> lines, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            show(lines, statement.executeQuery(sql));
        }
    }

    private static void show(List<String> lines, ResultSet rows) throws SQLException {
        if (rows == null) {
            lines.add("no result");
            return;
        }
        ResultSetMetaData columns = rows.getMetaData();
        for (int column = 1; column <= columns.getColumnCount(); column++) {
            lines.add(describe(columns, column));
        }
        showRows(lines, rows);
        rows.close();
    }

    private static String describe(ResultSetMetaData columns, int column) throws SQLException {
        String size = columns.getPrecision(column) + "," + columns.getScale(column) + ",";
        return columns.getColumnLabel(column) + ": " + columns.getColumnTypeName(column) + " (" + size
            + columns.getColumnDisplaySize(column) + ") " + columns.getColumnClassName(column)
            + ", nullable " + columns.isNullable(column);
    }

    private static void showRows(List<String> lines, ResultSet rows) throws SQLException {
        int count = 0;
        long hash = 0;
        while (rows.next()) {
            String row = row(rows);
            hash = 31 * hash + row.hashCode();
            if (++count <= ROWS_SHOWN) {
                lines.add(row);
            }
        }
        lines.add(count + " rows, hash " + hash);
    }

    /** For results of which no row needs to be seen. */
    private static void showCounted(List<String> lines, ResultSet rows) throws SQLException {
        int count = 0;
        long hash = 0;
        while (rows.next()) {
            hash = 31 * hash + row(rows).hashCode();
            count++;
        }
        lines.add(count + " rows, hash " + hash);
    }

    private static String row(ResultSet rows) throws SQLException {
        int width = rows.getMetaData().getColumnCount();
        StringBuilder row = new StringBuilder();
        for (int column = 1; column <= width; column++) {
            Object value = rows.getObject(column);
            row.append(column > 1 ? " | " : "");
            row.append(value instanceof byte[] bytes ? HexFormat.of().formatHex(bytes) : value);
        }
        return row.toString();
    }

    @FunctionalInterface
    private interface Step {
        void take(List<String> lines) throws Exception;
    }

    @FunctionalInterface
    private interface CatalogCall {
        ResultSet make(DatabaseMetaData about) throws SQLException;
    }

    @FunctionalInterface
    private interface Setters {
        void set(PreparedStatement statement) throws SQLException;
    }

    /** As much of a JSON writer as strings need. */
    private static final class Json {
        static String object(Map<String, List<String>> members) {
            List<String> written = new ArrayList<>();
            members.forEach((name, lines) -> written.add(string(name) + ": " + array(lines)));
            return "{" + String.join(", ", written) + "}";
        }

        private static String array(List<String> items) {
            return "[" + String.join(", ", items.stream().map(Json::string).toList()) + "]";
        }

        private static String string(String text) {
            StringBuilder quoted = new StringBuilder("\"");
            for (char character : text.toCharArray()) {
                if (character == '"' || character == '\\') {
                    quoted.append('\\').append(character);
                } else if (character < ' ') {
                    quoted.append(String.format("\\u%04x", (int) character));
                } else {
                    quoted.append(character);
                }
            }
            return quoted.append('"').toString();
        }
    }
}
