"""The answer of Spark 3 about a temporary view, as 3.3.4 and 3.5.9 gave it."""


def spark_3_view(
    name: str, columns: str, text: str = "SELECT * FROM days", namespace: str = "spark_catalog.default"
) -> str:
    """The column `information` of SHOW TABLE EXTENDED."""
    return (
        f"Table: {name}\nCreated Time: Fri Nov 27 10:20:28 UTC 2026\nLast Access: UNKNOWN\nCreated By: Spark \n"
        f"Type: VIEW\nView Text: {text}\nView Catalog and Namespace: {namespace}\n"
        f"View Query Output Columns: [{columns}]\nSchema: root\n |-- ds: string (nullable = true)\n\n"
    )
