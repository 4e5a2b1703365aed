#!/usr/bin/env python3
"""Writes the schema that the store's migrations make together: what a new store is made with, in one
transaction, a sixth of the work of all migrations one after the other.

usage: whole_schema.py OUT.sql MIGRATION...

The migrations are applied to a database in memory, in the order of their names; then tables and indexes
are written as SQLite keeps them, and the rows that migrations put in.
"""
import os
import sqlite3
import sys


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sqlite3.sqlite_version_info < (3, 37):
        sys.exit(f"whole_schema.py: Python's SQLite is {sqlite3.sqlite_version}, expected 3.37 or later (strict tables)")
    out_path, paths = sys.argv[1], sorted(sys.argv[2:], key=os.path.basename)
    database = sqlite3.connect(":memory:", isolation_level=None)
    for path in paths:
        with open(path, encoding="utf-8") as source:
            database.executescript(source.read())
    parts = [sql for (sql,) in database.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid")]
    tables = [name for (name,) in database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid")]
    for table in tables:
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        values = " || ', ' || ".join(f'quote("{column}")' for column in columns)
        parts += [f'INSERT INTO "{table}" VALUES ({row})' for (row,) in database.execute(f'SELECT {values} FROM "{table}"')]
    with open(out_path, "w", encoding="utf-8") as out:
        out.write("".join(part + ";\n" for part in parts))


if __name__ == "__main__":
    main()
