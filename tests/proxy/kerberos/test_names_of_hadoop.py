"""Short names against Hadoop's own class, by rules and principals at random: the same name, or none."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

from support.maven import require_compiler

from demo.java import Java, spark_home
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.name_rules import NameRules
from proxy.kerberos.principals import parse_principal

PROGRAM = Path(__file__).with_name("ShortNames.java")
REALM = "APACHE.ORG"
CASES = 10_000
SEED = 26

PARTS = (
    "anna",
    "bob",
    "hive",
    "ANNA",
    "änna",
    "öl",
    "a.b",
    "x_y",
    "10.0.0.1",
    "host.example.com",
    "a b",
    "a$b",
    "a;b",
)
REALMS = (REALM, "EXAMPLE.COM", "APACHE.ORG.EVIL", "apache.org")
FORMATS = ("$1", "$2", "$1@$0", "$1;$2", "$1$2", "$0", "x$1", "$1.$1", "$1-$0", "")
MATCHES = (
    "",
    ".*",
    "anna",
    "(a",
    "[a-z]+",
    r"\w+",
    r"anna@APACHE\.ORG",
    ".*@EXAMPLE.COM",
    "(?i)anna",
    "a|b",
    r"\d.*",
)
PATTERNS = ("@.*", ".*", "^.*$", "a", "(.)(.)", "[^a-z]", "", "x|n", "(.+)@(.+)", r"\.", "$", "(?i)A")
REPLACEMENTS = ("", "guest", "x", "$1", "$2$1", "_", "$0", r"\$", r"a\b")
ENDS = ("", "g", "/L", "gL", "g/L", "L")


def a_rule(random: Random) -> str:
    if random.random() < 0.2:
        return "DEFAULT"
    parts = random.choice((1, 2))
    formats = [each for each in FORMATS if all(int(part) <= parts for part in re.findall(r"\d", each))]
    rule = f"RULE:[{parts}:{random.choice(formats)}]"
    if random.random() < 0.5:
        rule += f"({random.choice(MATCHES)})"
    if random.random() < 0.6:
        rule += f"s/{random.choice(PATTERNS)}/{random.choice(REPLACEMENTS)}/{random.choice(ENDS)}"
    return rule


def a_principal(random: Random) -> str:
    host = f"/{random.choice(PARTS)}" if random.random() < 0.5 else ""
    return f"{random.choice(PARTS)}{host}@{random.choice(REALMS)}"


def our_name(rules: Sequence[str], principal: str) -> str:
    try:
        return NameRules(rules, REALM).short_name(parse_principal(principal))
    except KerberosError:
        return "!"


def names_of_hadoop(java: Java, cases: list[tuple[list[str], str]]) -> list[str]:
    jars = spark_home() / "jars"
    class_path = ":".join(str(jar) for pattern in ("hadoop-client-*", "slf4j-api-*") for jar in jars.glob(pattern))
    options = ["-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-XX:TieredStopAtLevel=1"]
    options += [f"-Djava.security.krb5.realm={REALM}", "-Djava.security.krb5.kdc=none.invalid"]
    done = subprocess.run(
        [str(java.path), *options, "-cp", class_path, str(PROGRAM)],
        input="".join(f"{' '.join(rules)}\t{principal}\n" for rules, principal in cases),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_name_is_that_of_hadoop_or_none(java: Java) -> None:
    require_compiler(java)
    random = Random(SEED)  # noqa: S311 - the same each time
    cases = [([a_rule(random) for _ in range(random.randint(1, 3))], a_principal(random)) for _ in range(CASES)]
    found = [
        (rules, principal, our_name(rules, principal), hadoops)
        for (rules, principal), hadoops in zip(cases, names_of_hadoop(java, cases), strict=True)
    ]
    assert [each for each in found if each[2] not in (each[3], "!")] == []
    # Of the names that Hadoop makes, we refuse those that are empty and rules that are never right.
    assert sum(ours != "!" for *_, ours, _ in found) > CASES / 5
