"""Settings under which a Spark server costs little for statements over tables of a few rows.

Compiling a query takes far longer than running it over a dozen rows, and so does planning it again after each
stage. The deep run has none of these settings, so that every test meets Spark as users run it once there.
"""

from typing import Final

from support.profile import DEEP

# Without code made for each query.
INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# A test that is about plans as users have them sets them in its session.
CONF: Final = {
    **INTERPRETED,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.broadcast.compress": "false",
    "spark.shuffle.compress": "false",
}

# In the minutes that a server of tests lives, the better compiler takes more of the processor than it saves, and
# so do collectors that work beside the program. Derby need not keep what it wrote past a crash of the machine.
QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"
# With that compiler alone Java reserves 48 MB for compiled code, which the server of many tests fills: it ends by
# "Out of space in CodeCache for adapters". With both compilers Java reserves 240 MB.
_CODE: Final = "-XX:ReservedCodeCacheSize=240m"
QUICK_JAVA: Final = f"{QUICK_COMPILER} {_CODE} -XX:+UseSerialGC -Dderby.system.durability=test"


def conf() -> dict[str, str]:
    """The settings of a server for statements alone, none in the deep run."""
    return {} if DEEP else dict(CONF)


def interpreted() -> dict[str, str]:
    """The settings of a server on which the pipeline runs too, whose writes need adaptive plans."""
    return {} if DEEP else dict(INTERPRETED)


def shared_java() -> str:
    """The options of Java for the server that most tests share, which in the deep run lives for long."""
    return "" if DEEP else QUICK_JAVA
