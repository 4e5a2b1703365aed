"""Rows as `swerve` writes them (JSON lines on stdin) to an Arrow IPC file or Parquet.

usage: python3 -c SCRIPT FORMAT PATH
Exit codes: 0 done, 1 cannot write, 3 pyarrow is missing.
"""
import sys

# "-c" puts the current folder first, and modules that lie there are not ours to run.
sys.path[:] = [path for path in sys.path if path]

import json

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as problem:
    print(problem, file=sys.stderr)
    sys.exit(3)

BATCH_ROWS = 20000
TYPES = {
    "int64": pyarrow.int64(),
    "uint64": pyarrow.uint64(),
    "double": pyarrow.float64(),
    "bool": pyarrow.bool_(),
    "string": pyarrow.string(),
}
# 64-bit integers beyond 2^53 and infinities come as text.
READ = {"uint64": int, "double": float}


def record_batch(schema, kinds, rows):
    arrays = []
    for index, (field, kind) in enumerate(zip(schema, kinds)):
        read = READ.get(kind)
        values = [row[index] for row in rows]
        if read:
            values = [None if value is None else read(value) for value in values]
        arrays.append(pyarrow.array(values, field.type))
    return pyarrow.record_batch(arrays, schema=schema)


def main():
    form, path = sys.argv[1:3]
    columns = json.loads(sys.stdin.readline())["columns"]
    kinds = [column["type"] for column in columns]
    schema = pyarrow.schema([(column["name"], TYPES[column["type"]]) for column in columns])
    if form == "parquet":
        writer = pyarrow.parquet.ParquetWriter(path, schema, compression="zstd")
    else:
        writer = pyarrow.ipc.new_file(path, schema)
    rows = []
    with writer:
        for line in sys.stdin:
            rows.append(json.loads(line))
            if len(rows) == BATCH_ROWS:
                writer.write_batch(record_batch(schema, kinds, rows))
                rows = []
        if rows:
            writer.write_batch(record_batch(schema, kinds, rows))


try:
    main()
except OSError as problem:
    print(problem, file=sys.stderr)
    sys.exit(1)
