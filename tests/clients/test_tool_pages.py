"""The steps of docs/tools/ lead to a tool that works through the proxy, and to statements that are rewritten."""

import shlex
import shutil
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect
from sqlalchemy.exc import DBAPIError
from support.maven import ClientMissingError, is_required, require_compiler
from support.metrics_of_proxy import rewritten_count
from support.profile import only_deep
from tool_page import SHELL_STEPS, ToolFolder, addressed, installed, steps_of_pages

from demo.java import Java, beeline_command
from demo.proxy_process import ProxyProcess

# Tools by the programs that they need beside Python. The others take a minute or more to install or to run.
QUICK = {
    "pyhive": (),
    "pandas": (),
    "beeline": (),
    "hikaricp": ("mvn",),
    "jaydebeapi": ("mvn",),
    "node": ("npm", "node"),
}
DEEP = {"go": ("go",), "dbt": (), "superset": ()}
# The key of the star join on the page, as the explanation tells it.
KEY = "2024-12-24"
# The statements of a tool that are rewritten, where they are more than the star join: a table, and a table twice.
REWRITTEN = {"dbt": 3}

# Superset's own connection, as SQL Lab uses it.
READ_BY_SUPERSET = """
from superset.app import create_app
with create_app().app_context():
    from superset import db
    from superset.models.core import Database
    database = db.session.query(Database).filter_by(database_name="sales").one()
    join = "SELECT count(*) AS n FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.holiday = 'Christmas Eve'"
    for sql in (join, "EXPLAIN REWRITE " + join):
        print(database.get_df(sql).to_csv())
"""


def test_every_tool_with_steps_is_followed() -> None:
    assert steps_of_pages().keys() == {*QUICK, *DEEP}
    assert all("run" in steps for steps in steps_of_pages().values())


def test_every_package_of_python_is_named_with_the_versions_that_it_may_have() -> None:
    installs = [steps.get("install", "") for steps in steps_of_pages().values()]
    words = [word for install in installs for line in _lines(install, "pip install") for word in line]
    assert words
    assert [word for word in words if not (">=" in word and "," in word and "<" in word)] == []


def _lines(install: str, command: str) -> list[list[str]]:
    """The words behind a command in each line that begins with it."""
    lines = install.replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix(command)) for line in lines if line.startswith(command)]


# The dialect is older than SQLAlchemy 2, which says so.
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
@pytest.mark.usefixtures("sample")
def test_the_dialect_of_pyhive_misleads_as_the_page_says(proxy: ProxyProcess) -> None:
    engine = create_engine(f"hive://me@{proxy.endpoint}/default")
    inspector = inspect(engine)
    assert set(inspector.get_table_names()) == {"default"}
    assert inspector.has_table("SELECT ds FROM dates")
    with pytest.raises(DBAPIError, match="TABLE_OR_VIEW_NOT_FOUND"):
        inspector.has_table("no_such_table")
    engine.dispose()


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize("tool", QUICK)
def test_the_steps_of_the_page_lead_to_a_rewritten_statement(
    tool: str, proxy: ProxyProcess, java: Java, tmp_path: Path
) -> None:
    _follow_and_expect_rewritten(tool, QUICK[tool], proxy, java, tmp_path)


@only_deep("packages of a hundred megabytes, and minutes")
@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize("tool", DEEP)
def test_the_steps_of_the_page_for_a_larger_tool_lead_to_rewritten_statements(
    tool: str, proxy: ProxyProcess, java: Java, tmp_path: Path
) -> None:
    _follow_and_expect_rewritten(tool, DEEP[tool], proxy, java, tmp_path)


def _follow_and_expect_rewritten(
    tool: str, programs: tuple[str, ...], proxy: ProxyProcess, java: Java, directory: Path
) -> None:
    folder = _followed(tool, programs, proxy, java)
    before = rewritten_count(proxy)
    assert KEY in _run(folder, tool, proxy, java, directory)
    assert rewritten_count(proxy) == before + REWRITTEN.get(tool, 1)


def _followed(tool: str, programs: tuple[str, ...], proxy: ProxyProcess, java: Java) -> ToolFolder:
    """The tool's folder with the files of the page, or the test is skipped where the tool cannot be had."""
    try:
        _need(tool, programs, java)
        folder = installed(tool)
    except ClientMissingError as error:
        if is_required():
            raise
        pytest.skip(str(error))
    for name, text in steps_of_pages()[tool].items():
        if name not in SHELL_STEPS:
            (folder.path / name).parent.mkdir(exist_ok=True)
            (folder.path / name).write_text(addressed(text, proxy.endpoint), encoding="utf-8")
    return folder


def _need(tool: str, programs: tuple[str, ...], java: Java) -> None:
    if missing := [program for program in programs if shutil.which(program) is None]:
        raise ClientMissingError(f"{tool} needs {', '.join(missing)}, and there is none on PATH")
    if tool == "hikaricp":
        require_compiler(java)


def _run(folder: ToolFolder, tool: str, proxy: ProxyProcess, java: Java, home: Path) -> str:
    if tool == "beeline":
        _beeline_in(folder, java, home)
    script = addressed(steps_of_pages()[tool]["run"], proxy.endpoint)
    if tool == "superset":
        script += f"python -c {shlex.quote(READ_BY_SUPERSET)}\n"
    return folder.run(script, _environment(java, home))


def _environment(java: Java, home: Path) -> dict[str, str]:
    """Java as the server has it, and nothing in the user's own folders."""
    return {
        "JAVA_HOME": str(java.home),
        "SUPERSET_HOME": str(home),
        "DBT_LOG_PATH": str(home),
        "DO_NOT_TRACK": "1",
        "LC_ALL": "C.UTF-8",
    }


def _beeline_in(folder: ToolFolder, java: Java, home: Path) -> None:
    """The command `beeline`: Spark's own script needs modules that not every Java has."""
    java_of, *rest = beeline_command(java, "")[:-2]
    script = folder.path / "bin" / "beeline"
    script.parent.mkdir(exist_ok=True)
    words = shlex.join([java_of, f"-Duser.home={home}", *rest])
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
