#!/usr/bin/env python3
"""An HTTPS server that answers as a store would, for the client's tests. Usage: tls_server.py DIRECTORY

Makes a self-signed certificate for 127.0.0.1 in DIRECTORY (ca.pem), prints its port, ends with its
input. What it answers is in files of DIRECTORY, read anew for each request:

    expected    the token that it accepts (other requests get 401)
    forbidden   when it is there, requests with the right token get 403
    overloaded  a number: so many requests get the code that follows it, with "Retry-After: 1"
    seen        it appends a line for each request: the code, method, path
"""
import http.server
import os
import ssl
import subprocess
import sys
import threading

DIRECTORY = sys.argv[1]


def path_of(name: str) -> str:
    return os.path.join(DIRECTORY, name)


def read(name: str) -> str:
    try:
        with open(path_of(name), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self) -> tuple[int, str]:
        if self.headers.get("Authorization") != "Bearer " + read("expected"):
            return 401, '{"error": {"status": "usage", "text": "who are you?"}}'
        if os.path.exists(path_of("forbidden")):
            return 403, '{"error": {"status": "usage", "text": "not yours"}}'
        overloaded = read("overloaded").split()
        if overloaded and int(overloaded[0]) > 0:
            with open(path_of("overloaded"), "w", encoding="utf-8") as file:
                file.write(f"{int(overloaded[0]) - 1} {overloaded[1]}")
            return int(overloaded[1]), '{"error": {"status": "busy", "text": "later"}}'
        if self.path == "/v1/health":
            return 200, '{"api": 5}'
        return 200, '{"suites": ["one"]}'

    def do_GET(self):
        code, body = self.answer()
        with open(path_of("seen"), "a", encoding="utf-8") as file:
            file.write(f"{code} {self.command} {self.path}\n")
        self.send_response(code)
        if code in (429, 503):
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that does not trust us hangs up


def main() -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "1", "-subj", "/CN=swerve test", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", path_of("key.pem"), "-out", path_of("ca.pem")],
        check=True, stderr=subprocess.DEVNULL)
    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path_of("ca.pem"), path_of("key.pem"))
    # The handshake belongs to the connection's thread, or a client that hangs would block all.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


main()
