"""How Java runs the servers of the tests."""

from typing import Final

# For a server of a few tests on tiny tables: within its first two minutes, the better compiler takes more of the
# processor than it saves. The server of the whole session is there for long enough. The collector is the one that
# takes the least of the processor.
QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"
