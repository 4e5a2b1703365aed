"""A planner that speaks the protocol without the client, and breaks one frame of it.

    frames.py MODE        the frame that answers the first act is broken as MODE says
"""

import os
import struct
import sys
import time

MODE = sys.argv[1]
MAGIC = 0x4C505753


def read(size):
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data


def frame(kind, sequence, payload):
    return struct.pack("<4I", MAGIC, kind, len(payload), sequence) + payload


def broken(sequence, session):
    answers = struct.pack("<2I", 1, 24) + struct.pack("<2I2d", session, 0, 0.5, 0.25)
    good = frame(6, sequence, answers)
    return {
        "good": good,
        "garbage": b"<html>not a frame</html>" * 4,
        "sequence": frame(6, sequence + 1, answers),
        "huge": struct.pack("<4I", MAGIC, 6, 0xFFFFFFF0, sequence) + b"x" * 64,
        "type": frame(4, sequence, b""),
        "unknown": frame(77, sequence, b""),
        "count": frame(6, sequence, struct.pack("<2I", 2, 24) + answers[8:] * 2),
        "session": frame(6, sequence, answers[:8] + struct.pack("<2I2d", session + 5, 0, 0, 0)),
        "mark": frame(6, sequence, answers[:8] + struct.pack("<2I2d", session, 9, 0, 0)),
        "short": frame(6, sequence, answers[:-1]),
        "truncated": good[:-3],
        "error": frame(9, sequence, b"the model\nis on fire"),
        "bytewise": good,
        "early": good,
        "deaf": good,
    }[MODE]


while True:
    _, kind, size, sequence = struct.unpack("<4I", read(16))
    payload = read(size)
    if kind == 1:
        name = b"frames"
        version = 2 if MODE == "version" else 1
        wants = 0x80 if MODE == "wants" else 0
        length = 64 if MODE == "name" else len(name)
        os.write(1, frame(2, sequence, struct.pack("<4I", version, wants, length, 0) + name))
    elif kind in (3, 7):
        os.write(1, frame(4, sequence, b""))
    elif kind == 5:
        session = struct.unpack_from("<I", payload, 8)[0]
        data = broken(sequence, session)
        if MODE == "deaf":
            os.close(0)
        if MODE == "bytewise":
            for i in range(len(data)):
                os.write(1, data[i : i + 1])
        else:
            os.write(1, data)
        if MODE == "truncated":
            sys.exit(0)
        if MODE == "deaf":
            time.sleep(60)
        if MODE == "early":
            os.write(1, frame(6, sequence + 1, b"an answer nobody asked for"))
    elif kind == 10:
        sys.exit(0)
