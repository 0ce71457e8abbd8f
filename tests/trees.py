"""Syntax trees of the package's files, made once: they are large."""

import ast
import gc
from functools import cache


@cache
def parsed(path):
    """The syntax tree of a file: a search for garbage among its nodes would take longer than making them."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        gc.enable()


def imports_of(tree):
    """The import statements, wherever they stand: in statements alone, so that expressions are not looked at."""
    queue = list(tree.body)
    for node in queue:  # it grows
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, ast.expr):
            queue += ast.iter_child_nodes(node)
