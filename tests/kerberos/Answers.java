import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Prints the rows of a query, a line each, with tabs between the columns: of a URL and a text. */
final class Answers {
    private Answers() {
    }

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0]);
            Statement statement = connection.createStatement();
            ResultSet rows = statement.executeQuery(arguments[1])) {
            while (rows.next()) {
                StringBuilder line = new StringBuilder();
                for (int column = 1; column <= rows.getMetaData().getColumnCount(); column++) {
                    line.append(column > 1 ? "\t" : "").append(rows.getString(column));
                }
                System.out.println(line);
            }
        }
    }
}
