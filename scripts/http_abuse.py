#!/usr/bin/env python3
"""Abuse of `swerve serve`: hostile clients of every kind at once, beside well-behaved ones.

Starts a server on a scratch store, measures well-behaved clients (heartbeat, submit, claim, status)
alone, then again while others send headers byte by byte, trickle bodies, hold two thousand idle
connections, send bodies that are too long, chunked without end, nested too deep, pipelined,
half-closed, smuggled into one another, no HTTP at all. Checks what each of them gets, that nothing
smuggled took effect, that the server lives, that its memory stays bounded and that it gives the
memory back, and that every request of the well-behaved clients was answered. Then starts a server
with tokens and TLS, and tries tokens that are wrong, expired, of another role or malformed, and
connections that are no TLS, or stop in the middle of it; and four addresses that open connections as
fast as they can and say nothing, beside one that has a token.

The ratio of their p99 to their own p99 before is printed; --p99-ratio makes it a condition. Exit
status 0 when everything held, else 1.
"""

import argparse
import http.client
import json
import os
import random
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import warnings

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOOD_CLIENTS = 4
SLOW_CLIENTS = 60
CROWD_HELD = 1200  # connections of one address that says nothing
REPLY_WAIT_S = 40  # the server's own deadline for a request is 30 s
KINDS = "slow_headers,slow_bodies,slow_readers,idlers,shaped,pipelines,half_closed,resetters"
ABUSERS = "127.0.0.2"  # their address, so that limits per address do not hit the others


# ---- well-behaved clients: a process of their own ----

def spec(suite, number):
    return {"key": "%s-%d" % (suite, number), "suite_id": suite, "scenario_id": "cut_in",
            "scenario_hash": "", "planner": "builtin:reference", "planner_hash": "a" * 64,
            "pool": "bulk", "tier": "object", "model_hash": "", "sampler": "", "backend": "cpu",
            "revision": "b" * 64, "seed": number, "priority": 0, "rollout_count": 1,
            "attempts_max": 3, "parent_job_id": 0, "prefix_key": "", "audit_key": ""}


def good_client(port, name, end_s, latencies, failures):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    number = 0
    while time.monotonic() < end_s:
        number += 1
        worker = {"pool": "bulk", "device": "cpu"}
        calls = [
            ("POST", "/v1/workers/%s/heartbeat" % name, dict(worker, progress=[])),
            ("POST", "/v1/suites/%s/jobs" % name, {"jobs": [spec(name, number)]}),
            ("POST", "/v1/workers/%s/claim" % name, dict(worker, max=1, wait_ms=0,
                                                         claim_id=number)),
            ("GET", "/v1/suites/%s" % name, None),
        ]
        for method, path, body in calls:
            start_s = time.monotonic()
            try:
                connection.request(method, path, json.dumps(body) if body else None,
                                   {"Content-Type": "application/json"} if body else {})
                reply = connection.getresponse()
                text = reply.read()
                if reply.status != 200:
                    failures.append("%s %s: %d %s" % (method, path, reply.status, text[:200]))
            except (OSError, http.client.HTTPException) as problem:
                failures.append("%s %s: %r" % (method, path, problem))
                connection.close()
            latencies.append(time.monotonic() - start_s)
        time.sleep(0.002)
    connection.close()


def run_good(port, seconds, prefix):
    latencies, failures = [], []
    end_s = time.monotonic() + seconds
    threads = [threading.Thread(target=good_client, args=(
        port, "%s%d" % (prefix, i), end_s, latencies, failures)) for i in range(GOOD_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    json.dump({"latencies": latencies, "failures": failures}, sys.stdout)


def start_good(port, seconds, prefix):
    return subprocess.Popen([sys.executable, __file__, "--good", str(port), str(seconds), prefix],
                            stdout=subprocess.PIPE)


def percentile_ms(latencies, percent):
    ordered = sorted(latencies)
    return 1000 * ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]


# ---- abuse ----

def dial(port):
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.bind((ABUSERS, 0))
    client.settimeout(REPLY_WAIT_S)
    client.connect(("127.0.0.1", port))
    return client


def read_all(client):
    """Everything until the server closes or says nothing more for a second."""
    found = b""
    try:
        while True:
            piece = client.recv(65536)
            if not piece:
                return found, True
            found += piece
            client.settimeout(1.0)
    except socket.timeout:
        return found, False
    except OSError:
        return found, True


def codes_of(found):
    return [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]


def exchange(port, pieces, half_close=False):
    """Sends the pieces; the codes of all replies, and whether the server closed."""
    client = dial(port)
    try:
        for piece in pieces:
            client.sendall(piece)
        if half_close:
            client.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it has closed already: what it said is still to be read
    found, closed = read_all(client)
    client.close()
    return codes_of(found), closed


def head(method, path, *lines):
    return ("%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (
        method, path, "".join(line + "\r\n" for line in lines))).encode()


