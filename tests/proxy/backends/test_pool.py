"""Which backend a connection gets, whatever has happened before."""

from collections import Counter
from itertools import cycle

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.backend_farm import Clock

from proxy.backends.backend import Backend
from proxy.backends.circuit_breaker import FAILURES_MAX, OPEN_S, OPEN_S_MAX
from proxy.backends.health import Thresholds
from proxy.backends.pool import TRIES_MAX, BackendPool, Lease, PoolSettings
from proxy.backends.readiness import Readiness
from proxy.config.address import Address
from proxy.config.backend_list import MEMBERS_MAX, BackendEntry, PoolMember, distinct_members, split

A, B, C = (PoolMember(Address("spark", port)) for port in (1, 2, 3))


def backends_of(*members: PoolMember, clock: Clock | None = None, **limits: int) -> BackendPool:
    chances = cycle([0.3, 0.7, 0.1, 0.9, 0.5])
    return BackendPool(members, clock or Clock(), PoolSettings(**limits), lambda: next(chances))  # type: ignore[arg-type]


def found(backends: BackendPool, member: PoolMember) -> Backend:
    return next(backend for backend in backends.configured if backend.member == member)


def lease(backends: BackendPool, login: str | None = None) -> Lease:
    leased = backends.lease(login)
    assert leased is not None
    return leased


def break_down(backends: BackendPool, member: PoolMember) -> None:
    for _ in range(FAILURES_MAX):
        attempt = backends.lease_for_proxy(found(backends, member))
        assert attempt is not None
        attempt.backend_failed("Connection refused")
        attempt.release()


# --- choice


def test_new_connections_go_to_the_least_loaded() -> None:
    backends = backends_of(A, B, C)
    leases = [lease(backends) for _ in range(30)]
    assert Counter(one.member for one in leases) == {A: 10, B: 10, C: 10}
    for one in leases:
        if one.member == B:
            one.release()
    assert Counter(lease(backends).member for _ in range(10)) == {B: 10}


def test_a_weight_is_a_share_of_the_connections() -> None:
    backends = backends_of(A, PoolMember(B.address, weight=3))
    assert Counter(lease(backends).address for _ in range(40)) == {A.address: 10, B.address: 30}


def test_a_login_stays_together_up_to_a_number_and_spreads_then() -> None:
    backends = backends_of(A, B, login_together_max=4)
    others = [lease(backends, f"other {number}") for number in range(6)]
    mine = [lease(backends, "me") for _ in range(4)]
    assert len({one.member for one in mine}) == 1
    for one in others:
        one.release()
    crowd = Counter(lease(backends, "me").member for _ in range(20))
    assert abs(crowd[A] - crowd[B]) <= 4, "a service account with many connections is spread"


def test_a_login_without_connections_is_where_everybody_else_may_be() -> None:
    backends = backends_of(A, B)
    first = lease(backends, "me")
    first.release()
    other = next(one for one in (A, B) if one != first.member)
    taken = lease(backends)
    if taken.member == other:
        taken.release()
    assert lease(backends, "me").member in (A, B)
    assert found(backends, A).logins + found(backends, B).logins == Counter(me=1)


def test_a_login_whose_backend_is_drained_goes_elsewhere() -> None:
    backends = backends_of(A, B)
    home = lease(backends, "me").member
    assert backends.drain(home.name, on=True)
    assert lease(backends, "me").member != home


def test_no_connection_goes_to_a_backend_that_is_full_and_the_reason_says_so() -> None:
    backends = backends_of(A, B, connections_max=3)
    leases = [lease(backends) for _ in range(6)]
    search = backends.search("me")
    assert search.next_lease() is None
    assert search.reason == (
        "each backend has 3 connections already (proxy.backend_connections_max); try again later"
    )
    assert leases[0].lease_for_proxy() is None
    leases[0].release()
    assert lease(backends).member == leases[0].member


def test_connections_of_ours_count() -> None:
    backends = backends_of(A, connections_max=2)
    client = lease(backends)
    own = client.lease_for_proxy()
    assert own is not None
    assert own.member == A
    assert backends.lease(None) is None
    own.release()
    assert backends.lease(None) is not None


