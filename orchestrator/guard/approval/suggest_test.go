package approval

import (
	"strings"
	"testing"
)

// TestSuggest: the patterns that are offered for a line, and the lines for which there
// are none.
func TestSuggest(t *testing.T) {
	for _, row := range []struct{ line, want string }{
		{"go test ./...", "go test *"},
		{"go test -run 'A|B' ./x 2>&1 | tail -5", "go test *, tail *"},
		{"cd sub && CI=1 go test ./... && go test -race .", "go test *"},
		{"timeout 60 npm run build -- --fast", "npm run build *"},
		{"python3 -m pytest -q tests", "python3 -m pytest *"},
		{"ls -la | grep x", "ls *, grep *"},
		{"git status && echo done", "git status *"},
		{"make", ""}, {"make lint", "make lint *"},
		// What destroys.
		{"git clean -fd", ""}, {"git reset --hard", ""}, {"git push", ""}, {"git stash drop", ""}, {"docker compose down", ""}, {"kubectl delete pod x", ""}, {"git log && git checkout .", ""},
		// Programs of which each argument matters, or that run what a file holds.
		{"rm -r build", ""}, {"mv a b", ""}, {"./run.sh x", ""}, {"sh run.sh", ""}, {"python3 x.py", ""}, {"curl h", ""}, {"go test ./... && rm x", ""},
		// What rules cannot see through.
		{"git -C /etc log", ""}, {"git -c core.pager=x log", ""}, {"go generate ./...", ""}, {"go test -exec ./x", ""}, {"ls > out", ""}, {"PATH=. go test", ""}, {"go $X", ""},
		{"git 'di*' x", ""}, {"poetry run python -c x", ""}, {"rg --pre ./x y", ""}, {"ls $(rm x)", ""}, {"sudo go test", ""}, {"find . -delete", ""}, {"ls | xargs rm", ""}, {"/tmp/go test", ""}, {"ls; cat a; wc a; head a", ""},
		{"ls; cat a; wc a", "ls *, cat *, wc *"}, {"$X y", ""}, {"python3", ""}, {"foo -m x", ""}, {"python3 x.py a", ""},
		{"echo only", ""}, {"", ""}, {"if ls", ""},
	} {
		var got []string
		for _, r := range Suggest(Facts{Tool: "Bash", Command: row.line}) {
			got = append(got, r.Command)
		}
		if text := strings.Join(got, ", "); text != row.want {
			t.Errorf("%q: %q, want %q", row.line, text, row.want)
		}
	}
	if got := Suggest(Facts{Tool: "WriteFile", Edits: true}); len(got) != 1 || got[0].String() != "WriteFile" {
		t.Errorf("WriteFile: %v, want the tool", got)
	}
	if got := Suggest(Facts{Tool: "Bash", Command: "ls", ReadOnly: true}); got != nil {
		t.Errorf("a call that only reads: %v, want none", got)
	}
	if got := Suggest(Facts{Tool: Network}); got != nil {
		t.Errorf("the network: %v, want none", got)
	}
}

// FuzzSuggest: what is suggested lets the line run, and none of the programs that it does
// not name.
func FuzzSuggest(f *testing.F) {
	for _, s := range []string{"go test ./...", "ls | grep x", "git log && rm x", "npm run a", "cd a; ls", "timeout 5 ls"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		rules := Suggest(Facts{Tool: "Bash", Command: line})
		if rules == nil {
			return
		}
		if d := Decide(ModeDeny, Facts{Tool: "Bash", Command: line}, rules); d.Verdict != Allow {
			t.Errorf("%q is suggested %v, which decides %s by %s", line, rules, d.Verdict, d.By)
		}
		for _, r := range rules {
			if again, err := ParseRule(r.String(), Allow); err != nil || again.Command != r.Command {
				t.Errorf("%q: the rule %s is read as %v, %v", line, r, again, err)
			}
		}
		for _, other := range []string{"rm x", line + "; rm x", "rm x; " + line} {
			if d := Decide(ModeDeny, Facts{Tool: "Bash", Command: other}, rules); d.Verdict == Allow &&
				!strings.Contains(line, "#") && !strings.Contains(line, "<<") {
				t.Errorf("%q is suggested %v, which allows %q", line, rules, other)
			}
		}
	})
}