def submission(suite):
    body = json.dumps({"jobs": [spec(suite, 1)]}).encode()
    return head("POST", "/v1/suites/%s/jobs" % suite, "Content-Length: %d" % len(body)) + body


def shapes():
    """(name, pieces to send, codes that may be the first, most replies that may come)."""
    inner = submission("smuggled")
    chunk = b"0\r\n\r\n"
    path = "/v1/suites/outer/jobs"
    smuggling = {
        "content length and transfer encoding": head(
            "POST", path, "Content-Length: %d" % len(chunk + inner),
            "Transfer-Encoding: chunked") + chunk + inner,
        "transfer encoding and content length": head(
            "POST", path, "Transfer-Encoding: chunked",
            "Content-Length: %d" % len(chunk + inner)) + chunk + inner,
        "two content lengths": head(
            "POST", path, "Content-Length: 2", "Content-Length: %d" % (2 + len(inner))) +
        b"{}" + inner,
        "two content lengths, the long one first": head(
            "POST", path, "Content-Length: %d" % (2 + len(inner)), "Content-Length: 2") +
        b"{}" + inner,
        "a list of content lengths": head("POST", path, "Content-Length: 2, 2") + b"{}" + inner,
        "a signed content length": head("POST", path, "Content-Length: +2") + b"{}" + inner,
        "a negative content length": head("POST", path, "Content-Length: -2") + b"{}" + inner,
        "a hexadecimal content length": head("POST", path, "Content-Length: 0x2") + b"{}" + inner,
        "a content length beyond 64 bits": head(
            "POST", path, "Content-Length: 18446744073709551618") + b"{}" + inner,
        "an unknown transfer encoding": head(
            "POST", path, "Transfer-Encoding: xchunked") + chunk + inner,
        "two transfer encodings": head(
            "POST", path, "Transfer-Encoding: chunked", "Transfer-Encoding: identity") +
        chunk + inner,
        "a chunk size with a sign": head("POST", path, "Transfer-Encoding: chunked") +
        b"-1\r\n\r\n" + inner,
        "a chunk size beyond 64 bits": head("POST", path, "Transfer-Encoding: chunked") +
        b"10000000000000002\r\n{}\r\n0\r\n\r\n" + inner,
        "a space before the colon": head("POST", path, "Content-Length : 2") + b"{}" + inner,
        "a folded header": head("POST", path, "X: a", " Content-Length: 2",
                                "Content-Length: %d" % (2 + len(inner))) + b"{}" + inner,
    }
    result = [(name, [data], (400, 411, 413, 501, 404), 1) for name, data in smuggling.items()]
    deep = b"[" * 200000
    big = 64 << 20
    result += [
        ("a body that is declared far too long",
         [head("POST", "/v1/completions", "Content-Length: %d" % (1 << 50))], (413,), 1),
        ("a body that is declared too long, and sent",
         [head("POST", "/v1/completions", "Content-Length: %d" % (big + 1))] +
         [b" " * 65536] * (big // 65536) + [b" "], (413,), 1),
        ("chunks without end", [head("PUT", "/v1/scenarios/x", "Transfer-Encoding: chunked")] +
         [b"100000\r\n" + b"x" * 0x100000 + b"\r\n"] * 80, (413,), 1),
        ("a body where none is taken", [head("GET", "/v1/health", "Content-Length: 5"), b"hello"],
         (200, 400, 413), 1),
        ("deep nesting", [head("POST", path, "Content-Length: %d" % len(deep)), deep], (413,), 1),
        ("a wide array", [head("POST", path, "Content-Length: %d" % (3 << 20)),
                          b"[" + b"{}," * ((1 << 20) - 1) + b"]"[:1] + b" "], (400, 413), 1),
        ("no JSON", [head("POST", path, "Content-Length: 9"), b"\xff\x00\xfe nope"[:9]], (400,), 1),
        ("huge headers", [head("GET", "/v1/health", "X: " + "y" * (1 << 20))], (400, 413, 431), 1),
        ("ten thousand headers", [head("GET", "/v1/health", *["X%d: y" % i for i in range(10000)])],
         (400, 413, 431), 1),
        ("a long URI", [head("GET", "/v1/suites/" + "a" * 20000)], (400, 404, 413, 414, 431), 1),
        ("a TLS hello in the clear", [bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]) + b"\0" * 505],
         (400,), 1),
        ("binary noise", [bytes(random.Random(1).randbytes(4096))], (400,), 1),
        ("HTTP/2 without asking", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], (400, 404, 405, 505), 1),
        ("an absolute path to a file", [head("GET", "/etc/passwd")], (404,), 1),
        ("dots", [head("GET", "/v1/artifacts/../../../etc/passwd")], (400, 404), 1),
        ("coded dots", [head("GET", "/v1/artifacts/..%2f..%2f..%2fetc%2fpasswd")], (400, 404), 1),
        ("a coded zero", [head("GET", "/v1/artifacts/%00")], (400, 404), 1),
        ("dots to write", [head("PUT", "/v1/artifacts/..%2f..%2fx", "Content-Length: 1"), b"x"],
         (400, 404, 409), 1),
        ("a made-up method", [head("BREW", "/v1/health")], (400, 404, 405, 501), 1),
        ("nonsense for a token", [head("GET", "/v1/health", "Authorization: Bearer " + "z" * 4000)],
         (200, 401), 1),
    ]
    return result


