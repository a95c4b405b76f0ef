"""The image of the proxy: small, without a word about the machine that built it, and it serves."""

import asyncio
import json
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from async_client import AsyncClient
from canned_backend import canned_backend
from support.container_engine import ROOT, Built, Engine, debian_mirror, engine, package_index
from support.profile import only_deep
from testcontainers.core.container import DockerContainer

from demo.hive import Endpoint, connect, free_port, run
from demo.thrift_server import ThriftServer

PATIENCE_S = 60.0
# Of the proxy and all that it needs; python:3.12-slim-bookworm has some 125 MB below it.
OWN_BYTES_MAX = 31_000_000
STAR_JOIN = """SELECT count(*) FROM small_star.visits v JOIN small_star.days d ON v.ds = d.ds
WHERE d.weekday = 'Sunday'"""


# See test_compose.py.
pytestmark = [pytest.mark.xdist_group("containers"), pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def docker(built: Built) -> Iterator[Engine]:
    """An engine in the machine's own network, where Spark listens."""
    with engine(built.directory) as running:
        yield running


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def files_with(archive: tarfile.TarFile, words: list[bytes]) -> list[str]:
    """The files that have one of the words in them, in the layers of an image too."""
    found = []
    for member in archive:
        content = archive.extractfile(member) if member.isfile() else None
        if content is None:
            continue
        if member.name.endswith("layer.tar"):
            with tarfile.open(fileobj=content) as layer:
                found += files_with(layer, words)
        elif any(word in content.read() for word in words):
            found.append(member.name)
    return found


def test_the_image_is_small_and_names_no_host_and_no_secret(docker: Engine, built: Built, tmp_path: Path) -> None:
    sizes = [json.loads(docker.docker("image", "inspect", name))[0]["Size"] for name in (built.proxy, built.base)]
    assert sizes[0] - sizes[1] < OWN_BYTES_MAX
    hosts = {urlsplit(line.split()[-1]).hostname for line in (debian_mirror(), *package_index())}
    words = [host.encode() for host in hosts if host and host not in {"deb.debian.org", "pypi.org"}]
    archive = tmp_path / "image.tar"
    docker.docker("save", built.proxy, "-o", str(archive))
    with tarfile.open(archive) as saved:
        assert files_with(saved, words) == []


@only_deep("builds another image")
def test_the_image_can_be_built_to_send_spans(docker: Engine, built: Built) -> None:
    image = "starpruner-tracing:0.1.0"
    arguments = {"BUILD_IMAGE": built.base, "BASE_IMAGE": built.base, "EXTRAS": "tracing"}
    docker.build(ROOT / "deploy/docker/proxy.Dockerfile", ROOT, image, arguments)
    serve = ("serve", "--check", "--set", "tracing.endpoint=http://127.0.0.1:4318/v1/traces")
    assert docker.docker("run", "--rm", image, *serve) == "starpruner: the settings are valid\n"
    program = "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter"
    docker.docker("run", "--rm", "--entrypoint", "python", image, "-c", program)


@contextmanager
def serving(
    docker: Engine, image: str, backend: Endpoint, memory: str = "512m"
) -> Iterator[tuple[DockerContainer, Endpoint, Endpoint]]:
    """The image as deploy/compose runs it: as nobody, its root read-only, without any right."""
    endpoint, admin = Endpoint("127.0.0.1", free_port()), Endpoint("127.0.0.1", 10_080)
    command = f"serve --backend {backend} --listen {endpoint} --admin {admin}"
    container = DockerContainer(
        image, docker_client_kw={"environment": {"DOCKER_HOST": docker.host}}
    ).with_command(command)
    container = container.with_kwargs(
        network_mode="host",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        mem_limit=memory,
        memswap_limit=memory,
    )
    container.with_tmpfs_mount("/tmp")  # noqa: S108 - in the container
    container.with_tmpfs_mount("/var/lib/starpruner", "uid=10001,gid=10001,mode=0700")
    with container:
        yield container, endpoint, admin


@pytest.mark.usefixtures("small_star")
def test_it_serves_as_nobody_with_a_root_that_is_read_only(
    docker: Engine, built: Built, spark: ThriftServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    with serving(docker, built.proxy, spark.endpoint) as (container, endpoint, admin):
        until(endpoint.listens, "the proxy listens")
        with closing(connect(endpoint)) as through, closing(connect(spark.endpoint)) as direct:
            assert run(through, STAR_JOIN) == run(direct, STAR_JOIN)
        with urlopen(f"http://{admin}/readyz") as answer:
            assert answer.status == HTTPStatus.OK
        identifier = container.get_wrapped_container().id
        health = ("inspect", identifier, "-f", "{{.State.Health.Status}}")
        until(lambda: docker.docker(*health) == "healthy\n", "it is healthy")
        assert docker.docker("exec", identifier, "id", "-u") == "10001\n"
        # Longer than proxy.drain_s; its sessions have ended, so it ends at once.
        docker.docker("stop", "-t", "40", identifier)
        assert docker.docker("inspect", identifier, "-f", "{{.State.ExitCode}}") == "0\n"


SESSIONS = 480
LONG = f"SELECT 1 /* {'x' * 200_000} */ AS n"


async def told_at_once(endpoint: Endpoint) -> Counter[str]:
    """How many sessions and their long statements were served, and the sentences that refused the others."""

    async def told(client: AsyncClient) -> str:
        try:
            await client.execute(LONG)
        except ConnectionError as error:
            return str(error)
        return "served"

    opened = [await opened_or_refused(endpoint) for _ in range(SESSIONS)]
    clients = [client for client in opened if isinstance(client, AsyncClient)]
    answers = Counter(client for client in opened if isinstance(client, str))
    answers.update(await asyncio.gather(*map(told, clients)))
    await asyncio.gather(*(client.leave() for client in clients))
    return answers


async def opened_or_refused(endpoint: Endpoint) -> AsyncClient | str:
    try:
        return await AsyncClient.with_session(endpoint)
    except ConnectionError as error:
        return str(error)


def test_with_little_memory_it_serves_or_refuses_and_lives(
    docker: Engine, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    with canned_backend() as backend, serving(docker, built.proxy, backend, "160m") as (container, endpoint, _):
        until(endpoint.listens, "the proxy listens")
        for _ in range(3):
            answers = asyncio.run(told_at_once(endpoint))
            assert answers.pop("served") >= SESSIONS // 2
            assert [told for told in answers if "try again later" not in told] == []
        identifier = container.get_wrapped_container().id
        state = docker.docker("inspect", identifier, "-f", "{{.State.Status}} {{.State.OOMKilled}}")
        assert state == "running false\n"
        assert b"memory of 160 MB" in container.get_logs()[1]
