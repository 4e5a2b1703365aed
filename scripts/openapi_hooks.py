"""What scripts/check_openapi changes in the requests that schemathesis makes up."""
import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """Claims on an empty store wait as long as they say; a check has no time for a minute each."""
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("wait_ms"), int) and body["wait_ms"] <= 60000:
        body["wait_ms"] = min(body["wait_ms"], 5)