class Abuse:
    def __init__(self, options, port, pid):
        self.options = options
        self.port = port
        self.pid = pid
        self.problems = []
        self.ending = threading.Event()
        self.peak_kb = 0
        self.counts = {}
        self.mutex = threading.Lock()

    def check(self, held, text):
        if not held:
            with self.mutex:
                if text not in self.problems:
                    self.problems.append(text)
                    print("     WRONG  " + text, flush=True)

    def count(self, name):
        with self.mutex:
            self.counts[name] = self.counts.get(name, 0) + 1

    def memory_kb(self):
        with open("/proc/%d/status" % self.pid) as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        return 0

    def watch_memory(self):
        while not self.ending.wait(0.05):
            self.peak_kb = max(self.peak_kb, self.memory_kb())

    def slow_headers(self):
        clients = [dial(self.port) for _ in range(SLOW_CLIENTS)]
        text = head("GET", "/v1/health", "X-Long: " + "y" * 100000)
        self.trickle(clients, text, "slow headers")

    def slow_bodies(self):
        clients = [dial(self.port) for _ in range(SLOW_CLIENTS)]
        for client in clients:
            client.sendall(head("POST", "/v1/completions", "Content-Length: 100000"))
        self.trickle(clients, b" " * 100000, "slow bodies")

    def trickle(self, clients, text, name):
        """A byte per client and second; those that the server cuts off come again."""
        at = 0
        while not self.ending.wait(1.0):
            for i, client in enumerate(clients):
                try:
                    client.send(text[at:at + 1])
                    self.count(name + ", bytes")
                except OSError:
                    self.count(name + ", cut off")
                    client.close()
                    clients[i] = dial(self.port)
            at += 1
        for client in clients:
            client.close()

    def slow_readers(self):
        """Ask for much and read nothing."""
        clients = []
        for _ in range(SLOW_CLIENTS):
            client = dial(self.port)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            try:
                client.settimeout(0.5)
                client.sendall(head("GET", "/v1/outcomes?limit=1000") * 500)
            except OSError:
                pass
            clients.append(client)
        self.ending.wait()
        for client in clients:
            client.close()

    def idlers(self):
        clients = []
        for _ in range(self.options.idle):
            try:
                clients.append(dial(self.port))
            except OSError:
                self.count("idle connections refused")
        self.count("idle connections: %d held" % len(clients))
        self.ending.wait()
        for client in clients:
            client.close()

    def shaped(self):
        while not self.ending.is_set():
            for name, pieces, codes, most in shapes():
                if self.ending.is_set():
                    return
                found, closed = exchange(self.port, pieces)
                # A server that closes while it is still being sent to may lose its answer on the
                # way (RFC 9112, 9.6), so no answer and a closed connection is right too.
                # libmicrohttpd says some of its own refusals twice, and then closes.
                refused = closed and all(code in codes and code >= 400 for code in found)
                right = refused or (found and found[0] in codes and len(found) <= most)
                self.check(right, "%s: codes %s, %s" % (
                    name, found, "closed" if closed else "left open"))
                self.count("shapes")
                # Both sides share a few processors: the point is what it does, not how often.
                self.ending.wait(0.1)

    def pipelines(self):
        while not self.ending.wait(0.2):
            found, _ = exchange(self.port, [head("GET", "/v1/health") * 100])
            self.check(found == [200] * 100 or 429 in found, "a pipeline of 100 got %d answers" % (
                len(found)))
            self.count("pipelines")

    def half_closed(self):
        while not self.ending.wait(0.2):
            found, closed = exchange(self.port, [head("GET", "/v1/health")], half_close=True)
            self.check(found in ([200], [429], []) and closed, "half-closed: codes %s, %s" % (
                found, "closed" if closed else "left open"))
            found, closed = exchange(self.port, [head(
                "POST", "/v1/completions", "Content-Length: 10") + b"{"], half_close=True)
            self.check(found in ([], [400], [429]) and closed, "half a body: codes %s, %s" % (
                found, "closed" if closed else "left open"))
            self.count("half-closed")

    def resetters(self):
        """Long polls and half requests that end in a reset."""
        claim_id = 0
        while not self.ending.wait(0.1):
            claim_id += 1
            body = json.dumps({"pool": "bulk", "device": "cpu", "max": 1, "wait_ms": 20000,
                               "claim_id": claim_id}).encode()
            poll = head("POST", "/v1/workers/resetter/claim",
                        "Content-Length: %d" % len(body)) + body
            for text in (poll, poll[:-5], head("GET", "/v1/health")):
                client = dial(self.port)
                client.sendall(text)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  b"\1\0\0\0\0\0\0\0")
                client.close()
                self.count("resets")

    def start(self):
        kinds = [getattr(self, name) for name in self.options.kinds.split(",")]
        self.threads = [threading.Thread(target=self.guard, args=(kind,))
                        for kind in kinds + [self.watch_memory]]
        for thread in self.threads:
            thread.start()

    def guard(self, kind):
        try:
            kind()
        except Exception as problem:  # a thread's end would go unseen
            if not self.ending.is_set():
                self.check(False, "%s: %r" % (kind.__name__, problem))

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()