# --- failures


def test_a_client_is_sent_to_the_next_backend_and_not_twice_to_one() -> None:
    backends = backends_of(A, B, C)
    search = backends.search("me")
    tried = []
    while (one := search.next_lease()) is not None:
        tried.append(one.member)
        search.lease_failed("Connection refused")
    assert set(tried) == {A, B, C}
    assert len(tried) == 3
    assert sorted(search.reason.split("; ")) == [f"spark:{n}: Connection refused" for n in (1, 2, 3)]
    assert all(backend.connections == 0 for backend in backends.configured)


def test_a_client_waits_for_no_more_than_a_few() -> None:
    backends = backends_of(*(PoolMember(Address("spark", port)) for port in range(1, 20)))
    search = backends.search("me")
    for _ in range(TRIES_MAX):
        assert search.next_lease() is not None
        search.lease_failed("no connection within 10 s")
    assert search.next_lease() is None


def test_a_login_that_nobody_answers_counts_against_one_backend_alone() -> None:
    backends = backends_of(A, B, C)
    for number in range(1, 4):
        search = backends.search("me")
        while search.next_lease() is not None:
            search.login_unanswered("closed")
        assert sum(backend.failures for backend in backends.configured) == number
        assert search.reason.count("closed") == len(backends.configured)
    assert all(backend.connections == 0 for backend in backends.configured)


def test_backends_that_do_not_answer_a_login_count_once_another_has_answered_it() -> None:
    backends = backends_of(A, B, C)
    search, silent = backends.search("me"), []
    for _ in range(2):
        one = search.next_lease()
        assert one is not None
        silent.append(one.member)
        search.login_unanswered("closed")
    assert search.next_lease() is not None
    for _ in range(2):
        search.login_answered()
    assert {
        backend.member: backend.failures for backend in backends.configured if backend.failures
    } == dict.fromkeys(silent, 1)


def test_one_of_which_a_client_waits_no_longer_is_told_and_does_not_count() -> None:
    backends = backends_of(A, B)
    search = backends.search("me")
    assert search.next_lease() is not None
    search.login_unanswered("closed")
    assert search.next_lease() is not None
    assert sorted(part[len("spark:1: ") :] for part in search.time_is_up("too late").split("; ")) == [
        "closed",
        "too late",
    ]
    assert sum(backend.failures for backend in backends.configured) == 1


def test_one_that_keeps_failing_is_left_alone_and_then_tried_by_one_client_that_brings_it_back() -> None:
    clock = Clock()
    backends = backends_of(A, B, clock=clock)
    break_down(backends, A)
    assert {lease(backends).member for _ in range(5)} == {B}
    clock.now += OPEN_S
    leases = [lease(backends) for _ in range(5)]
    assert Counter(one.member for one in leases) == {A: 1, B: 4}
    next(one for one in leases if one.member == A).backend_answered()
    assert Counter(lease(backends).member for _ in range(8)) == {A: 8}


def test_a_trial_that_ends_without_a_word_makes_room_for_another() -> None:
    clock = Clock()
    backends = backends_of(A, B, clock=clock)
    break_down(backends, A)
    clock.now += OPEN_S
    trial = next(one for one in (lease(backends) for _ in range(3)) if one.member == A)
    trial.release()
    assert A in {lease(backends).member for _ in range(3)}


def test_where_all_are_down_the_least_bad_is_tried() -> None:
    backends = backends_of(A, B)
    for member in (A, B):
        break_down(backends, member)
    for _ in range(3):
        found(backends, A).login_health.record_probe(answered=False)
    assert not backends.is_any_healthy
    assert lease(backends).member == B


def test_one_backend_alone_is_always_tried() -> None:
    backends = backends_of(A)
    break_down(backends, A)
    for _ in range(5):
        found(backends, A).login_health.record_probe(answered=False)
    assert lease(backends).member == A


def test_queries_that_fail_take_a_backend_out_though_its_logins_work() -> None:
    backends = backends_of(A, B)
    for _ in range(2):
        found(backends, A).query_health.record_probe(answered=False)
        found(backends, A).login_health.record_probe(answered=True)
    assert {lease(backends).member for _ in range(3)} == {B}


