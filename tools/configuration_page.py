"""docs/configuration.md, made from the sections of the configuration: `python -m tools.configuration_page`.

The second part of the page has the expert entries.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.configuration_keys import Entry, tables

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "configuration.md"
COMMAND: Final = "python -m tools.configuration_page"
WIDTH: Final = 115

_HEAD: Final = f"""\
<!-- Made by `{COMMAND}` from the comments in proxy/config/. Change those, and run it again. -->

# Configuration

`starpruner serve --config starpruner.toml`, and any key as `--set section.key=value`, the later ones winning. No
key has to be set. A wrong key or value stops the start and is named; `--check` checks the settings and ends.
`--secrets` names a second file, over the first: passwords, which the proxy's user alone may read.
[deploy/starpruner.sample.toml](../deploy/starpruner.sample.toml) is a file with every key to begin with.

```toml
[proxy]
listen = "0.0.0.0:10001"
backend = "spark-host:10000"

[rewrite]
metastore = "postgresql"
```

On SIGHUP the file is read anew. Each key below says when its new value counts:

* **at once**: from the next statement on, in sessions that are open too;
* **next session**: in sessions that are opened from then on;
* **restart**: after a restart of the proxy. The log names such keys if they have changed.

Certificates are read anew on SIGHUP, and when their files change.

A client can set some keys of `[rewrite]` for its own session, in its JDBC URL (`..?starpruner.enabled=false`) or
by a statement:

```sql
SET starpruner.enabled=false;        -- every original is sent
SET starpruner.mode=shadow;          -- or rewrite
SET starpruner.consistency=strict;   -- or window
SET starpruner.cost_gate=false;      -- narrow every scan that may be narrowed
SET starpruner.key_staleness_s=60;   -- keys may be a minute old
SET starpruner.keys_remembered_s=0;  -- ask for keys before the statement is sent
SET starpruner.skewed_by=false;      -- leave SKEWED BY to Spark, which refuses it
SET starpruner.merge_tables=shop.*;  -- narrow the targets of MERGE, of tables that are named
SET starpruner.label=Sales board;    -- the history groups the statements by it
```

An entry with several keys says the same of all of them. Most users need [the first part](#keys) alone, and of it a
handful; [expert keys](#expert-keys) are limits with defaults that have a reason, for the case that the reason does
not hold.
"""
_EXPERT_HEAD: Final = """\
# Expert keys

Limits and periods. Change one only if the log, `explain` or the metrics name it, or its reason does not hold for
you.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, "# Keys\n", *_part(is_expert=False), _EXPERT_HEAD, *_part(is_expert=True)])


def _part(*, is_expert: bool) -> Iterator[str]:
    for table in tables():
        chosen = [entry for entry in table.entries if entry.is_expert == is_expert]
        if chosen:
            yield f"## `{table.heading}`" + (", expert keys" if is_expert else "") + "\n"
            if table.text and not is_expert:
                yield _linked(table.text) + "\n"
            yield from map(_said, chosen)
            yield ""


def _said(entry: Entry) -> str:
    ((counts, _),) = Counter(key.counts for key in entry.keys).most_common(1)
    head = ", ".join(f"**`{key.name}`**" + (f" = `{key.default}`" if key.default else "") for key in entry.keys)
    units = {key.unit for key in entry.keys}
    notes = [*filter(None, units)] if len(units) == 1 else []
    if entry.keys[0].default is None:
        notes.append("required")
    values = entry.keys[0].values
    if values:
        notes.append("one of " + ", ".join(f"`{value}`" for value in values))
    text = f"{head} ({'; '.join([*notes, counts.value])}). {_linked(entry.text)}"
    return textwrap.fill(
        text, WIDTH, initial_indent="* ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _linked(text: str) -> str:
    """The text with links to the decisions and modules that it names."""
    for decision in re.findall(r"docs/decisions/(\d{4})", text):
        (path,) = (ROOT / "docs" / "decisions").glob(f"{decision}-*.md")
        text = text.replace(f"docs/decisions/{decision}", f"[why](decisions/{path.name})")
    return re.sub(r"(?<![`\w])((?:proxy|rewriter)/[\w/]+\.py)", r"[`\1`](../\1)", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
