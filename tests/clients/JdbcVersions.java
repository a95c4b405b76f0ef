import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.StringJoiner;
import org.apache.hive.jdbc.HiveStatement;

/**
 * Takes the few steps in which versions of hive-jdbc differ against each server whose URL is on the command line, and
 * prints a line for each: the URL's number, the step, and its answer. A URL that begins with "async " also executes a
 * statement by executeAsync, which never returns where the server does not say if there is a result set.
 */
final class JdbcVersions {
    private static final String ASYNC = "async ";

    public static void main(String[] urls) {
        for (int number = 0; number < urls.length; number++) {
            String url = urls[number];
            try (Connection connection = DriverManager.getConnection(url.replace(ASYNC, ""), "tester", "secret")) {
                take(number, connection, url.startsWith(ASYNC));
            } catch (SQLException | RuntimeException failed) {
                say(number, "failed", failed.getClass().getSimpleName() + " " + failed.getMessage());
            }
        }
    }

    private static void take(int number, Connection connection, boolean isAsync) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            say(number, "a thousand rows", rows(statement.executeQuery("SELECT id FROM range(0, 1000, 1, 1)")));
            say(number, "fetch size", String.valueOf(statement.getFetchSize()));
            say(number, "no result", statement.execute("SET a=b") + " " + statement.getUpdateCount());
        }
        try (PreparedStatement prepared = connection.prepareStatement("SELECT ?, ?")) {
            prepared.setString(1, "it's");
            prepared.setInt(2, 7);
            say(number, "prepared", rows(prepared.executeQuery()));
        }
        say(number, "schemas", rows(connection.getMetaData().getSchemas(null, "defaul_")));
        say(number, "types", rows(connection.getMetaData().getTypeInfo()));
        if (isAsync) {
            try (HiveStatement statement = (HiveStatement) connection.createStatement()) {
                boolean hasRows = statement.executeAsync("SELECT 'in the background'");
                say(number, "async", hasRows + " " + rows(statement.getResultSet()));
            }
        }
    }

    private static String rows(ResultSet found) throws SQLException {
        StringJoiner shown = new StringJoiner(" / ");
        int width = found.getMetaData().getColumnCount();
        int count = 0;
        while (found.next()) {
            StringJoiner row = new StringJoiner(",");
            for (int column = 1; column <= width; column++) {
                row.add(String.valueOf(found.getObject(column)));
            }
            if (count++ < 50) {
                shown.add(row.toString());
            }
        }
        found.close();
        return count + " rows " + shown;
    }

    private static void say(int number, String step, String answer) {
        System.out.println(number + "\t" + step + "\t" + answer.replaceAll("\\s+", " "));
    }
}
