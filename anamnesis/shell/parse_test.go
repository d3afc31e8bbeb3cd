package shell_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/shell"
)

// shown is a command as the tables write it: its runner, its words each
// followed by $ where only running tells, its redirections.
func shown(s shell.Simple) string {
	var out []string
	if s.Via != "" {
		out = append(out, s.Via+":")
	}
	for _, a := range s.Assigns {
		out = append(out, a.Name+"="+a.Value.Text)
	}
	for _, w := range s.Words {
		text := w.Text
		if strings.ContainsAny(text, " \n") || text == "" {
			text = fmt.Sprintf("%q", text)
		}
		if w.Dynamic {
			text += "¿"
		}
		out = append(out, text)
	}
	for _, r := range s.Redirects {
		out = append(out, r.Op+strings.TrimSpace(r.File.Text))
	}
	return strings.Join(out, " ")
}

func TestParse(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{`npm install left-pad`, []string{"npm install left-pad"}},
		{`cd x; go get a && go test ./... || echo no | tee log &`, []string{"cd x", "go get a", "go test ./...", "echo no", "tee log"}},
		{"a\nb # c\n", []string{"a", "b"}},
		{`echo "$(pip install x)" '$(no)'`, []string{`echo "$(pip install x)"¿ $(no)`, "pip install x"}},
		{"echo `curl h.example`", []string{"echo \"`curl h.example`\"¿", "curl h.example"}},
		{`(cd a && { b; c; })`, []string{"cd a", "b", "c"}},
		{`for f in *; do rm "$f"; done`, []string{"rm $f¿"}},
		{`if a; then b; fi; f() { c; }; while d; do e; done`, []string{"a", "b", "c", "d", "e"}},
		{`bash -c 'npm i x && curl y'`, []string{`bash -c "npm i x && curl y"`, "bash: npm i x", "bash: curl y"}},
		{`bash -lc "npm i x"`, []string{`bash -lc "npm i x"`, "bash: npm i x"}},
		{`sh -e -c "$CMD"`, []string{"sh -e -c $CMD¿", "sh: $CMD¿"}},
		{`bash x.sh -c y`, []string{"bash x.sh -c y"}},
		{"bash <<'E'\nnpm i x\nE\n", []string{"bash <<npm i x", "bash: npm i x"}},
		{`sudo -u root -E A=1 apt-get install -y jq`, []string{"sudo -u root -E A=1 apt-get install -y jq", "sudo: A=1 apt-get install -y jq"}},
		{`env -i -u X PATH=/bin pip install x`, []string{"env -i -u X PATH=/bin pip install x", "env: PATH=/bin pip install x"}},
		{`sudo env bash -c 'sudo go get x'`, []string{`sudo env bash -c "sudo go get x"`, `sudo: env bash -c "sudo go get x"`,
			`env: bash -c "sudo go get x"`, "bash: sudo go get x", "sudo: go get x"}},
		{`timeout -s KILL 5 curl x`, []string{"timeout -s KILL 5 curl x", "timeout: curl x"}},
		{`find . -name y -exec pip install {} \;`, []string{"find . -name y -exec pip install {} ;", "find: pip install {}"}},
		{`echo x | xargs -n 1 npm i`, []string{"echo x", "xargs -n 1 npm i", "xargs: npm i"}},
		{`eval npm i "x y"`, []string{`eval npm i "x y"`, "eval: npm i x y"}},
		{`command -v npm; command npm i x`, []string{"command -v npm", "command npm i x", "command: npm i x"}},
		{`A=1 B="$C" make`, []string{"A=1 B=$C make"}},
		{`export A=1`, []string{"A=1 export"}},
		{`cat <a >b 2>&1`, []string{"cat <a >b >&1"}},
		{`ec\ho "a\"b" a\ b $'t\tb' ~ ~x "~" *.go {a,b}`, []string{`echo a"b "a b" t` + "\t" + `b ~¿ ~x¿ ~ *.go¿ {a,b}¿`}},
		{`/usr/bin/npm i x`, []string{"/usr/bin/npm i x"}},
		{`time npm i x`, []string{"npm i x"}},
		{``, nil},
		{`env -S 'npm i x' y`, []string{`env -S "npm i x" y`, "env: npm i x"}},
		{`env --split-string="npm $x"`, []string{`env "--split-string=npm $x"¿`, `env: "npm $x"¿`}},
		{`env - npm i x`, []string{"env - npm i x", "env: npm i x"}},
		{`a | xargs; command; sudo; eval; watch`, []string{"a", "xargs", "command", "sudo", "eval", "watch"}},
		{`sudo -E; sudo -u`, []string{"sudo -E", "sudo -u"}},
		{`sudo -- npm i x; timeout -- 5 npm i; sudo --`, []string{"sudo -- npm i x", "sudo: npm i x",
			"timeout -- 5 npm i", "timeout: npm i", "sudo --"}},
		{`sudo --user root npm i`, []string{"sudo --user root npm i", "sudo: npm i"}},
		{`sudo --us root --login npm i`, []string{"sudo --us root --login npm i", "sudo: npm i"}},
		{`flock /tmp/l -c 'npm i x'`, []string{`flock /tmp/l -c "npm i x"`, "flock: npm i x"}},
		{`flock -n /tmp/l npm i x`, []string{`flock -n /tmp/l npm i x`, "flock: npm i x"}},
		{`watch -n 1 npm i '&&' curl x`, []string{"watch -n 1 npm i && curl x", "watch: npm i", "watch: curl x"}},
		{`bash --rcfile a -c 'npm i'; bash --init-file a -c 'npm i'`, []string{
			`bash --rcfile a -c "npm i"`, "bash: npm i", `bash --init-file a -c "npm i"`, "bash: npm i"}},
		{`bash --norc -c 'npm i'`, []string{`bash --norc -c "npm i"`, "bash: npm i"}},
		{`bash -e x.sh; bash +e -c y`, []string{"bash -e x.sh", "bash +e -c y", "bash: y"}},
		{`bash -c +e a; bash -c -e b`, []string{"bash -c +e a", "bash: a", "bash -c -e b", "bash: b"}},
		{"bash -c <<'E'\nnpm i x\nE\n", []string{"bash -c <<npm i x"}},
		{`bash -o pipefail -c a; bash +O extglob -c b`, []string{"bash -o pipefail -c a", "bash: a",
			"bash +O extglob -c b", "bash: b"}},
		{`su root -c 'npm i'; su --command 'npm i'; su --command='npm i' root; su -lc 'npm i'`, []string{
			`su root -c "npm i"`, "su: npm i", `su --command "npm i"`, "su: npm i",
			`su "--command=npm i" root`, "su: npm i", `su -lc "npm i"`, "su: npm i"}},
		{`su abc -c a; su --basic b; su -c`, []string{"su abc -c a", "su: a", "su --basic b", "su -c"}},
		{`find -exec npm i {} \;`, []string{"find -exec npm i {} ;", "find: npm i {}"}},
		{`find . -exec \;; find . -exec a`, []string{"find . -exec ;", "find . -exec a", "find: a"}},
		{`eval npm "$x"`, []string{"eval npm $x¿", `eval: "npm $x"¿`}},
		{`echo "a\nb" "c\$d" a\`, []string{`echo a\nb c$d a\`}},
		{"echo a\\\nb", []string{"echo ab"}},
		{"cat <<E\na\\\nb\nE\n", []string{"cat <<ab"}},
	}
	for _, tt := range tests {
		got, err := shell.Parse(tt.line)
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
		}
		var texts []string
		for _, s := range got {
			texts = append(texts, shown(s))
		}
		if !slices.Equal(texts, tt.want) {
			t.Errorf("%q:\n%q, want\n%q", tt.line, texts, tt.want)
		}
	}
}

// TestParseFaults: what a shell would run before the fault is there all the
// same.
func TestParseFaults(t *testing.T) {
	nested := "true"
	for range shell.MaxDepth + 2 {
		nested = "sudo " + nested
	}
	tests := []struct {
		name, line string
		want       error
		before     int
	}{
		{"syntax", "npm i x\nif", shell.ErrSyntax, 1},
		{"open quote", "echo 'x", shell.ErrSyntax, 0},
		{"long", strings.Repeat("x", shell.MaxBytes+1), shell.ErrTooLarge, 0},
		{"many", strings.Repeat("a;", shell.MaxCommands+1), shell.ErrTooLarge, shell.MaxCommands},
		{"deep", nested, shell.ErrTooLarge, shell.MaxDepth + 1},
		{"as long as it may be", strings.Repeat("x", shell.MaxBytes), nil, 1},
		{"as deep as it may be", strings.Repeat("sudo ", shell.MaxDepth) + "true", nil, shell.MaxDepth + 1},
		{"a script too deep", strings.Repeat("sudo ", shell.MaxDepth) + "sh -c true", shell.ErrTooLarge,
			shell.MaxDepth + 1},
		{"deep scripts", strings.Repeat("eval ", shell.MaxDepth+2) + "true", shell.ErrTooLarge, shell.MaxDepth + 1},
	}
	for _, tt := range tests {
		got, err := shell.Parse(tt.line)
		if !errors.Is(err, tt.want) || len(got) != tt.before {
			t.Errorf("%s: %d commands, %v; want %d, %v", tt.name, len(got), err, tt.before, tt.want)
		}
	}
}

// TestRunnerAssigns: what may stand before a command that env runs is a variable's name and value.
func TestRunnerAssigns(t *testing.T) {
	for word, want := range map[string]bool{
		"A=x": true, "a_1=": true, "_=x": true, "A=b=c": true, "1A=x": false, "0A=x": false, "a-b=x": false,
		"=x": false, "A": false,
	} {
		got, err := shell.Parse("env " + word + " make")
		if err != nil || len(got) != 2 {
			t.Fatalf("%s: %+v, %v", word, got, err)
		}
		if is := got[1].Program() == "make" && len(got[1].Assigns) == 1; is != want {
			t.Errorf("%s: %+v", word, got[1])
		}
	}
}

func TestSimple(t *testing.T) {
	got, err := shell.Parse(`/usr/bin/curl -o x y 2>/dev/null >z; $A b; >w`)
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	if got[0].Program() != "curl" || got[1].Program() != "" || got[2].Program() != "" {
		t.Errorf("programs: %q %q %q", got[0].Program(), got[1].Program(), got[2].Program())
	}
	if got[0].String() != "/usr/bin/curl -o x y" || len(got[0].Args()) != 3 || len(got[2].Args()) != 0 {
		t.Errorf("%q, %v, %v", got[0].String(), got[0].Args(), got[2].Args())
	}
	if r := got[0].Redirects; len(r) != 2 || r[0].Writes() || !r[1].Writes() {
		t.Errorf("redirections: %+v", r)
	}
}

// FuzzParse: any text is read or refused, and what is read stays within the
// limits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`a "$(b 'c')" <<E` + "\nx\nE\n", `sudo -u`, `bash -c`, `find -exec`, "$'\\x",
		`env -S 'a b'`, `~`, `a=(1 2)`, `declare -a x=(1)`, "0&0\xaf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		shell.Parts(line)
		got, err := shell.Parse(line)
		if len(got) > shell.MaxCommands {
			t.Fatalf("%d commands", len(got))
		}
		if err != nil && !errors.Is(err, shell.ErrSyntax) && !errors.Is(err, shell.ErrTooLarge) {
			t.Fatalf("an error of no kind: %v", err)
		}
	})
}
