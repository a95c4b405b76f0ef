"""Spark Thrift Server in HTTP mode, proxies with an HTTP listener, and PyHive over HTTP."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyhive import hive
from thrift.Thrift import TException
from thrift.transport.THttpClient import THttpClient

from demo.hive import Endpoint, free_port
from demo.java import Java
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server
from support import cheap_spark
from support.cheap_spark import QUICK_JAVA

URL_OPTIONS = ";transportMode=http;httpPath=cliservice"

CONFIGURATION = """
[[listener]]
listen = "127.0.0.1:0"
transport = "http"

[backend]
transport = "{transport}"

[rewrite]
cost_gate = false
key_query_deadline_s = 120

[catalog]
query_deadline_s = 120
"""


class _HttpTransport(THttpClient):  # type: ignore[misc]  # the package has no types
    """Thrift's own leaves the socket of each call to the garbage collector, which warns of it."""

    def close(self) -> None:
        response = self._THttpClient__http_response
        if response is not None:
            # Only the end of the body: the message has been read.
            response.read()
            response.close()
        super().close()


def connect_over_http(endpoint: Endpoint, user: str = "demo") -> hive.Connection:
    """A PyHive session over HTTP, a TCP connection for each call."""
    transport = _HttpTransport(f"http://{endpoint}/cliservice")
    login = b64encode(f"{user}:password".encode()).decode()
    transport.setCustomHeaders({"Authorization": f"Basic {login}"})
    return hive.connect(thrift_transport=transport)


@contextmanager
def spark_over_http(directory: Path, java: Java) -> Iterator[ThriftServer]:
    """A server of its own: one speaks either transport, not both."""
    port = free_port()
    over_http = {"transport.mode": "http", "thrift.http.port": str(port)}
    conf = cheap_spark.conf() | {f"spark.hadoop.hive.server2.{name}": value for name, value in over_http.items()}
    settings = ServerOptions(directory, port=port, cores=2, java_options=QUICK_JAVA, conf=conf)
    with thrift_server(settings, java, progress=lambda _: None, answers=_answers) as server:
        yield server


def _answers(endpoint: Endpoint) -> bool:
    try:
        connect_over_http(endpoint).close()
    except (TException, OSError):
        return False
    return True


@contextmanager
def proxy_with_http(
    backend: Endpoint, directory: Path, transport: str, *more: Endpoint, options: tuple[str, ...] = ()
) -> Iterator[tuple[ProxyProcess, Endpoint]]:
    """A proxy for HTTP clients before one backend or several, and where they connect.

    Before SASL backends there is a port for SASL clients as well.
    """
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "starpruner.toml"
    config.write_text(CONFIGURATION.format(transport=transport))
    options = ("--config", str(config), *options)
    if more:
        options += ("--set", f"proxy.backends={json.dumps([str(one) for one in (backend, *more)])}")
    port = 0 if transport == "sasl" else None
    with proxy_process(None if more else backend, directory, port=port, options=options) as process:
        also = re.search(r", also on (\S+)", process.child.log.read_text())
        yield process, process.endpoint if also is None else Endpoint.parse(also[1])
