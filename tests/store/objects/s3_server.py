#!/usr/bin/env python3
"""Object storage that speaks what Swerve uses of S3, for its tests. Usage: s3_server.py DIRECTORY

Prints its port, ends with its input. Every request's signature (Signature Version 4) is computed
again from what arrived, as AWS's documents define it, and compared; so is the SHA-256 of a body.
The computation is tried first on the example of those documents. In DIRECTORY:

    BUCKET/..   objects are files; a bucket is a folder that is there
    fault       "N KIND": the next N requests fail: a number is answered with that code, "cut" ends
                the connection in the middle of the answer, "PUT" refuses those alone, "endless"
                is refused by an answer that does not end, with a sentence that would colour a terminal,
                "console" answers as the console of an object storage does: a page, whatever is asked for,
                and 405 to a PUT, "page" takes a PUT as well, "away" sends elsewhere by 307, "forget" answers a PUT
                well and keeps nothing, "shorten" keeps all but the last byte, "HEAD" refuses those alone, "unsized"
                says no length, and no quotes around the ETag of a PUT, "longer" says none and goes on behind an object
                that is no probe
    seen        a line for each request: the code, method, path
"""
import datetime
import hashlib
import hmac
import http.server
import os
import sys
import threading
import urllib.parse

ID, SECRET, SESSION = "AKIATEST", "secret/with+signs", "session=="
EMPTY = hashlib.sha256(b"").hexdigest()
LOCK = threading.Lock()


def signature(secret: str, method: str, path: str, headers: dict[str, str], signed: str, scope: str) -> str:
    """Of a request without a query; `scope` is DATE/REGION/SERVICE/aws4_request."""
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed.split(";"))
    request = f"{method}\n{path}\n\n{lines}\n{signed}\n{headers['x-amz-content-sha256']}"
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def try_example() -> None:
    """Amazon S3 API Reference, "Signature Calculations for the Authorization Header", GET Object."""
    headers = {"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9", "x-amz-content-sha256": EMPTY,
               "x-amz-date": "20130524T000000Z"}
    found = signature("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "GET", "/test.txt", headers, ";".join(sorted(headers)),
                      "20130524/us-east-1/s3/aws4_request")
    assert found == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", found


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    directory = ""

    def log_message(self, *_):
        pass

    def refusal(self, body: bytes) -> str:
        """Why the request is not one of ours; "" for a good one."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        kind, _, rest = headers.get("authorization", "").partition(" ")
        fields = dict(field.strip().split("=", 1) for field in rest.split(",") if "=" in field)
        who, _, scope = fields.get("Credential", "").partition("/")
        signed = fields.get("SignedHeaders", "")
        must = {"host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"} & set(headers)
        if kind != "AWS4-HMAC-SHA256" or who != ID or not must <= set(signed.split(";")) or len(must) < 3:
            return "InvalidAccessKeyId"
        if headers.get("x-amz-security-token", SESSION) != SESSION:
            return "InvalidToken"
        then = datetime.datetime.strptime(headers["x-amz-date"] + "+0000", "%Y%m%dT%H%M%SZ%z")
        if abs((datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()) > 900:
            return "RequestTimeTooSkewed"
        path = urllib.parse.quote(urllib.parse.unquote(self.path), safe="/-_.~")
        if signature(SECRET, self.command, path, headers, signed, scope) != fields["Signature"]:
            return "SignatureDoesNotMatch"
        return "" if hashlib.sha256(body).hexdigest() == headers["x-amz-content-sha256"] else "XAmzContentSHA256Mismatch"

    def fault(self) -> str:
        with LOCK:
            try:
                with open(os.path.join(self.directory, "fault"), encoding="utf-8") as file:
                    count, kind = file.read().split()
            except FileNotFoundError:
                return ""
            with open(os.path.join(self.directory, "fault"), "w", encoding="utf-8") as file:
                file.write(f"{max(0, int(count) - 1)} {kind}")
            return kind if int(count) > 0 else ""

    def act(self, path: str, body: bytes, kind: str) -> tuple[int, bytes]:
        bucket = os.path.join(self.directory, self.path.split("/")[1])
        if not os.path.isdir(bucket):
            return 404, b"NoSuchBucket"
        if self.command == "PUT" and kind != "forget":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(f"{path}.{threading.get_ident()}", "wb") as file:
                file.write(body[:-1] if kind == "shorten" else body)
            os.rename(file.name, path)
        if self.command == "PUT":
            return 200, b""
        try:
            with open(path, "rb") as file:
                return 200, file.read()
        except FileNotFoundError:
            return 404, b"NoSuchKey"

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.fault()
        why = self.refusal(body)
        if fault == self.command:
            code, answer = 403, b"QuotaExceeded"
        elif fault.isdigit():
            code, answer = int(fault), b"SlowDown"
        elif why:
            code, answer = 403, why.encode()
        else:
            code, answer = self.act(self.directory + self.path, body, fault)
        page = fault == "page" or (fault == "console" and self.command != "PUT")
        if page:
            code, answer = 200, b"<!doctype html><title>Storage Console</title>"
        elif fault == "console":
            code, answer = 405, b""
        elif fault == "away":
            code, answer = 307, b"<Error><Code>TemporaryRedirect</Code></Error>"
        elif code != 200:
            answer = b"<Error><Code>" + answer + b"</Code><Message>as the test says</Message></Error>"
        with LOCK, open(os.path.join(self.directory, "seen"), "a", encoding="utf-8") as file:
            file.write(f"{code} {self.command} {self.path}\n")
        if fault == "endless":
            return self.go_on()
        self.send_response(code)
        if fault in ("unsized", "longer"):
            self.close_connection = True  # which ends the answer
        else:
            self.send_header("Content-Length", str(len(answer)))
        self.send_header("Content-Type", "text/html" if page else "application/zstd" if code == 200 else "application/xml")
        if fault == "away":
            self.send_header("Location", "http://elsewhere.example" + self.path)
        if code == 200 and not page:
            quote = "" if fault == "unsized" and self.command == "PUT" else '"'
            self.send_header("ETag", quote + hashlib.md5(body if self.command == "PUT" else answer).hexdigest() + quote)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer[:len(answer) // 2] if fault == "cut" else answer)
        if fault == "longer" and self.command == "GET" and "/probe/" not in self.path:
            self.write_zeros(64 << 20)
        self.close_connection |= fault == "cut"

    def go_on(self) -> None:
        self.send_response(403)
        self.end_headers()
        self.close_connection = True
        self.wfile.write(b"<Error><Code>Endless</Code><Message>a \33[31mred\n line</Message></Error>")
        self.write_zeros(sys.maxsize)

    def write_zeros(self, count: int) -> None:
        try:
            for _ in range(0, count, 65536):
                self.wfile.write(bytes(65536))
        except OSError:
            return
        with LOCK, open(os.path.join(self.directory, "seen"), "a", encoding="utf-8") as file:
            file.write("taken to its end\n")

    do_GET = do_PUT = do_HEAD = handle_one


def main() -> None:
    try_example()
    Handler.directory = sys.argv[1]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


main()
