"""The joins, conditions, unions and limits of a statement, as the rewriter reads them and as Spark parses them.

Both readings are sets of facts over the names of tables, so that they can be compared. What stands within a single
comparison is no part of them: the rewriter takes it as the client wrote it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from pyspark.sql import SparkSession
from sqlglot import exp

from rewriter.scopes.blocks import block_of
from rewriter.scopes.join_tree import Join
from rewriter.sql.statement import Statement

# ("And", {..}), ("Or", {..}), ("Not", ..), or the numbers that stand in what is compared.
Shape: TypeAlias = tuple[str, Any] | frozenset[str]
Names: TypeAlias = tuple[str, ...]

ALWAYS: Shape = frozenset()


@dataclass(frozen=True)
class Fact:
    """A join, filter, set operation or limit, and over which tables, in the order of the text."""

    what: str
    left: Names
    right: Names = ()
    condition: Shape = ALWAYS


# --- as Spark parses it


@dataclass(frozen=True)
class Node:
    """A node of one of Spark's trees. `fields` is what Spark's TreeNode.toJSON tells of it."""

    fields: dict[str, Any]
    children: tuple["Node", ...]

    @property
    def name(self) -> str:
        """The class without its package."""
        return str(self.fields["class"]).rpartition(".")[2]

    @property
    def inner(self) -> Iterator["Node"]:
        """The roots of the trees in the fields: expressions of a plan, the plan of a subquery, CTEs."""
        return chain.from_iterable(map(_roots, self.fields.values()))

    def walk(self) -> Iterator["Node"]:
        """The node and all below it, within its fields too."""
        yield self
        for node in chain(self.children, self.inner):
            yield from node.walk()

    def tree(self, field: str) -> "Node | None":
        """The tree in a field."""
        return next(_roots(self.fields.get(field)), None)


def _roots(value: object) -> Iterator[Node]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _roots(inner)
    elif isinstance(value, list) and value and isinstance(value[0], dict) and "class" in value[0]:
        yield _node(iter(value))
    elif isinstance(value, list):
        for inner in value:
            yield from _roots(inner)


def _node(preorder: Iterator[dict[str, Any]]) -> Node:
    fields = next(preorder)
    return Node(fields, tuple(_node(preorder) for _ in range(fields["num-children"])))


_SPARKS_JOINS = {
    "Inner": "INNER",
    "Cross": "INNER",
    "LeftOuter": "LEFT",
    "RightOuter": "RIGHT",
    "FullOuter": "FULL",
    "LeftSemi": "SEMI",
    "LeftAnti": "ANTI",
}
# What has a shape in the parser's tree, and what a comparison is that the parser has turned round.
_CONNECTIVES = {"And", "Or", "Not"}
_NEGATED = {"IsNotNull"}


def spark_facts(spark: SparkSession, sql: str) -> set[Fact] | None:
    """What Spark's parser makes of a statement; None if it refuses it."""
    parser: Any = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - Spark's own has no other name
    try:
        plan = parser.parsePlan(sql)
    except Exception:  # noqa: BLE001 - whatever class it has, the parser threw it
        return None
    root = _node(iter(json.loads(plan.toJSON())))
    return {fact for node in root.walk() for fact in _spark_facts(node)}


def _spark_facts(node: Node) -> Iterator[Fact]:
    sides = [_spark_names(child) for child in _inputs(node)]
    match node.name:
        case "Join" | "LateralJoin":
            kind, condition = _spark_join(node.fields["joinType"], node.tree("condition"))
            yield Fact(kind, sides[0], sides[1], condition)
        case "Filter":
            yield Fact("WHERE", sides[0], condition=_spark_shape(node.tree("condition")))
        case "Union":
            yield Fact("UNION ALL", sides[0], sides[1])
        case "Distinct" if node.children[0].name == "Union":
            first, second = node.children[0].children
            yield Fact("UNION", _spark_names(first), _spark_names(second))
        case "Except" | "Intersect":
            every = " ALL" if node.fields["isAll"] else ""
            yield Fact(node.name.upper() + every, sides[0], sides[1])
        case "GlobalLimit":
            yield Fact("LIMIT", sides[0], condition=_numbers(node.tree("limitExpr")))
        case "Offset":
            yield Fact("OFFSET", sides[0], condition=_numbers(node.tree("offsetExpr")))


def _inputs(node: Node) -> tuple[Node, ...]:
    """The plans whose rows a plan reads, in the order of the text."""
    lateral = node.tree("right") if node.name == "LateralJoin" else None
    plan = lateral.tree("plan") if lateral is not None else None
    return (*node.children, plan) if plan is not None else node.children


def _spark_names(node: Node) -> Names:
    if node.name == "UnresolvedRelation":
        return (node.fields["multipartIdentifier"].strip("[]").rpartition(", ")[2],)
    return tuple(chain.from_iterable(map(_spark_names, _inputs(node))))