# ---- a guarded server ----

def make_guard(options, directory):
    """Certificate, key, tokens file, and the texts of a live, a foreign and an expired token."""
    cert, key, tokens = (os.path.join(directory, name) for name in ("cert.pem", "key.pem",
                                                                    "tokens"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, stderr=subprocess.DEVNULL)
    texts = {}
    for name, role in (("live", ["admin"]), ("worker", ["worker", "--pool", "other"]),
                       ("expired", ["admin"])):
        done = subprocess.run([options.binary, "token", "add", name, "--role", *role, "--tokens",
                               tokens], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        texts[name] = done.stdout.decode().strip()
    with open(tokens) as file:
        listed = json.load(file)
    for token in listed["tokens"]:
        if token["name"] == "expired":
            token["created_s"], token["expires_s"] = 1, 2
    with open(tokens, "w") as file:
        json.dump(listed, file)
    return cert, key, tokens, texts


def https_code(port, cert, method, path, headers, body=None):
    connection = http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=30, context=ssl.create_default_context(cafile=cert))
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply.status


def abuse_tokens(abuse, port, cert, texts):
    wrong = texts["live"][:-1] + ("0" if texts["live"][-1] != "0" else "1")
    worker = json.dumps({"pool": "bulk", "device": "cpu", "progress": []})
    heartbeat = "/v1/workers/w/heartbeat"
    cases = [
        ("a live token", "GET", "/v1/suites", "Bearer " + texts["live"], None, (200,)),
        ("no token", "GET", "/v1/suites", None, None, (401,)),
        ("a wrong token", "GET", "/v1/suites", "Bearer " + wrong, None, (401,)),
        ("half a token", "GET", "/v1/suites", "Bearer " + texts["live"][:40], None, (401,)),
        ("a token and more", "GET", "/v1/suites", "Bearer " + texts["live"] + "0", None, (401,)),
        ("an expired token", "GET", "/v1/suites", "Bearer " + texts["expired"], None, (401,)),
        ("another scheme", "GET", "/v1/suites", "Basic " + texts["live"], None, (401,)),
        ("a token of 16 KiB", "GET", "/v1/suites", "Bearer " + "a" * 16384, None, (401,)),
        ("a token of another role", "GET", "/v1/suites", "Bearer " + texts["worker"], None, (403,)),
        ("a token of another pool", "POST", heartbeat, "Bearer " + texts["worker"], worker, (403,)),
        ("a body without a token", "POST", heartbeat, None, " " * (1 << 20), (401, None)),
    ]
    for name, method, path, authorization, body, codes in cases:
        headers = {"Content-Type": "application/json"}
        if authorization is not None:
            headers["Authorization"] = authorization
        try:
            code = https_code(port, cert, method, path, headers, body)
        except OSError:
            code = None  # closed while the body was still being sent
        abuse.check(code in codes, "%s: code %s" % (name, code))
        abuse.count("tokens")


def abuse_tls(abuse, port, cert, texts):
    hello = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]) + b"\0" * 505
    held = [dial(port) for _ in range(50)]  # they never begin, and hold up nobody
    for client in held[:25]:
        client.sendall(hello[:100])
    for name, data in (("plain HTTP", head("GET", "/v1/health")), ("a broken hello", hello),
                       ("noise", bytes(random.Random(2).randbytes(2000))),
                       ("a record of 16 MiB", b"\x16\x03\x03\xff\xff" + b"x" * (1 << 24))):
        found, closed = exchange(port, [data])
        abuse.check(not found and closed, "%s instead of TLS: %s, %s" % (
            name, found, "closed" if closed else "left open"))
        abuse.count("no TLS")
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            context.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                context.minimum_version = context.maximum_version = version
            context.wrap_socket(dial(port)).close()
            abuse.check(False, "%s is accepted" % version.name)
        except (OSError, ValueError):
            abuse.count("old TLS")
    code = https_code(port, cert, "GET", "/v1/suites",
                      {"Authorization": "Bearer " + texts["live"]})
    abuse.check(code == 200, "TLS beside those who never begin it: code %s" % code)
    for client in held:
        client.close()


