#!/usr/bin/env python3
"""Memory that a server holds while many clients hold it up.

Starts `swerve serve` on a scratch store (TLS with --tls), opens many connections of four addresses that
never show a token, then many that do and keep still, then as many uploads of large artifacts as it takes, each stopped half-way, then asks for a large artifact
many times without reading it. Prints the server's resident memory after each step;
fails when it exceeds --limit-mib or the server stops answering.

    scripts/server_memory.py --connections 1024 --artifact-mib 256
"""
import argparse
import hashlib
import os
import pathlib
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time


class Server:
    def __init__(self, binary: str, folder: pathlib.Path, tls: bool):
        self.context = None
        command = [binary, "serve", "--store", str(folder / "s.db"), "--listen", "127.0.0.1:0"]
        command += ["--connections", "4096", "--peer-connections", "4096"]
        token = [binary, "token", "add", "bench", "--role", "admin", "--store", str(folder / "s.db")]
        self.token = subprocess.run(token, check=True, capture_output=True, text=True).stdout.strip()
        if tls:
            cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                 "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                 "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
            command += ["--tls-cert", cert, "--tls-key", key]
            self.context = ssl.create_default_context(cafile=cert)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        url = self.process.stdout.readline().strip()
        if not url:
            sys.exit("the server did not start")
        self.port = int(url.rsplit(":", 1)[1])

    def connect(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        return self.context.wrap_socket(plain, server_hostname="127.0.0.1") if self.context else plain

    def begin(self, address: str) -> socket.socket:
        """A connection from there that has sent a part of a handshake, or of headers without a token."""
        plain = socket.socket()
        plain.bind((address, 0))
        plain.connect(("127.0.0.1", self.port))
        plain.sendall(bytes([22, 3, 1, 2, 0, 1]) if self.context else b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20000)
        return plain

    def head(self, method: str, path: str, length: int = 0) -> bytes:
        return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
                f"Content-Length: {length}\r\n\r\n").encode()

    def code(self, connection: socket.socket) -> int:
        """The code of one whole answer; raises where nothing has come yet."""
        text = connection.recv(65536)
        connection.settimeout(60)
        while text and b"\r\n\r\n" not in text:
            text += connection.recv(65536)
        if not text:
            return 0
        head, _, body = text.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split()[0])
        while len(body) < length:
            body += connection.recv(65536)
        return int(head.split()[1])

    def resident_mib(self) -> float:
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="build/worker/swerve")
    parser.add_argument("--unknown", type=int, default=4000)
    parser.add_argument("--connections", type=int, default=1024)
    parser.add_argument("--artifact-mib", type=int, default=256)
    parser.add_argument("--downloads", type=int, default=200)
    parser.add_argument("--limit-mib", type=float, default=2048)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = 0.0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))
    with tempfile.TemporaryDirectory() as name:
        server = Server(options.binary, pathlib.Path(name), options.tls)
        try:
            def report(what: str) -> None:
                nonlocal most
                most = max(most, server.resident_mib())
                probe = server.connect()
                probe.sendall(server.head("GET", "/healthz"))
                assert server.code(probe) == 200, f"no answer: {what}"
                print(f"{server.resident_mib():8.1f} MiB  {what}", flush=True)

            report("at rest")
            rest = server.resident_mib()
            unknown = [server.begin(f"127.0.0.{2 + i % 4}") for i in range(options.unknown)]
            served = options.unknown and min(options.unknown, 1025)  # a quarter of the connections
            time.sleep(1)  # not to synchronise: the figure is what stands after a moment
            each = 1024 * (server.resident_mib() - rest) / served if served else 0.0
            report(f"{len(unknown)} connections that stop in the middle of their headers, {each:.0f} kB each of {served}")
            for connection in unknown:
                connection.close()
            time.sleep(2)
            held = []
            for _ in range(options.connections):
                held.append(server.connect())
                held[-1].sendall(server.head("GET", "/healthz"))
                assert server.code(held[-1]) == 200
            each = 1024 * (server.resident_mib() - rest) / len(held)
            report(f"{len(held)} connections that have asked and keep still, {each:.0f} kB each")
            size = options.artifact_mib << 20
            piece = os.urandom(1 << 20)
            codes = {}
            uploads = []
            for i, connection in enumerate(held):
                connection.sendall(server.head("PUT", f"/v1/artifacts/{i:064x}", size))
            time.sleep(5)  # refusals come at once; the others wait for bytes
            for connection in held:
                connection.settimeout(0)
                try:
                    code = server.code(connection)
                    codes[code] = codes.get(code, 0) + 1
                except (BlockingIOError, ssl.SSLWantReadError):
                    connection.settimeout(60)
                    connection.sendall(piece * 4)
                    uploads.append(connection)
            report(f"{len(uploads)} uploads of {options.artifact_mib} MiB under way, others {codes}")
            for connection in held:
                connection.close()
            sample = piece * options.artifact_mib
            path = f"/v1/artifacts/{hashlib.sha256(sample).hexdigest()}"
            upload = server.connect()
            upload.sendall(server.head("PUT", path, size))
            upload.sendall(sample)
            assert server.code(upload) == 200
            report("one stored")
            readers = []
            for _ in range(options.downloads):
                readers.append(server.connect())
                readers[-1].sendall(server.head("GET", path))
            time.sleep(10)  # not to synchronise: the figure is what stands after a while
            report(f"{len(readers)} downloads of it that nobody reads")
        finally:
            server.process.kill()
            server.process.wait()
    print(f"most: {most:.1f} MiB, allowed {options.limit_mib:.0f} MiB")
    return 0 if most <= options.limit_mib else 1


if __name__ == "__main__":
    sys.exit(main())
