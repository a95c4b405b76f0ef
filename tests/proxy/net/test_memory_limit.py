"""The limit of memory of cgroups, of either version, and of the machine."""

import os
from pathlib import Path

import pytest

from proxy.net.memory_limit import memory_limit

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
MIB = 1024 * 1024
V1, V2 = "memory/{}memory.limit_in_bytes", "{}memory.max"


def limit(directory: Path, cgroup: str | bytes | None, files: dict[str, str]) -> int:
    """The limit where /proc/self/cgroup says so, and these files are there."""
    if cgroup is not None:
        own = directory / "proc" / "self" / "cgroup"
        own.parent.mkdir(parents=True)
        own.write_bytes(cgroup.encode() if isinstance(cgroup, str) else cgroup)
    for name, text in files.items():
        file = directory / "cgroups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return memory_limit(directory / "proc", directory / "cgroups")


@pytest.mark.parametrize("cgroup", ["0::/\n", "0::/docker/of-the-machine\n"])
def test_a_container_s_own_limit_is_that_of_the_root_that_it_sees(tmp_path: Path, cgroup: str) -> None:
    assert limit(tmp_path, cgroup, {V2.format(""): f"{160 * MIB}\n"}) == 160 * MIB


def test_with_cgroups_of_version_1_too(tmp_path: Path) -> None:
    cgroup = "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n1:name=systemd:/docker/a\n0::/\n"
    assert limit(tmp_path, cgroup, {V1.format(""): f"{160 * MIB}\n"}) == 160 * MIB


@pytest.mark.parametrize("lower", ["system.slice/starpruner.service/", "system.slice/", ""])
@pytest.mark.parametrize(("line", "name", "none"), [("4:memory:", V1, f"{2**63 - 4096}"), ("0::", V2, "max")])
def test_the_lowest_of_a_unit_and_of_what_is_around_it_counts(
    tmp_path: Path, line: str, name: str, none: str, lower: str
) -> None:
    around = dict.fromkeys(("", "system.slice/", "system.slice/starpruner.service/"), none)
    files = {name.format(path): f"{text}\n" for path, text in {**around, lower: f"{200 * MIB}"}.items()}
    assert limit(tmp_path, f"{line}/system.slice/starpruner.service\n", files) == 200 * MIB


@pytest.mark.parametrize("odd", [b"odd", b"4:memory", b"1:name=\xff:/\xff", b"0:\x85:/a", b"0::/\xe2\x80\xa8b"])
def test_lines_that_nobody_understands_are_passed_over(tmp_path: Path, odd: bytes) -> None:
    assert limit(tmp_path, odd + b"\n0::/\n", {V2.format(""): f"{160 * MIB}\n"}) == 160 * MIB


@pytest.mark.parametrize("cgroup", [None, "", "0::/\n"])
def test_without_one_it_is_the_machine_s_memory(tmp_path: Path, cgroup: str | None) -> None:
    assert limit(tmp_path, cgroup, {}) == MACHINE
