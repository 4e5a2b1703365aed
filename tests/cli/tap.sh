# TAP in shell: what the tests of the binary share. Sourced by test_*.sh once their directory is the
# current one. Lines go to descriptor 3, a copy of stdout, because tested commands write to stdout
# and children that outlive a killed one would keep it open.
exec 3>&1

count=0
failed=0
problem=""
# fail TEXT..: the present test is not ok; it goes on.
fail() {
    problem="$problem
# line ${BASH_LINENO[0]}: $*"
}
# t NAME: runs the function NAME and reports it.
t() {
    count=$((count + 1))
    problem=""
    "$1"
    if [ -z "$problem" ]; then
        echo "ok $count - $1" >&3
    else
        echo "not ok $count - $1$problem" >&3
        failed=$((failed + 1))
    fi
}
# code EXPECTED COMMAND..: exit code; stdout in out, stderr in err.
code() {
    local expected=$1
    shift
    "$@" >out 2>err
    local found=$?
    [ "$found" = "$expected" ] || fail "$* : expected exit $expected, found $found: $(head -c 400 err)"
}
# Python without site packages, whose search is half of its start and more; tests use what comes with it.
python3() {
    command python3 -S "$@"
}
# says FILE TEXT: the file contains the text.
says() {
    grep -qF -- "$2" "$1" || fail "expected \"$2\" in $1, found: $(head -c 400 "$1")"
}
