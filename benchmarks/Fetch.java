import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Properties;

/** Fetches all rows of a query through hive-jdbc, once for each line of its input, and prints the seconds. */
public class Fetch {
    public static void main(String[] args) throws Exception {
        String url = args[0];
        String sql = args[1];
        Properties login = new Properties();
        login.setProperty("user", "bench");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        try (Connection connection = DriverManager.getConnection(url, login);
                Statement statement = connection.createStatement()) {
            while (input.readLine() != null) {
                long start = System.nanoTime();
                long rows = 0;
                try (ResultSet result = statement.executeQuery(sql)) {
                    while (result.next()) {
                        result.getLong(1);
                        result.getString(2);
                        rows++;
                    }
                }
                System.out.println(rows + " " + (System.nanoTime() - start) / 1e9);
            }
        }
    }
}
