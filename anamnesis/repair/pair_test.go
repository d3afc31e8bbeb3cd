package repair

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
)

func call(command, output string, exit int) Call {
	return Call{Output: failure.Output{Command: command, Text: output, Exit: exit, HasExit: true}}
}

// Each run's calls, and what its pairs come to: "failed>fixed: lines".
func TestPairs(t *testing.T) {
	noTable := call("python3 repro.py", "Traceback (most recent call last):\nOperationalError: no such table: invoice", 1)
	write := call("cat <<'EOF' > repro.py\nimport app\n\napp.setup()\nEOF", "", 0)
	again := call("cat <<'EOF' > repro.py\nimport app\n# now with tables\napp.create_tables()\napp.setup()\nEOF\npython3 repro.py", "ok", 0)
	tests := []struct {
		name  string
		calls []Call
		want  string
	}{
		{"new lines of a file written again", []Call{write, noTable, again}, "1>2: # now with tables|app.create_tables()"},
		{"one pair for a chain", []Call{write, noTable, noTable, again}, "1>3: # now with tables|app.create_tables()"},
		{"other runner of the same file", []Call{
			call("python -m pytest ledger/tests/test_sum.py", "/usr/bin/python: No module named pytest", 1),
			call("cat ledger/tests/test_sum.py", "import sum", 0),
			call("cd /work && bin/test ledger/tests/test_sum.py", "1 passed", 0),
		}, "0>2: bin/test ledger/tests/test_sum.py"},
		{"other options, cd before", []Call{
			call("npm test -- sum", "Error: Cannot find module 'left-pad'", 1),
			call("npm i left-pad", "added 1 package", 0),
			call("cd web && npm test -- --watch=false sum", "1 passed", 0),
		}, "0>2: npm test -- --watch=false sum|npm i left-pad"},
		{"a search without hits is no failure", []Call{
			call("grep -rn total .", "", 1), call("grep -rn total src", "src/a.go:1: total", 0),
		}, ""},
		{"undone by the same failure of the same command", []Call{
			noTable, call("python3 repro.py --fake", "ok", 0), noTable,
		}, ""},
		{"another script of the package", []Call{
			call("npm run check", "error TS2739: Type 'string' is missing", 1), call("npm run build", "ok", 0),
		}, ""},
		{"another verb of the same program before it", []Call{
			call("git commit -m 'Release the ledger'", "error TS2345: Argument of type 'string'", 1), call("git add . && git commit -m 'Release the ledger 2'", "ok", 0),
		}, "0>1: git commit -m 'Release the ledger 2'"},
		{"a file written whole later", []Call{
			call("python3 test_sum.py", "AssertionError: 0.30000000000000004", 1),
			{Output: failure.Output{Text: "ok"}, Changes: []edit.Change{{Path: "sum.py", Added: []string{"return round(sum(p), 2)"}}}},
			call("python3 test_sum.py", "AssertionError: rounding is not allowed", 1),
			{Output: failure.Output{Text: "ok"}, Changes: []edit.Change{{Path: "/home/u/shop/sum.py", Added: []string{"return sum(map(Decimal, p))"}, Whole: []string{"return sum(map(Decimal, p))"}}}},
			call("python3 test_sum.py", "ok", 0),
		}, "0>4: return sum(map(Decimal, p))"},
		{"a line edited again", []Call{
			call("python3 test_sum.py", "AssertionError: 0.30000000000000004", 1),
			{Output: failure.Output{Text: "ok"}, Changes: []edit.Change{{Path: "sum.py", Added: []string{"return sum(p) → return round(sum(p), 2)", "import math"}}}},
			{Output: failure.Output{Text: "ok"}, Changes: []edit.Change{{Path: "sum.py", Added: []string{"return sum(map(Decimal, p))"}, Removed: []string{"  return round(sum(p), 2)"}}}},
			call("python3 test_sum.py", "ok", 0),
		}, "0>3: import math|return sum(map(Decimal, p))"},
		{"a program that only made the edit", []Call{
			noTable,
			call("cat <<'EOF' > fix.py\np = 'app.py'\nold = \"\"\"def run():\n    start()\"\"\"\ns = open(p).read().replace(old, 'def run():\\n    tables()\\n    start()')\nopen(p, 'w').write(s)\nEOF\npython3 fix.py", "", 0),
			call("python3 - <<'EOF'\np = 'app.py'\ns = open(p).read().replace('retries = 1', \"retries = 2\")\nopen(p, 'w').write(s)\nEOF", "", 0),
			call("cat <<'EOF' > ask.py\nimport app\nassert app.tables\nEOF\npython3 ask.py", "", 0),
			call("python3 repro.py", "ok", 0),
		}, "0>4:     tables()|retries = 1 → retries = 2"},
		{"only lines that print", []Call{
			noTable, call("sed -i '7a print(\"here\")' app.py", "", 0), call("sed -i '7d' app.py", "", 0), call("python3 repro.py", "ok", 0),
		}, "0>3: "},
		{"a helper that was removed at the end", []Call{
			noTable, call("cat <<'EOF' > notes.txt\nsee the tables\nEOF", "", 0), call("echo 'tables = True' >> app.py", "", 0),
			call("python3 repro.py", "ok", 0), call("rm notes.txt nothing.txt", "rm: cannot remove 'nothing.txt': No such file or directory", 1),
		}, "0>3: tables = True"},
		{"a trial that was removed with what it needs", []Call{
			noTable, call("cat <<'EOF' > tables.py\nmake(all)\nEOF", "", 0), call("python3 repro.py", "ok", 0), call("rm repro.py tables.py", "", 0),
		}, "0>2: make(all)"},
		{"text moved into a file", []Call{
			noTable, call("echo 'tables = True' > part.txt && sed -i '3r part.txt' app.py && rm part.txt", "", 0), call("python3 repro.py", "ok", 0),
		}, "0>2: tables = True|sed -i '3r part.txt' app.py"},
		{"a file moved over another", []Call{
			noTable, call("echo 'tables = True' > app.py.new && mv app.py.new app.py", "", 0), call("python3 repro.py", "ok", 0), call("rm -f app.py.new", "", 0),
		}, "0>2: tables = True"},
		{"a look after an edit that failed", []Call{
			call("sed -i 's/tables = 1/tables = [/' app.py", "sed: -e expression #1, char 19: unterminated `s' command", 1), call("sed -n 3,9p app.py", "tables = 1", 0),
		}, ""},
		{"tests of another part", []Call{
			call("python3 run_tests.py upload files", "AssertionError: 0o600 != 0o644", 1), call("python3 run_tests.py storage.Modes", "ok", 0),
			call("./run_tests.py upload files", "AssertionError: 0o600 != 0o640", 1), call("./run_tests.py storage.upload_modes", "ok", 0),
		}, ""},
		{"one test of the part that failed", []Call{
			call("python3 run_tests.py upload files", "AssertionError: 0o600 != 0o644", 1), call("echo 'mode = 0o644' > app.cfg && python3 run_tests.py files.Modes", "ok", 0),
		}, "0>1: mode = 0o644"},
		{"an import that the agent's own edit broke", []Call{
			call("cat <<'EOF' > shop.py\nclass Cent:\n    pass\nEOF", "", 0), call("cat <<'EOF' > shop.py\nclass Euro:\n    pass\nEOF", "", 0),
			call("python3 repro.py", "ImportError: cannot import name 'Cent'", 1), call("sed -i 's/import Cent/import Euro/' repro.py && python3 repro.py", "ok", 0),
		}, ""},
		{"an edit of its own that it took back", []Call{
			call("sed -i 's/tables = True/tables = Truth/' app.py", "", 0), noTable, call("sed -i 's/tables = Truth/tables = True/' app.py && python3 repro.py", "ok", 0),
		}, ""},
		{"lines that it had removed before", []Call{
			{Changes: []edit.Change{{Path: "app.py", Removed: []string{"tables = True"}}}}, noTable,
			{Changes: []edit.Change{{Path: "app.py", Added: []string{"  tables = True"}}}}, call("python3 repro.py", "ok", 0),
		}, ""},
		{"a line changed to one thing and then to another", []Call{
			noTable, call("sed -i 's/tables = None/tables = False/' app.py", "", 0), call("git checkout app.py", "", 0),
			call("sed -i 's/tables = None/tables = True/' app.py && python3 repro.py", "ok", 0),
		}, "0>3: tables = None → tables = True"},
		{"lines that the shell copies", []Call{
			noTable, call("cat > app.new <<EOF\n$(head -n 12 app.py)\ntables = True\n$(tail -n +13 app.py)\nEOF\nmv app.new app.py", "", 0), call("python3 repro.py", "ok", 0),
		}, "0>2: tables = True"},
		{"a comment with a quote before the command", []Call{
			call("echo a > list.txt\n# I'll build it\nmake build", "error: no rule to make target ledger.o", 2), call("cat ledger.c", "", 0), call("make build DIR=src", "done", 0),
		}, "0>2: make build DIR=src"},
		{"a program in the command line, after flags", []Call{
			call(`python3 -bb -c "print(str(b'a'))"`, "BytesWarning: str() on a bytes instance", 1), call("python3 -bb -m pytest a_test.py", "1 passed", 0),
		}, ""},
		{"lines that sed continues", []Call{
			noTable, call("sed -i '7a tables = True\\\nrows = 2 + \\\\\\\n  3' app.py", "", 0), call("python3 repro.py", "ok", 0),
		}, `0>2: tables = True|rows = 2 + \|  3`},
		{"a file that was not written yet", []Call{
			call("python3 repro.py", "python3: can't open file 'repro.py': [Errno 2] No such file or directory", 2), write, call("python3 repro.py", "ok", 0),
		}, ""},
		{"what reads a line that is printed", []Call{
			call("echo c | pytest test_sum.py", "E   AssertionError: 3", 1), call("pytest test_cent.py", "ok", 0), call("echo done", "done", 0),
		}, ""},
		{"a command of the line that failed", []Call{
			call("mkdir -p out && cp dist/a.json out", "cp: dist/a.json: No such file or directory", 1), call("mkdir -p out && cp src/a.json out", "", 0),
		}, "0>1: cp src/a.json out"},
		{"other arguments, and the same failure again", []Call{
			call("npx tsc --noEmit", "a.ts(3,1): error TS2304: Cannot find name 'sum'.", 2), call("npx tsc --noEmit src/b.ts", "", 0),
			call("npm run check", "a.ts(3,1): error TS2304: Cannot find name 'sum'.", 2),
		}, ""},
		{"another program in the command line", []Call{
			call(`python3 -c "from ledger import parse; parse('cent')"`, "ValueError: no unit 'cent'", 1), call(`python3 -c "from ledger import units; print(units)"`, "[]", 0),
		}, ""},
		{"the same with another value", []Call{
			call(`python3 -c "from ledger import parse; parse('cent', strict=True)"`, "ValueError: no unit 'cent'", 1), call(`python3 -c "from ledger import parse; parse('cent', strict=False)"`, "1", 0),
		}, `0>1: python3 -c "from ledger import parse; parse('cent', strict=False)"`},
		{"a line put at the file's top", []Call{
			noTable, call("sed -i '1s/^/import tables\\n/' repro.py", "", 0), call("python3 repro.py", "ok", 0),
		}, "0>2: import tables"},
		{"a typo in what was just written", []Call{
			call("cat <<'EOF' > repro.py\nimport app\napp.setup(cent)\nEOF\npython3 repro.py", "NameError: name 'cent' is not defined", 1),
			call("sed -i 's/import app/import app; cent = 2/' repro.py && python3 repro.py", "ok", 0),
			call("sed -i '3a  x = 1' app.py", "", 0),
			call("python3 repro.py", "  File \"/work/app.py\", line 4\n    x = 1\nIndentationError: unexpected indent", 1),
			call("sed -i 's/^ x = 1$/x = 1/' app.py && python3 repro.py", "ok", 0),
		}, ""},
		{"a name that others left undefined", []Call{
			call("python3 old.py", "NameError: name 'unicode' is not defined", 1),
			call("sed -i 's/unicode(s)/str(s)/' old.py && python3 old.py", "ok", 0),
		}, "0>1: unicode(s) → str(s)"},
		{"a file that was printed before it was written whole", []Call{
			call("cat app.py", "import db\n\ndef setup():\n    db.open()", 0), noTable,
			call("cat <<'EOF' > app.py\nimport db\n\ndef setup():\n    db.open()\n    db.create_tables()\nEOF\npython3 repro.py", "ok", 0),
		}, "1>2:     db.create_tables()"},
		{"one that a file tool read and wrote", []Call{
			{Output: failure.Output{Text: "     1→import db\n     2→\n     3→db.open()"}, Changes: []edit.Change{}, Read: "app.py"}, noTable,
			{Changes: []edit.Change{{Path: "app.py", Added: []string{"import db", "db.open()", "db.create_tables()"}, Whole: []string{"import db", "db.open()", "db.create_tables()"}}}},
			call("python3 repro.py", "ok", 0),
		}, "1>3: db.create_tables()"},
		{"an attribute that its own class lacks", []Call{
			call("cat <<'EOF' > repro.py\nclass FakeShop:\n    pass\nEOF\npython3 repro.py", "AttributeError: 'FakeShop' object has no attribute 'carts'", 1),
			call("sed -i '2a     carts = []' repro.py && python3 repro.py", "ok", 0),
		}, ""},
		{"a name that its edit removed", []Call{
			{Changes: []edit.Change{{Path: "shop/carts.py", Removed: []string{"total = 0"}}}},
			call("python3 -m pytest", "  File \"/w/shop/carts.py\", line 3, in add\nNameError: name 'total' is not defined", 1),
			{Changes: []edit.Change{{Path: "shop/carts.py", Added: []string{"total = start()"}}}}, call("python3 -m pytest", "ok", 0),
		}, ""},
		{"a module that its edit cut off", []Call{
			call("head -n 3 shop/carts.py > c && cat c > shop/carts.py", "", 0),
			{Changes: []edit.Change{{Path: "shop/carts.py", Added: []string{"x = 1"}}}},
			call("python3 -m pytest", "ImportError: cannot import name 'Cart' from 'shop.carts' (/w/shop/carts.py)", 1),
			{Changes: []edit.Change{{Path: "shop/carts.py", Added: []string{"Cart = 3"}}}}, call("python3 -m pytest", "ok", 0),
		}, ""},
		{"a line of the project that it had just added", []Call{
			{Changes: []edit.Change{{Path: "shop/carts.py", Added: []string{"    if env:"}}}},
			call("python3 -m pytest", "E   TypeError: no env", 1),
			{Changes: []edit.Change{{Path: "shop/carts.py", Added: []string{"if env: → if env is not None:"}}}}, call("python3 -m pytest", "ok", 0),
		}, ""},
		{"changes for a later failure", []Call{
			noTable, {Changes: []edit.Change{{Path: "app.py", Added: []string{"tables = True"}}}},
			call("python3 repro.py", "KeyError: 'rows'", 1), {Changes: []edit.Change{{Path: "app.py", Added: []string{"rows = 3"}}}},
			call("python3 repro.py", "ok", 0),
		}, "0>4: tables = True"},
		{"a later failure that the first edit brought", []Call{
			noTable, {Changes: []edit.Change{{Path: "app.py", Added: []string{"tables = Truth"}}}},
			call("python3 repro.py", "KeyError: 'rows'", 1), {Changes: []edit.Change{{Path: "app.py", Added: []string{"tables = True"}, Removed: []string{"tables = Truth"}}}},
			call("python3 repro.py", "ok", 0),
		}, "0>4: tables = True"},
		{"never repaired", []Call{noTable, call("ls", "repro.py", 0)}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range Pairs(Run{ID: "r", Repo: "shop", Calls: tt.calls}) {
				got = append(got, string(rune('0'+p.Failed))+">"+string(rune('0'+p.Fixed))+": "+joined(newKnown(p).lines))
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

// TestVersionIn: what a command printed when asked for a version counts only if it names one.
func TestVersionIn(t *testing.T) {
	for said, want := range map[string]string{
		"Python 3.9.20\n": "Python 3.9.20", "v20.1": "v20.1 by tool --version", "4.16.0 from /opt/a": "4.16.0 by tool --version", "Testing the total with version 1.14": "", "git version 2": "git version 2",
		"3.1": "3.1 by tool --version", "<returncode>0</returncode>": "", "found 2 versions": "",
	} {
		if got := strings.Join(versionIn(call("tool --version", said, 0)), "|"); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// TestRanBetween: the one command between a failure and its success is what made the difference, unless more
// ran than looks at something.
func TestRanBetween(t *testing.T) {
	failed, works := call("sh run.sh", "Error: no such table: users", 1), call("sh run.sh", "ok", 0)
	migrate := call("sh migrate.sh --create-tables", "done", 0)
	for name, tt := range map[string]struct {
		between []Call
		want    string
	}{
		"one":             {[]Call{call("cat run.sh", "", 0), migrate, call(`grep -n "a\n" run.sh`, "", 0)}, "sh migrate.sh --create-tables"},
		"two":             {[]Call{migrate, call("make clean", "", 0)}, ""},
		"one that failed": {[]Call{migrate, call("make seed", "make: *** [seed] Error 1", 2)}, ""},
		"looks":           {[]Call{call("cat run.sh", "", 0)}, ""},
	} {
		got := ""
		for _, p := range Pairs(Run{Calls: slices.Concat([]Call{failed}, tt.between, []Call{works})}) {
			got += strings.Join(p.Environment, "; ")
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestTells: a test that now expects what it got, a check that was changed, and comments, tell nothing;
// neither does a run of other tests, unless a jump left the one that failed for it.
func TestTells(t *testing.T) {
	for line, want := range map[string]bool{
		"    assert total(cart) == 3 → assert total(cart) == 2": false,
		"# total is 2":          false,
		"total = sum(cart) - 1": true,
		"class Total(Sum):":     false,
		"except TotalError:":    false,
	} {
		p := Pair{Command: "pytest a.py", Works: "pytest a.py", Changes: []edit.Change{{Path: "a.py", Added: []string{line}}}}
		if p.Tells() != want {
			t.Errorf("%s: %v", line, !want)
		}
	}
	for _, left := range []bool{false, true} {
		refused := call("npm test stage store 3", "error: store redis is refused", 1)
		refused.Undone = left
		pairs := Pairs(Run{Calls: []Call{refused, call("npm test choose store lmdb", "store set to lmdb", 0)}})
		if len(pairs) != 1 || pairs[0].Tells() != left {
			t.Errorf("left %v: %+v", left, pairs)
		}
	}
	p := Pair{Command: "rm a.py b.py", Works: "rm b.py", Failure: failure.Failure{Line: "rm: cannot remove 'a.py': No such file or directory"}}
	if p.Tells() {
		t.Error("a file that was gone already")
	}
	for _, tt := range []struct {
		command, line, changed string
		want                   bool
	}{
		{"pytest tests/cart.py", "E   AssertionError: 3 != 2", "tests/cart.py", false},
		{"python3 try.py", "FAIL: the total is 3", "./try.py", false},
		{"pytest tests/cart.py", "E   AssertionError: 3 != 2", "shop/cart.py", true},
		{"pytest tests/cart.py", "E   TypeError: Cart() takes no arguments", "tests/cart.py", true},
	} {
		p := Pair{Command: tt.command, Works: tt.command, Failure: failure.Failure{Line: tt.line}, Changes: []edit.Change{{Path: tt.changed, Added: []string{"cart = Cart(2)"}}}}
		if p.Tells() != tt.want {
			t.Errorf("%s, %s: %v", tt.line, tt.changed, !tt.want)
		}
	}
	for works, want := range map[string]bool{"tests/run_tests.py cart.Sum": false, "tests/run_tests.py cart --parallel=1": true} {
		p := Pair{Command: "tests/run_tests.py cart", Works: works, Failure: failure.Failure{Line: "AssertionError: 3 != 2"}}
		if p.Tells() != want {
			t.Errorf("%s: %v", works, !want)
		}
	}
	listed := Pair{Command: "pytest --fixtures a.py", Works: "pytest --fixtures -v a.py", Failure: failure.Failure{Line: "no tests ran"}}
	brackets := Pair{Command: "pytest", Works: "pytest", Changes: []edit.Change{{Path: "a.py", Added: []string{edit.ChangedLine(")):", ")) and cent in units:")}}}}
	if listed.Tells() || brackets.Tells() {
		t.Error("a program that only lists, or a change of brackets")
	}
	asked := Pair{Command: `python3 -c "import cent; print(cent.__version__)"`, Works: `python3 -c "import euro; print(euro.__version__)"`}
	if asked.Tells() {
		t.Error("another version asked")
	}
	for works, want := range map[string]bool{"ls tests/cart": false, "ls -la": false, "ls tests/totals_test": true, "find . -name 'totals*'": true} {
		p := Pair{Command: "ls tests/totals", Works: works, Failure: failure.Failure{Line: "ls: cannot access 'tests/totals': No such file or directory"}}
		if p.Tells() != want {
			t.Errorf("%s: %v", works, !want)
		}
	}
}

func TestPairsKeepsFailedAttempts(t *testing.T) {
	pairs := Pairs(Run{Calls: []Call{
		call("make build", "error: no rule to make target ledger.o", 2),
		call("make build CC=gcc", "error: no rule to make target ledger.o", 2),
		call("make build DIR=src", "done", 0),
	}})
	if len(pairs) != 1 || len(pairs[0].Tried) != 1 || pairs[0].Tried[0].Command != "make build CC=gcc" {
		t.Errorf("got %+v", pairs)
	}
}

func joined(lines []line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.text)
	}
	return strings.Join(out, "|")
}

func TestEssence(t *testing.T) {
	for command, want := range map[string]string{
		"go test ./...":                              "go test ./...",
		"cd /w && go test ./... 2>&1 | tail -3":      "go test ./... 2>&1 | tail -3",
		"cd a; make build; echo $?":                  "make build; echo $?",
		"cd a\n# it's built\nmake build":             "make build",
		"cat <<'E' > a.py\nx()\nE\npython3 a.py":     "python3 a.py",
		"python3 - <<'E'\nimport x\nE":               "python3 - <<'E'\nimport x\nE",
		"cd a && python3 - <<'E'\nimport x\nE":       "cd a && python3 - <<'E'\nimport x\nE",
		"echo done":                                  "echo done",
		"SELECT name FROM singer; SELECT 1":          "SELECT name FROM singer; SELECT 1",
		"git add . && git commit -m 'cd x && go on'": "git add . && git commit -m 'cd x && go on'",
	} {
		if got := Essence(command); got != want {
			t.Errorf("%q: got %q, want %q", command, got, want)
		}
	}
}

func TestRewritten(t *testing.T) {
	for _, tt := range []struct{ old, now, want string }{
		{"a(\n  b,\n)", "a(\n  b,\n  c,\n)", "  c,"},
		{"f(1)\ng(2)\nh(3)", "f(1)\ng(4)\nh(3)", "g(2) → g(4)"},
		{"total = sum(p)", "p = clean(p)\ntotal = sum(p, 0)", "p = clean(p)|total = sum(p, 0)"},
		{"say(red, text)", "say(blue, text)\nlog(it)", "say(red, text) → say(blue, text)|log(it)"},
		{"keep\ngone", "keep", "gone → "},
		{"same", "same", ""},
	} {
		if got := strings.Join(edit.Rewritten(strings.Split(tt.old, "\n"), strings.Split(tt.now, "\n")), "|"); got != tt.want {
			t.Errorf("%q to %q: got %q, want %q", tt.old, tt.now, got, tt.want)
		}
	}
}