def _spark_join(kind: dict[str, Any], condition: Node | None) -> tuple[str, Shape]:
    if "tpe" in kind:
        how = kind.get("usingColumns")
        shape = ("Natural", "") if how is None else ("Using", frozenset(how.strip("[]").split(", ")))
        return _spark_join(kind["tpe"], None)[0], shape
    name = kind["object"].rpartition(".")[2].rstrip("$")
    return _SPARKS_JOINS[name], _spark_shape(condition)


def _spark_shape(node: Node | None) -> Shape:
    if node is None:
        return ALWAYS
    if node.name in _CONNECTIVES:
        return _connected(node.name, [_spark_shape(child) for child in node.children])
    return ("Not", _numbers(node)) if node.name in _NEGATED else _numbers(node)


def _numbers(node: Node | None) -> frozenset[str]:
    """The numbers in an expression, but for those in its subqueries."""
    if node is None:
        return frozenset()
    is_number = node.name == "Literal" and node.fields["dataType"] == "integer"
    own = {str(node.fields["value"]).lstrip("-")} if is_number else set[str]()
    # The branches of a CASE and the like are no children to TreeNode.toJSON.
    trees = chain(node.children, () if "plan" in node.fields else node.inner)
    return frozenset(own.union(*map(_numbers, trees)))


def _connected(name: str, shapes: list[Shape]) -> Shape:
    """Several ANDs in a row are one, in whichever order they are taken."""
    if name == "Not":
        return (name, shapes[0])
    flat = (shape[1] if isinstance(shape, tuple) and shape[0] == name else {shape} for shape in shapes)
    return (name, frozenset(chain.from_iterable(flat)))


# --- as the rewriter reads it

_SET_OPERATIONS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}
_NOT = (exp.NEQ, exp.NullSafeNEQ)


def our_facts(statement: Statement) -> set[Fact]:
    """What the rewriter makes of a statement, as far as it understands that."""
    found = set[Fact]()
    for query in statement.tree.find_all(exp.Query):
        if isinstance(query, exp.Select) and query.args.get("from_"):
            found |= _block_facts(query, statement)
        if isinstance(query, exp.SetOperation):
            left, right = _our_names(query.left), _our_names(query.right)
            every = "" if query.args.get("distinct") else " ALL"
            found.add(Fact(_SET_OPERATIONS[type(query)] + every, left, right))
        for what in ("limit", "offset"):
            count = query.args.get(what)
            if count is not None:
                found.add(Fact(what.upper(), _our_names(query), condition=_our_numbers(count)))
    return found


def _block_facts(select: exp.Select, statement: Statement) -> set[Fact]:
    block = block_of(select, statement)
    if block.refusal is not None:
        return set()
    *joins, top = block.tree.joins
    leaves = [_our_names(leaf.node) for leaf in block.tree.leaves]

    def names(start: int, stop: int) -> Names:
        return tuple(chain.from_iterable(leaves[start:stop]))

    found = {
        Fact(join.kind.name, names(join.start, join.middle), names(join.middle, join.stop), _our_condition(join))
        for join in joins
    }
    if top.condition is not None:
        found.add(Fact("WHERE", names(top.start, top.stop), condition=_our_shape(top.condition)))
    return found


def _our_names(node: exp.Expr) -> Names:
    """The tables whose rows a query or an item of a FROM reads, in the order of the text."""
    if isinstance(node, exp.Table):
        own = (node.name,) if isinstance(node.this, exp.Identifier) else _our_names(node.this)
    elif isinstance(node, exp.SetOperation):
        own = _our_names(node.left) + _our_names(node.right)
    elif isinstance(node, exp.Select):
        own = _our_names(node.args["from_"].this) if node.args.get("from_") else ()
    elif isinstance(node, exp.Subquery | exp.Lateral):
        own = _our_names(node.this)
    else:
        own = ()
    return own + tuple(chain.from_iterable(_our_names(join.this) for join in node.args.get("joins") or ()))


def _our_condition(join: Join) -> Shape:
    if join.using:
        return ("Using", frozenset(join.using))
    if join.natural:
        return ("Natural", "")
    return _our_shape(join.condition) if join.condition is not None else ALWAYS


def _our_shape(node: exp.Expr) -> Shape:
    if isinstance(node, exp.Paren):
        return _our_shape(node.this)
    if isinstance(node, exp.And | exp.Or):
        return _connected(type(node).__name__, [_our_shape(node.left), _our_shape(node.right)])
    if isinstance(node, exp.Not):
        return ("Not", _our_shape(node.this))
    # NOT LIKE is a LIKE that says so, and any other NOT a node of its own.
    is_negated = isinstance(node, _NOT) or node.args.get("negate")
    return ("Not", _our_numbers(node)) if is_negated else _our_numbers(node)


def _our_numbers(node: exp.Expr) -> frozenset[str]:
    parts = node.walk(prune=lambda part: isinstance(part, exp.Query))
    return frozenset(part.name for part in parts if isinstance(part, exp.Literal) and not part.is_string)
