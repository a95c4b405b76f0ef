"""The columns of a table that Spark can hash."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from rewriter.vocabulary.identifiers import quoted

_UNHASHED = re.compile(r"map<|variant")


def hashable(schema: StructType) -> list[Column]:
    """The columns that can be hashed: Spark refuses types with several forms of one value, such as maps."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    return [f.col(quoted(name)) for name, type_name in types.items() if not _UNHASHED.search(type_name)]