def test_a_backends_failures_are_shown_the_last_first_and_only_a_few() -> None:
    clock = Clock()
    backends = backends_of(A, clock=clock)
    for number in range(10):
        backends.configured[0].record_failure(f"failure {number}")
        clock.now += 1
    (view,) = backends.views()
    assert view.failures == 10
    assert [(one.reason, one.seconds_ago) for one in view.last_failures][:2] == [
        ("failure 9", 1.0),
        ("failure 8", 2.0),
    ]
    assert len(view.last_failures) == 5


# --- drain and configuration


def test_a_drained_backend_takes_nothing_even_where_no_other_is_healthy() -> None:
    backends = backends_of(A, B)
    assert backends.drain("spark:1", on=True)
    break_down(backends, B)
    assert {lease(backends).member for _ in range(4)} == {B}
    assert backends.drain("spark:1", on=False)
    assert A in {lease(backends).member for _ in range(4)}
    assert not backends.drain("spark:9", on=True)


def test_where_all_are_drained_the_client_is_told() -> None:
    backends = backends_of(A)
    backends.drain("spark:1", on=True)
    search = backends.search()
    assert search.next_lease() is None
    assert search.reason == "it is being drained and takes no new sessions"


def test_a_backend_that_is_configured_no_more_is_forgotten_with_its_last_connection() -> None:
    backends = backends_of(A, B)
    leases = [lease(backends) for _ in range(2)]
    backends.configure([B])
    assert {lease(backends).member for _ in range(4)} == {B}
    assert {(view.name, view.draining) for view in backends.views()} == {("spark:1", True), ("spark:2", False)}
    for one in leases:
        one.release()
    lease(backends)
    assert {view.name for view in backends.views()} == {"spark:2"}


def test_a_backend_that_is_configured_again_goes_on_as_it_was() -> None:
    backends = backends_of(A, B)
    leases = [lease(backends) for _ in range(4)]
    backends.configure([B])
    backends.configure([A, B])
    assert found(backends, A).connections == 2
    assert len(leases) == 4
    assert Counter(lease(backends).member for _ in range(2)) == {A: 1, B: 1}


def test_without_any_backend_the_client_is_told() -> None:
    search = backends_of().search("me")
    assert search.next_lease() is None
    assert search.reason == "its name has no address that is known"
    assert backends_of().display_name == "that is configured"


def test_of_backends_that_come_and_go_only_those_with_connections_are_kept() -> None:
    backends = backends_of()
    leases = []
    for number in range(300):
        backends.configure([PoolMember(Address(f"10.0.0.{number}", 1))])
        one = lease(backends)
        if number % 100:
            one.release()
        else:
            leases.append(one)
    names = [view.name for view in backends.views()]
    assert names == ["10.0.0.0:1", "10.0.0.100:1", "10.0.0.200:1", "10.0.0.299:1"]
    for one in leases:
        one.release()
    backends.configure([A])
    assert [view.name for view in backends.views()] == ["spark:1"]


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        ("spark:10000", ("spark:10000", 1, False)),
        ("spark:10000 weight=12", ("spark:10000", 12, False)),
        ("dns:spark.internal:10000", ("spark.internal:10000", 1, True)),
        ("dns:spark.internal:10000 weight=2", ("spark.internal:10000", 2, True)),
        ("dns:10000", ("dns:10000", 1, False)),
        ("[::1]:10000", ("[::1]:10000", 1, False)),
    ],
)
def test_an_entry_of_the_configuration(entry: str, parts: tuple[str, int, bool]) -> None:
    assert split(entry) == parts


@pytest.mark.parametrize("entry", ["spark", "spark:1 weight=0", "spark:1 weight", "dns:spark", "", "a b:1", "::1"])
def test_what_is_no_entry_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        split(entry)


