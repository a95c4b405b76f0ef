"""The commands `starpruner demo` and `starpruner sts`."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path

import click
from rich.console import Console

from demo.child import Child
from demo.compare import RUNS_DEFAULT, Bench, compare, warm_up
from demo.hive import connect
from demo.java import Java, JavaNotFoundError, find_java
from demo.metrics import MetricsError, SparkUi
from demo.progress import Progress, shown_progress
from demo.proxy_process import ProxyError, ProxyProcess, proxy_process
from demo.report import as_json, print_how_to_connect
from demo.sample import DAYS_DEFAULT, Sample, SampleError, clear_unfinished, is_loaded, load
from demo.thrift_server import ServerOptions, ThriftServer, ThriftServerError, only_user, thrift_server
from demo.tour import Tour

# Errors that the user can do something about; any other one is a defect of ours and shows its stack.
EXPECTED_ERRORS = (JavaNotFoundError, SampleError, ThriftServerError, ProxyError, MetricsError)

CHILD_POLL_SECONDS = 0.5

_PORT = click.IntRange(0, 65_535)


@click.command()
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".starpruner/demo"),
    show_default=True,
    help="Where the sample, its metastore and the logs are kept.",
)
@click.option("--port", type=_PORT, default=0, show_default="a free port", help="Where the proxy listens.")
@click.option("--once", is_flag=True, help="Print the comparison and exit; with 1 if any answer differs.")
@click.option("--json", "print_json", is_flag=True, help="With --once: print one JSON object.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=RUNS_DEFAULT,
    show_default=True,
    help="Runs of each query; with several, the medians are shown.",
)
@click.option(
    "--days", type=click.IntRange(1, DAYS_DEFAULT), default=DAYS_DEFAULT, show_default=True, help="Days of sales."
)
def demo(  # noqa: PLR0913 - one parameter per option
    directory: Path, port: int, runs: int, days: int, *, once: bool, print_json: bool
) -> None:
    """Run sample queries on a Spark Thrift Server of its own, without the proxy and through it.

    How to connect is shown behind the first query. Then every other one is shown when it is measured, and at the
    end the table of all of them.
    """
    if print_json and not once:
        raise click.UsageError("--json needs --once: without it the demo goes on running")
    sample, console = Sample(days), Console()
    with _sentences_for_errors(), ExitStack() as running:
        progress = running.enter_context(shown_progress(Console(stderr=True)))
        java = find_java()
        server = running.enter_context(_server_with_sample(directory, sample, java, progress))
        progress("Starting the proxy")
        proxy = running.enter_context(proxy_process(server.endpoint, directory / "logs", port=port))
        bench = running.enter_context(_bench(server, proxy))
        warm_up(bench, progress)
        running.callback(progress, "Stopping")
        tour = Tour(lambda query: compare(bench, query, runs, progress), progress)
        if print_json:
            whole = json.dumps(as_json(tour.whole(), java), indent=2, ensure_ascii=False)
            with progress.hidden():
                click.echo(whole)
        else:
            tour.show_first(console)
            if not once:
                with progress.hidden():
                    print_how_to_connect(console, java, proxy.endpoint, server.endpoint, proxy.admin_url)
            # The user has been told of Ctrl-C: from now on it is the way to end the demo, not an error.
            with nullcontext() if once else suppress(KeyboardInterrupt):
                tour.show_others(console, runs)
                if not once:
                    progress("Running until Ctrl-C")
                    _wait_for_interrupt(server.child, proxy.child)
        if not all(comparison.equal for comparison in tour.compared):
            raise click.ClickException("a query gave another answer through the proxy than directly")


@click.command()
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".starpruner/sts"),
    show_default=True,
    help="Where tables, metastore and logs are kept.",
)
@click.option("--port", type=_PORT, show_default="a free port", help="Where the server listens.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
@click.option("--memory", default="1g", show_default=True, help="The Java heap.")
def sts(directory: Path, port: int | None, conf: tuple[str, ...], memory: str) -> None:
    """Run an embedded Spark Thrift Server until Ctrl-C."""
    settings = ServerOptions(directory, port, memory=memory, conf=dict(_setting(text) for text in conf))
    with _sentences_for_errors(), ExitStack() as running:
        with shown_progress(Console(stderr=True)) as progress:
            server = running.enter_context(thrift_server(settings, find_java(), progress))
        click.echo(
            f"starpruner sts: listening on {server.endpoint}, UI {server.ui_url}, kept in {server.directory}"
        )
        _wait_for_interrupt(server.child)


@contextmanager
def _server_with_sample(directory: Path, sample: Sample, java: Java, progress: Progress) -> Iterator[ThriftServer]:
    """Runs a server that has the sample."""
    # Another demo may be loading here: its half-loaded sample is not ours to remove.
    with only_user(directory):
        clear_unfinished(directory, sample)
    try:
        with thrift_server(ServerOptions(directory), java, progress) as server:
            if not is_loaded(directory, sample):
                with closing(connect(server.endpoint)) as connection:
                    load(connection, directory, sample, progress)
            yield server
    finally:
        # A sample that Ctrl-C cut short is of no use to the next demo.
        with suppress(ThriftServerError), only_user(directory):
            clear_unfinished(directory, sample)


@contextmanager
def _bench(server: ThriftServer, proxy: ProxyProcess) -> Iterator[Bench]:
    with closing(connect(server.endpoint)) as direct, closing(connect(proxy.endpoint)) as proxied:
        yield Bench(direct, proxied, SparkUi(server.ui_url), proxy.admin_url)


def _setting(text: str) -> tuple[str, str]:
    name, separator, setting = text.partition("=")
    if not (separator and name):
        raise click.BadParameter(f"expected KEY=VALUE, got {text!r}", param_hint="--conf")
    return name, setting


@contextmanager
def _sentences_for_errors() -> Iterator[None]:
    # SIGTERM ends the children in the same way as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except EXPECTED_ERRORS as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error


def _wait_for_interrupt(*children: Child) -> None:
    """Returns on Ctrl-C or SIGTERM; raises when a child ends by itself."""
    try:
        while not (ended := [child for child in children if child.exit_code is not None]):
            time.sleep(CHILD_POLL_SECONDS)
    except KeyboardInterrupt:
        return
    raise click.ClickException(
        f"a server ended by itself with exit code {ended[0].exit_code}. The end of {ended[0].log}:\n"
        f"{ended[0].log_tail()}"
    )
