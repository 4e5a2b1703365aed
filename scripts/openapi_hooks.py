"""Changes that scripts/check_openapi makes in the requests that schemathesis makes up."""
import hashlib
import re

import schemathesis


def settle_hash(case):
    """Bytes that are stored by name must have the hash in the path, which a schema cannot say: every
    other time they get it, so that what is accepted is seen too."""
    name = (case.path_parameters or {}).get("hash")
    body = getattr(case.body, "data", case.body)
    if case.method != "PUT" or not isinstance(body, bytes) or not isinstance(name, str):
        return
    if re.fullmatch("[0-9a-f]{64}", name) and int(name[0], 16) % 2 == 0:
        case.path_parameters["hash"] = hashlib.sha256(body).hexdigest()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Claims on an empty store wait as long as they say; a check has no time for a minute each."""
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("wait_ms"), int) and body["wait_ms"] <= 60000:
        body["wait_ms"] = min(body["wait_ms"], 5)
    settle_hash(case)
