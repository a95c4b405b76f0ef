"""The sample queries, as a dashboard on the sample schema would send them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleQuery:
    """A query and its name."""

    name: str
    sql: str


SAMPLE_QUERIES = (
    SampleQuery(
        "one month, by weekday",
        """
SELECT d.weekday, count(*) AS sales, sum(s.amount) AS amount
FROM sales s JOIN dates d ON s.ds = d.ds
WHERE d.year = 2024 AND d.month = 12
GROUP BY d.weekday""",
    ),
    SampleQuery(
        "one quarter, one city",
        """
SELECT st.city, d.month, sum(s.amount) AS amount
FROM sales s
JOIN dates d ON s.ds = d.ds
JOIN stores st ON s.region = st.region AND s.store_id = st.store_id
WHERE d.year = 2024 AND d.quarter = 4 AND st.city = 'Tromsø'
GROUP BY st.city, d.month""",
    ),
    SampleQuery(
        "toys on holidays",
        """
SELECT d.holiday, p.name, sum(s.quantity) AS quantity
FROM sales s, dates d, products p
WHERE s.ds = d.ds AND s.product_id = p.product_id AND d.holiday IS NOT NULL AND p.category = 'toys'
GROUP BY d.holiday, p.name""",
    ),
    SampleQuery(
        "December Sundays",
        """
SELECT region, ds, max(amount) AS largest
FROM sales JOIN dates USING (ds)
WHERE weekday = 'Sunday' AND month = 12
GROUP BY region, ds""",
    ),
    # Sales are the preserved side of the outer join: none may be left out, so the proxy sends the original.
    SampleQuery(
        "left join, left alone",
        """
SELECT d.holiday, count(*) AS sales
FROM sales s LEFT JOIN dates d ON s.ds = d.ds AND d.holiday IS NOT NULL
WHERE s.region = 'north'
GROUP BY d.holiday""",
    ),
)
