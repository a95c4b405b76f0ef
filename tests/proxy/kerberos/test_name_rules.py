"""Rules from principals to short names, as Hadoop has them."""

import pytest

from proxy.kerberos.errors import KerberosError
from proxy.kerberos.name_rules import NameRules
from proxy.kerberos.principals import parse_principal

# Rules of Hadoop's documentation (Secure Mode) and of its TestKerberosName.
DOCUMENTED = (
    "RULE:[2:$1/$2@$0]([ndj]n/.*@REALM.\\TLD)s/.*/hdfs/",
    "RULE:[2:$1/$2@$0]([rn]m/.*@REALM\\.TLD)s/.*/yarn/",
    "RULE:[2:$1/$2@$0](jhs/.*@REALM\\.TLD)s/.*/mapred/",
    "DEFAULT",
)
TESTED = (
    "RULE:[1:$1@$0](.*@YAHOO\\.COM)s/@.*//",
    "RULE:[2:$1](johndoe)s/^.*$/guest/",
    "RULE:[2:$1;$2](^.*;admin$)s/;admin$//",
    "RULE:[2:$2](root)",
    "DEFAULT",
)


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        (TESTED, "omalley@APACHE.ORG", "omalley"),
        (TESTED, "hdfs/10.0.0.1@APACHE.ORG", "hdfs"),
        (TESTED, "oom@YAHOO.COM", "oom"),
        (TESTED, "johndoe/zoo@FOO.COM", "guest"),
        (TESTED, "joe/admin@FOO.COM", "joe"),
        (TESTED, "joe/root@FOO.COM", "root"),
        (DOCUMENTED[1:], "rm/host1@REALM.TLD", "yarn"),
        (DOCUMENTED[1:], "jhs/host1@REALM.TLD", "mapred"),
        (["RULE:[1:$1]/L"], "Joe@FOO.COM", "joe"),
        (["RULE:[2:$1]/L"], "Joe/Root@FOO.COM", "joe"),
        (["RULE:[1:$1@$0](.*@EXAMPLE.COM)s/@.*//L"], "ANNA@EXAMPLE.COM", "anna"),
        (["RULE:[1:$1]s/a/x/g"], "anna@EXAMPLE.COM", "xnnx"),
        (["RULE:[1:$1]s/a/x/"], "anna@EXAMPLE.COM", "xnna"),
        (["RULE:[1:$1]s/(.)(.)/$2$1/"], "anna@EXAMPLE.COM", "nana"),
    ],
)
def test_a_rule_makes_the_name_that_hadoop_makes(rules: tuple[str, ...], principal: str, user: str) -> None:
    assert NameRules(rules, "APACHE.ORG").short_name(parse_principal(principal)) == user


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (TESTED, "foo@ACME.COM"),
        (("DEFAULT",), "anna@APACHE.ORG.EVIL"),
        (("RULE:[1:$1/$1]", "DEFAULT"), "anna@APACHE.ORG"),
        (("RULE:[1:$1@$0]", "DEFAULT"), "anna@APACHE.ORG"),
        (("RULE:[1:]", "DEFAULT"), "anna@APACHE.ORG"),
        (("RULE:[1:$1](\\w+)",), "änna@APACHE.ORG"),
    ],
)
def test_a_principal_without_a_simple_name_is_nobody(rules: tuple[str, ...], principal: str) -> None:
    with pytest.raises(KerberosError, match="auth_to_local"):
        NameRules(rules, "APACHE.ORG").short_name(parse_principal(principal))


@pytest.mark.parametrize(
    "rule",
    [
        "RULE",
        "RULE:[1:$2]",
        "RULE:[1:$1](()",
        "RULE:[1:$1]s/(/x/",
        "RULE:[1:$1]s/(a)/$2/",
        "RULE:[1:$1]s/a/$1/",
        "default",
        "",
    ],
)
def test_a_rule_that_cannot_be_read_is_named(rule: str) -> None:
    with pytest.raises(KerberosError):
        NameRules([rule], "APACHE.ORG")


@pytest.mark.parametrize(
    "text", ["anna", "@R", "a/b/c@R", "a@b@c", "a\\@b@R", "a\\/b@R", "", "a/@R", "/b@R", "a@R\n"]
)
def test_a_text_that_is_no_plain_name_is_refused(text: str) -> None:
    with pytest.raises(KerberosError):
        parse_principal(text)


def test_the_host_stands_for_its_pattern_alone() -> None:
    assert str(parse_principal("hive/_HOST@R").at_host("Spark-1")) == "hive/spark-1@R"
    assert str(parse_principal("hive/other@R").at_host("Spark-1")) == "hive/other@R"
    assert str(parse_principal("anna@R").at_host("Spark-1")) == "anna@R"
