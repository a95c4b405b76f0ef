"""How Java runs the servers of the tests."""

from typing import Final

# Where tables are tiny, compiling Java well takes longer than running it: with the better compiler, a golden case
# takes two thirds more of the processor's time. The collector is the one that takes the least of it.
QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"
