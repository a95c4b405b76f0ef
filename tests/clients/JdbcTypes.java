import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * Runs each query that follows the URL on the command line, and prints a line for it: the type of its first column
 * and the value in its first row, or how it fails.
 */
final class JdbcTypes {
    public static void main(String[] words) throws SQLException {
        try (Connection connection = DriverManager.getConnection(words[0], "tester", "secret");
            Statement statement = connection.createStatement()) {
            for (int number = 1; number < words.length; number++) {
                System.out.println(answer(statement, words[number]).replaceAll("[\\r\\n]+", " "));
            }
        }
    }

    private static String answer(Statement statement, String sql) {
        try (ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getMetaData().getColumnTypeName(1) + "\t" + rows.getObject(1);
        } catch (SQLException failed) {
            return "failed\t" + failed.getMessage();
        }
    }
}
