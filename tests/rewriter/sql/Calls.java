import java.nio.charset.StandardCharsets;
import org.antlr.v4.runtime.BailErrorStrategy;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.misc.ParseCancellationException;
import org.antlr.v4.runtime.tree.ParseTree;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.SqlBaseParser;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;

/** Reads texts between zero bytes, and prints a line for each: the offsets of the functions that it calls, or "no". */
public final class Calls {
    public static void main(String[] arguments) throws Exception {
        String texts = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        StringBuilder lines = new StringBuilder();
        for (String text : texts.split("\0")) {
            StringBuilder found = new StringBuilder("calls");
            try {
                var lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(text)));
                lexer.removeErrorListeners();
                var parser = new SqlBaseParser(new CommonTokenStream(lexer));
                parser.removeErrorListeners();
                parser.setErrorHandler(new BailErrorStrategy());
                find(parser.singleStatement(), found);
                lines.append(found).append('\n');
            } catch (ParseCancellationException error) {
                lines.append("no\n");
            }
        }
        System.out.print(lines);
    }

    private static void find(ParseTree node, StringBuilder found) {
        if (node instanceof SqlBaseParser.FunctionNameContext name) {
            boolean ofTables = !(name.getParent() instanceof SqlBaseParser.FunctionCallContext);
            found.append(ofTables ? " T" : " S").append(((ParserRuleContext) node).stop.getStartIndex());
        }
        for (int at = 0; at < node.getChildCount(); at++) {
            find(node.getChild(at), found);
        }
    }
}