def crowd(port, address, ending, held):
    """Connections of one address that begin a handshake and stop, opened anew as they are cut."""
    while not ending.is_set():
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            client.bind((address, 0))
            client.settimeout(5)
            client.connect(("127.0.0.1", port))
            client.sendall(bytes([22, 3, 1, 2, 0, 1]))
            held.append(client)
        except OSError:
            client.close()
            ending.wait(0.01)
        if len(held) > CROWD_HELD:
            held.pop(0).close()
        ending.wait(0.001)


def abuse_by_crowds(options, abuse, port, pid, cert, texts):
    """Four addresses that hold up to 1,200 connections each, and one that has a token or asks for health."""
    ending = threading.Event()
    held = [[] for _ in range(4)]
    crowds = [threading.Thread(target=crowd, args=(port, "127.0.0.%d" % (3 + i), ending, held[i]))
              for i in range(4)]
    memory = Abuse(options, port, pid)
    before_kb = memory.memory_kb()
    for thread in crowds:
        thread.start()
    end_s = time.monotonic() + min(options.seconds, 15)
    slowest_s = 0.0
    most_kb = 0
    while time.monotonic() < end_s:
        for path, headers in (("/v1/suites", {"Authorization": "Bearer " + texts["live"]}), ("/healthz", {})):
            start_s = time.monotonic()
            try:
                code = https_code(port, cert, "GET", path, headers)
            except OSError as problem:
                code = repr(problem)
            abuse.check(code == 200, "%s beside crowds that say nothing: %s" % (path, code))
            slowest_s = max(slowest_s, time.monotonic() - start_s)
            abuse.count("asked beside crowds")
        most_kb = max(most_kb, memory.memory_kb())
    ending.set()
    for thread in crowds:
        thread.join()
    print("crowds: %d connections of four addresses held, the slowest answer to others %.2f s, memory %.0f MiB more" % (
        sum(len(clients) for clients in held), slowest_s, (most_kb - before_kb) / 1024), flush=True)
    abuse.check((most_kb - before_kb) / 1024 < 128, "crowds cost %.0f MiB" % ((most_kb - before_kb) / 1024))
    for clients in held:
        for client in clients:
            client.close()


