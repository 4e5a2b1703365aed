#!/bin/bash
# Goal: swerve dossier says what the suite and the store say, names what is missing, and keeps the
# argument of docs/credibility.md as it stands.
# Method: a small suite with drives that pass and fail; its figures are compared with `show --all`.
#
# Usage: test_dossier.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-dossier-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SWERVE_STORE
export SOURCE_DATE_EPOCH=1795476600 # 2026-11-23 23:30 UTC
. "$here/tap.sh"

cat >drive.json <<'JSON'
{"id": "drive", "parameters": {"gap_m": 40},
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 4,
 "criteria": {"no_collision": true},
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": "=20 + gap_m"}}]}
JSON
suite() { # suite FILE GAPS
    echo "{\"id\": \"x\", \"title\": \"A | suite\", \"planners\": [\"builtin:maintain\"],
        \"scenarios\": [{\"file\": \"drive.json\", \"grid\": {\"gap_m\": [$2]}}]}" >"$1"
}
suite some.json "20, 30, 150"
suite more.json "20, 30, 150, 200"
cat >register.json <<'JSON'
{"protocols": {"p": {"title": "A protocol", "version": "1"}},
 "files": [{"file": "drive.json", "protocol": "p", "clause": "1",
            "values": [{"quantity": "ego_speed_kph", "allowed": [50], "source": "table 1"},
                       {"quantity": "speed_kph", "agent": "lead", "allowed": [0], "source": "s", "verified": false}],
            "deviations": [{"quantity": "ego_speed_kph", "allowed": [43.2], "reason": "Slower on purpose."}]}]}
JSON

results_are_those_of_the_store() {
    code 0 "$swerve" run some.json --world object --store a.db
    code 0 "$swerve" dossier some.json --store a.db -o a.md
    [ "$(sed -n '1p;3p' a.md)" = '# Credibility dossier: A \| suite
2 of 3 main lines failed, 2 by at fault collision.' ] || fail "no conclusion first: $(head -3 a.md)"
    says a.md '| scenarios of the suite with a result | 3 of 3 |'
    says a.md 'Rollouts, branches included: 1 pass, 2 fail,'
    says a.md '| all | object | 33.3% |'
    grep -q '| written by | swerve .*, simulation sources [0-9a-f]*, 2026-11-23 23:30 UTC |' a.md || fail 'no date'
    grep -q ', submitted 20[0-9-]* [0-9:]* UTC |' a.md || fail "when the results came about is not said"
    says a.md 'made again, bit for bit'
    says a.md 'ranges of parameters in 0 of 1 logical scenarios'
    [ "$(grep -c '| `swerve replay [0-9]* --store a.db` |' a.md)" = 2 ] || fail "two failures are not listed"
    local id
    id=$(sed -n 's/.*`swerve replay \([0-9]*\) --store.*/\1/p' a.md | head -1)
    code 0 "$swerve" replay "$id" --store a.db
    grep -q 'Only the nominal seed' a.md && fail "seed 1 is not nominal"
    says a.md 'Each scenario was driven with one seed'
}
# Drives without a result are in no rate, and in its range as failures and as passes.
invalid_drives_are_in_the_range() {
    cp -r a.db invalid.db
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import sqlite3
store = sqlite3.connect("invalid.db")
id, = store.execute("SELECT MIN(id) FROM outcomes WHERE verdict = 1").fetchone()
store.execute("UPDATE outcomes SET verdict = 4, health_check = 'mass' WHERE id = ?", (id,))
store.commit()
PY
    code 0 "$swerve" dossier some.json --store invalid.db -o invalid.md
    grep -q '^| all | object | 50.0% | [0-9. to]*% | 33.3 to 66.7% | 2 | 2 | 1 | 0 | 1 | 0 | 0 | 0 |$' invalid.md ||
        fail "$(grep '^| all' invalid.md)"
    code 0 "$swerve" report --store invalid.db
    says out "1 of 3 main lines have no result (1 invalid): the rate would be 33.3% had they all failed, 66.7%"
}
# The page says what the Markdown says: every cell of every table, and nothing of a title is markup.
a_page_says_the_same() {
    code 0 "$swerve" dossier some.json --store a.db --html -o a.html
    code 0 "$swerve" dossier some.json --store a.db -o a.md
    python3 - <<'PY' || fail "the page differs: $(cat err)"
import html.parser, re
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(); self.open = []; self.cells = []; self.heads = []; self.kinds = []; self.text = None
    def handle_starttag(self, tag, attributes):
        if tag in ("meta", "hr", "link", "img", "input", "br"): return
        self.open.append(tag)
        assert tag not in ("a", "i"), tag
        if tag in ("td", "th", "h1", "h2", "h3"): self.text = ""
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.open)
        if tag in ("td", "th"): self.cells.append(self.text.strip()); self.kinds.append((tag, self.cells[-1]))
        if tag in ("h1", "h2", "h3"): self.heads.append(self.text.strip())
    def handle_data(self, data):
        if self.text is not None: self.text += data
page = Page(); page.feed(open("a.html").read()); page.close()
assert not page.open, page.open
def plain(text):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.strip())
    text = re.sub(r"(?<!\\)(\*\*|`)", "", text)
    return re.sub(r"\\(.)", r"\1", text)
cells, heads = [], []
for line in open("a.md"):
    line = line.rstrip("\n")
    if line.startswith("|") and not re.fullmatch(r"[|: -]+", line):
        cells += [plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    elif re.match(r"#+ ", line):
        heads.append(plain(line.lstrip("#")))
assert page.cells == cells and len(cells) > 100, [(a, b) for a, b in zip(page.cells, cells) if a != b][:3]
# A table without headings has none: its first row is not one.
assert [tag for tag, text in page.kinds if text in ("suite", "group")] == ["td", "th"], page.kinds[:4]
assert page.heads == heads and "A | suite" in heads[0], (page.heads, heads)
PY
}
# scripts/demo leaves a folder "demo": a folder without a scenario hides no suite of the library.
the_library_goes_by_name() {
    mkdir -p smoke
    touch smoke/report.html
    code 0 "$swerve" dossier smoke
    says out '8 concrete scenarios of 8 logical ones'
    code 0 "$swerve" coverage smoke
    cp drive.json smoke/
    code 0 "$swerve" coverage smoke
    says out '1 concrete scenarios of 1 logical ones'
    rm -r smoke
    code 3 "$swerve" dossier nosuch
    says err 'no such file, and no suite of the library has that name'
}
nominal_results_say_so() {
    code 0 "$swerve" run some.json --world object --store n.db --nominal
    code 0 "$swerve" dossier some.json --store n.db
    says out 'Only the nominal seed was driven'
}
the_same_store_gives_the_same_bytes() {
    code 0 "$swerve" dossier some.json --store a.db
    cmp -s out a.md || fail "stdout and file differ"
}
what_is_missing_is_named() {
    code 0 "$swerve" dossier more.json --store a.db
    says out '| scenarios of the suite with a result | 3 of 4 |'
    says out '1 of 4 scenarios of the suite have no result (0 of them were flagged or invalid): drive/gap_m=200.'
    suite fewer.json "20"
    code 0 "$swerve" dossier fewer.json --store a.db
    says out '2 main lines in the store are of scenarios that this suite file does not have'
    code 0 "$swerve" dossier some.json
    says out '* Results: no store was named.'
    says out '* Protocols: no register was named'
}
protocols_have_a_chapter() {
    code 0 "$swerve" dossier some.json --protocols register.json
    says out '1 files of the suite carry a protocol'"'"'s name: 3 scenarios, 6 values compared with the register, 0 problems; 1 of'
    says out 'ego_speed_kph 43.2: Slower on purpose.'
    sed -i 's/43.2/44/' register.json
    code 0 "$swerve" dossier some.json --protocols register.json
    says out '* drive.json, drive/gap_m=20: undeclared ego_speed_kph'
}
exposures_have_a_chapter() {
    echo '{"title": "made up", "basis": "encounters", "mean_speed_kmh": 40, "exposures":
        [{"id": "c", "per_million_km": 6, "source": "nobody", "scenarios": ["drive"]}]}' >exposure.json
    code 0 "$swerve" dossier some.json --store a.db --exposure exposure.json
    says out '## Risk, weighted by exposure'
    # Two of three concrete scenarios fail.
    grep -q '^| criteria not met | .* | 4 | ' out || fail "no observed rate of 4: $(grep criteria out)"
    grep -q 'no exposures were named' out && fail "exposures were named"
    says a.md 'no exposures were named'
    code 2 "$swerve" dossier some.json --exposure exposure.json
}
requirements_have_a_chapter() {
    sed 's/"horizon_s"/"traceability": {"hazards": ["H1"], "requirements": ["R1"]}, "horizon_s"/' drive.json >traced.json
    sed 's/drive.json/traced.json/' some.json >traced_suite.json
    echo '{"title": "made up", "hazards": [{"id": "H1", "text": "one"}],
        "triggering_conditions": [{"id": "C1", "text": "dark", "hazards": ["H1"]}],
        "requirements": [{"id": "R1", "text": "touch nothing", "hazards": ["H1"]}]}' >trace_items.json
    code 0 "$swerve" run traced_suite.json --world object --store t.db
    code 0 "$swerve" dossier traced_suite.json --store t.db --register trace_items.json
    says out '| R1 | touch nothing |  | 3 | 3 | 1 | fail |'
    says out '| C1 | dark |  | 0 | 0 | 0 | no scenario |'
    says out '* Traceability: no scenario tries C1.'
    says a.md 'no register of hazards and requirements was named'
}
the_argument_is_the_page() {
    tail -n "$(wc -l <"$root/docs/credibility.md")" a.md | cmp -s - "$root/docs/credibility.md" ||
        fail "the argument differs from docs/credibility.md"
}
mistakes_leave_what_was_there() {
    cp a.md before.md
    code 3 "$swerve" dossier some.json --store a.db --protocols drive.json -o a.md
    code 3 "$swerve" dossier nowhere.json -o a.md
    code 4 "$swerve" dossier some.json --store nowhere.db -o a.md
    cmp -s a.md before.md || fail "a dossier was written over"
}

t results_are_those_of_the_store
t invalid_drives_are_in_the_range
t a_page_says_the_same
t the_library_goes_by_name
t nominal_results_say_so
t the_same_store_gives_the_same_bytes
t what_is_missing_is_named
t protocols_have_a_chapter
t exposures_have_a_chapter
t requirements_have_a_chapter
t the_argument_is_the_page
t mistakes_leave_what_was_there
echo "1..$count" >&3
[ "$failed" = 0 ]
