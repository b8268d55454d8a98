"""Every clause of every ADR is quoted by a test, and no test quotes a clause that does not exist."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORDS = {path.name[:4]: path for path in sorted((ROOT / "adr").glob("[0-9]*.md"))}
CLAUSE = re.compile(r"^- \*\*(D\d+)\.\*\* \S", re.MULTILINE)
CITATION = re.compile(r"^((?:D\d+(?:, )?)+): \S")

# Tests of a clause that live in a file of their own.
ELSEWHERE = {"test_lifetimes.py": "0002", "test_cli.py": "0008"}


@functools.cache
def citations():
    """Record number to the clauses that the first docstring lines of its tests quote."""
    found = {}
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        match = re.match(r"test_adr_(\d{4})_", path.name)
        record = match.group(1) if match else ELSEWHERE.get(path.name)
        if record is None:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                line = (ast.get_docstring(node) or "").partition("\n")[0]
                cited = CITATION.match(line)
                assert cited, f"{path.name}: {node.name} quotes no clause of ADR {record} in its first docstring line"
                found.setdefault(record, set()).update(cited.group(1).split(", "))
    return found


@pytest.mark.parametrize("record", RECORDS)
def test_every_clause_is_proven(record):
    """A clause without a test is a wish; a citation of no clause is a lie."""
    clauses = CLAUSE.findall(RECORDS[record].read_text())
    assert len(set(clauses)) == len(clauses) > 0
    assert citations().get(record, set()) == set(clauses)


def test_the_index_lists_every_record():
    """adr/README.md is the index."""
    index = (ROOT / "adr" / "README.md").read_text()
    assert set(re.findall(r"\]\((\d{4})-[a-z0-9-]+\.md\)", index)) == set(RECORDS)
    for path in RECORDS.values():
        text = path.read_text()
        assert f"({path.name})" in index
        for heading in ("Status: ", "## Context", "## Decision", "## Consequences", "## Rejected"):
            assert heading in text, (path.name, heading)
