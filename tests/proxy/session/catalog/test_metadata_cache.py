"""What is kept of answers that sessions of one state share, and for how long."""

from proxy.config.rewriting import CatalogSection
from proxy.operations.session_port import KnownState, SessionOpening
from proxy.session.catalog.caches import NegativeCache
from proxy.session.catalog.metadata_cache import MetadataCache


def test_a_query_that_was_asked_in_vain_is_remembered_for_a_while() -> None:
    now = [0.0]
    in_vain = NegativeCache(lambda: now[0], believed_s=600.0)
    in_vain.add("SELECT k FROM d")
    assert in_vain.holds("SELECT k FROM d")
    assert not in_vain.holds("SELECT k FROM other")
    now[0] = 600.0
    assert not in_vain.holds("SELECT k FROM d")


def test_of_many_queries_the_last_ones_are_remembered() -> None:
    in_vain = NegativeCache(lambda: 0.0, believed_s=600.0, queries_max=2)
    for sql in ("a", "b", "a", "c"):
        in_vain.add(sql)
    assert [sql for sql in "abc" if in_vain.holds(sql)] == ["a", "c"]


def test_of_many_states_those_used_last_are_remembered() -> None:
    knowledge = MetadataCache(CatalogSection(), lambda: 0.0, states_max=2)
    one, two, three = (KnownState(digest, SessionOpening(login="ann")) for digest in (b"1", b"2", b"3"))
    first, second = knowledge.of(one), knowledge.of(two)
    assert knowledge.of(one) is first
    _ = knowledge.of(three)
    assert knowledge.of(one) is first
    assert knowledge.of(two) is not second
    assert knowledge.kept(b"4") is None