def run_guarded(options, abuse, directory):
    cert, key, tokens, texts = make_guard(options, directory)
    server, port = start_server(options, directory, [
        "--tokens", tokens, "--tls-cert", cert, "--tls-key", key])
    try:
        abuse_tokens(abuse, port, cert, texts)
        abuse_tls(abuse, port, cert, texts)
        abuse_by_crowds(options, abuse, port, server.pid, cert, texts)
    finally:
        server.send_signal(signal.SIGTERM)
        abuse.check(server.wait(60) == 0, "exit status with TLS: %s" % server.returncode)
    with open(os.path.join(directory, "stderr.log")) as file:
        log = file.read()
    abuse.check(not any(text in log for text in texts.values()), "a token is in the log")


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    reply = connection.getresponse()
    return reply.status, reply.read()


def start_server(options, directory, more=()):
    with open(os.path.join(directory, "stderr.log"), "ab") as log:
        server = subprocess.Popen(
            [options.binary, "serve", "--store", os.path.join(directory, "abuse.db"), "--listen",
             "127.0.0.1:0", "--peer-connections", "4096", "--verbose"] + list(more) +
            options.serve_options.split(), stdout=subprocess.PIPE, stderr=log)
    line = server.stdout.readline().decode().strip()
    return server, int(line.rpartition(":")[2])


def run(options):
    directory = tempfile.mkdtemp(prefix="swerve-abuse-")
    server, port = start_server(options, directory)
    abuse = Abuse(options, port, server.pid)
    alone = json.loads(start_good(port, options.seconds, "before").communicate()[0])
    before_kb = abuse.memory_kb()
    abuse.start()
    time.sleep(2)  # until all kinds are at it
    beside = json.loads(start_good(port, options.seconds, "during").communicate()[0])
    abuse.stop()
    time.sleep(2)
    after_kb = abuse.memory_kb()
    for problem in (alone["failures"] + beside["failures"])[:5]:
        abuse.check(False, "a well-behaved client: " + problem)
    abuse.check(get(port, "/v1/suites/smuggled")[0] == 404, "a smuggled submission took effect")
    abuse.check(get(port, "/v1/health")[0] == 200, "the server does not answer any more")
    grown_mb = (abuse.peak_kb - before_kb) / 1024
    abuse.check(grown_mb < options.memory_mb, "memory grew by %.0f MiB, expected less than %d" % (
        grown_mb, options.memory_mb))
    server.send_signal(signal.SIGTERM)
    abuse.check(server.wait(30) == 0, "exit status of the server: %s" % server.returncode)
    run_guarded(options, abuse, directory)
    p99 = [percentile_ms(side["latencies"], 99) for side in (alone, beside)]
    p50 = [percentile_ms(side["latencies"], 50) for side in (alone, beside)]
    ratio = p99[1] / p99[0]
    if options.p99_ratio > 0:
        abuse.check(ratio <= options.p99_ratio, "p99 is %.1f times that without abuse" % ratio)
    for name, count in sorted(abuse.counts.items()):
        print("%8d  %s" % (count, name))
    print("well-behaved: %d requests alone, p50 %.1f ms, p99 %.1f ms; %d beside abuse, p50 %.1f "
          "ms, p99 %.1f ms; ratio of p99 %.2f" % (
              len(alone["latencies"]), p50[0], p99[0], len(beside["latencies"]), p50[1], p99[1],
              ratio))
    print("memory: %.0f MiB before, peak %.0f MiB, %.0f MiB after" % (
        before_kb / 1024, abuse.peak_kb / 1024, after_kb / 1024))
    print("%s: %d problems" % ("abuse FAILED" if abuse.problems else "abuse passed",
                               len(abuse.problems)))
    subprocess.run(["rm", "-rf", directory], check=True)
    return 1 if abuse.problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=45, help="each of both measurements")
    parser.add_argument("--idle", type=int, default=2000, help="idle connections")
    parser.add_argument("--kinds", default=KINDS, help="of abuse (%(default)s)")
    parser.add_argument("--memory-mb", type=int, default=512, help="growth that is still right")
    parser.add_argument("--p99-ratio", type=float, default=0, help="0: is only printed")
    parser.add_argument("--serve-options", default="", help="further options of the server")
    parser.add_argument("--binary", default=os.path.join(TOP, "build", "worker", "swerve"))
    parser.add_argument("--good", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = max(options.idle, 4 * CROWD_HELD) + 1024
    if soft < need:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(need, hard), hard))
    if options.good:
        port, seconds, prefix = options.good
        run_good(int(port), float(seconds), prefix)
        return 0
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
