import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.security.authentication.util.KerberosName;

/** Prints the short name that Hadoop makes of each line of the input: rules, a tab, a principal. "!" for none. */
final class ShortNames {
    private ShortNames() {
    }

    public static void main(String[] arguments) throws IOException {
        KerberosName.setRuleMechanism("hadoop");
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            System.out.println(shortName(words[0], words[1]));
        }
    }

    private static String shortName(String rules, String principal) {
        try {
            KerberosName.setRules(rules);
            return new KerberosName(principal).getShortName();
        } catch (IOException | RuntimeException error) {
            return "!";
        }
    }
}