def test_addresses_that_two_names_have_are_one_backend() -> None:
    first, second = (
        BackendEntry(Address("a", 1), is_looked_up=True),
        BackendEntry(Address("b", 1), 2, is_looked_up=True),
    )
    members = distinct_members(
        [*first.members(("10.0.0.1", "10.0.0.2")), *second.members(("10.0.0.2", "10.0.0.3"))]
    )
    assert [(str(one.address), one.weight, one.address.name) for one in members] == [
        ("10.0.0.1:1", 1, "a"),
        ("10.0.0.2:1", 1, "a"),
        ("10.0.0.3:1", 2, "b"),
    ]
    assert len(distinct_members([PoolMember(Address("a", port)) for port in range(1, 200)])) == MEMBERS_MAX


# --- whatever happens


class Operations(RuleBasedStateMachine):
    """Clients come, go and fail, probes tell what they like, and somebody drains: the counts and rules hold."""

    LIMIT = 5

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.backends = backends_of(A, B, C, clock=self.clock, connections_max=self.LIMIT, login_together_max=2)
        self.leases: list[Lease] = []

    @rule(login=st.sampled_from(["ann", "bob", None]))
    def a_client_connects(self, login: str | None) -> None:
        eligible = {one.member for one in self.backends.configured if one.is_eligible and self._has_room(one)}
        any_room = any(self._has_room(one) for one in self.backends.configured)
        leased = self.backends.lease(login)
        assert (leased is not None) is any_room, "the least bad is tried"
        if leased is not None:
            assert not eligible or leased.member in eligible
            self.leases.append(leased)

    @rule(data=st.data())
    @precondition(lambda self: self.leases)
    def something_becomes_of_it(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.leases))
        if data.draw(st.booleans()):
            one.backend_answered()
        else:
            one.backend_failed("closed")

    @rule(data=st.data())
    @precondition(lambda self: self.leases)
    def it_ends(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.leases))
        one.release()
        one.release()
        self.leases.remove(one)

    @rule(data=st.data(), answered=st.booleans(), times=st.integers(1, 3))
    def a_probe_ends(self, data: st.DataObject, *, answered: bool, times: int) -> None:
        backend = data.draw(st.sampled_from(self.backends.configured))
        for _ in range(times):
            backend.record_probe(backend.login_health, None if answered else "refused")

    @rule(member=st.sampled_from([A, B, C]), on=st.booleans())
    def somebody_drains(self, member: PoolMember, *, on: bool) -> None:
        self.backends.drain(member.name, on=on)

    @rule(members=st.sets(st.sampled_from([A, B, C]), min_size=1))
    def the_configuration_changes(self, members: set[PoolMember]) -> None:
        self.backends.configure(members)

    @rule(seconds=st.floats(0.1, OPEN_S_MAX))
    def time_goes_by(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def counts_are_those_of_the_leases(self) -> None:
        counted = {view.name: view.connections for view in self.backends.views() if view.connections}
        assert counted == Counter(one.member.name for one in self.leases)
        assert all(count <= self.LIMIT for count in counted.values())

    @invariant()
    def what_is_told_is_what_the_choice_goes_by(self) -> None:
        for view, backend in zip(self.backends.views(), self.backends._backends.values(), strict=True):  # noqa: SLF001
            assert view.healthy is (backend.takes_sessions and backend.is_healthy)
            assert backend.is_eligible or not backend.is_healthy
        assert (Readiness(self.backends).why_not_ready() is None) is self.backends.is_any_healthy

    def teardown(self) -> None:
        """Whatever has happened, it passes: with everybody gone and enough time all three work again."""
        for one in self.leases:
            one.release()
        self.backends.configure([A, B, C])
        for backend in self.backends.configured:
            self.backends.drain(backend.member.name, on=False)
            for _ in range(Thresholds().successes_to_up):
                backend.login_health.record_probe(answered=True)
            assert not backend.logins
        self.clock.now += OPEN_S_MAX
        leases = [lease(self.backends) for _ in range(3)]
        assert {one.member for one in leases} == {A, B, C}
        for one in leases:
            one.backend_answered()
        assert all(view.healthy and view.breaker == "closed" for view in self.backends.views())

    def _has_room(self, backend: Backend) -> bool:
        return backend.takes_sessions and backend.connections < self.LIMIT


TestOperations = Operations.TestCase
TestOperations.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
