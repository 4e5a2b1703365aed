"""TAP in Python: what tests of the binary share, as tap.sh does for those in shell."""
import traceback


def run(tests, *given):
    """Runs functions by their names, all of them and each with what is given, and returns how many failed."""
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        try:
            test(*given)
            print(f"ok {number} - {test.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {test.__name__}")
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "), flush=True)
    return failed
