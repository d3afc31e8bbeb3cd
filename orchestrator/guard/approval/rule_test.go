package approval

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/shell"
)

// rulesOf reads rules written as allow:…, ask:…, deny:….
func rulesOf(t *testing.T, texts ...string) []Rule {
	t.Helper()
	var out []Rule
	for _, text := range texts {
		verdict, rule, _ := strings.Cut(text, ":")
		v := Verdict(verdict)
		if verdict == "deny" {
			v = Refuse
		}
		r, err := ParseRule(rule, v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestCommandAllowed: what rules let run, and what they leave to be asked.
func TestCommandAllowed(t *testing.T) {
	rules := rulesOf(t, "allow:Bash(git diff *)", "allow:Bash(go test *)", "allow:Bash(ls)", "allow:Bash(grep *)",
		"allow:Bash(cat *)",
		"allow:Bash(> out/*)", "allow:Bash(./run.sh)", "allow:Bash(make lint)", "allow:Bash(sed -n *)",
		"allow:Bash(ssh *)", "allow:Bash(npx *)", "allow:Bash(setsid *)", "allow:Bash(python3 *)", "allow:Bash(deno *)", "allow:Bash(xargs *)")
	for _, row := range []struct {
		command string
		want    Verdict
	}{
		{"git diff", Allow}, {"git diff HEAD~1 -- a.go", Allow}, {"go test ./...", Allow}, {"ls", Allow}, {"ls -la", Ask}, {"make lint", Allow}, {"make lint all", Ask},
		{"git diff && go test ./... | grep FAIL; ls", Allow}, {"cd sub && go test ./...", Allow}, {"cd ../.. && go test", Ask}, {"cd /etc && cat passwd", Ask},
		{"go test ./... 2>&1 | grep -v ok", Allow}, {"go test > /dev/null 2>&1", Allow}, {"go test > out/log", Allow}, {"go test > log", Ask}, {"cat < a", Allow}, {"ls < a", Ask},
		{`grep "$PATTERN" a`, Allow}, {"cat $(ls)", Allow}, {"cat $(git status)", Ask}, {"timeout 60 go test", Allow}, {"timeout -k 5 60 go test", Ask},
		{"env CI=1 go test", Allow}, {"env PATH=. go test", Ask}, {"LC_ALL=C grep x y", Allow}, {"ls; echo done", Allow}, {"for f in *.go; do grep x $f; done", Allow},
		{"if ls; then cat a; else true; fi", Allow}, {"./run.sh", Allow}, {"cd sub && ./run.sh", Ask}, {"ssh h ls", Allow}, {"npx rm x", Allow}, {"setsid -f rm ls", Ask}, {"cat <<E\n$(ls)\nE\n", Allow}, {"sed -n 1,3p a", Allow}, {"sed -n -E s/a/b/ a", Allow}, {"sed -n -r p a", Allow}, {`sed -n 's/[a-z]\/b/c/gp' a`, Allow},
		{"ls | xargs cat", Allow}, {"ls | xargs timeout 5 cat", Allow}, {"ls | xargs timeout 5", Ask}, {"git diff a/../b", Allow},
		{"python3 -m", Allow}, {"python3 -m pytest", Allow}, {"python3 a.py", Allow}, {"python3 --version", Allow}, {"deno --test", Allow}, {"deno test", Allow},
		{"cd && ls", Ask}, {"cd a b && ls", Ask}, {`cd "$X" && ls`, Ask}, {`cd "" && ls`, Ask}, {"cd - && ls", Ask}, {"cd a && ls", Allow},
		{"ls | xargs", Allow}, {"ls | xargs -n 1", Allow}, {"ls | xargs -I", Allow}, {"ls | xargs grep -ix y", Allow}, {"grep -ix y a", Allow},
		{"ls | xargs -I {} cat {}", Allow}, {"ls | xargs -I% -n 1 cat %", Allow}, {"ls | xargs -i -n 1 cat {}", Allow},
		{"./timeout 5 go test", Ask}, {"timeout 5; go test", Ask}, {"taskset 1 ls", Ask}, {"timeout 5 ls", Allow}, {`cat < "$F"`, Ask},
		{"echo only", Ask}, {"# nothing", Ask},
	} {
		got := Decide(ModeAsk, Facts{Tool: "Bash", Command: row.command}, rules)
		if got.Verdict != row.want {
			t.Errorf("%q: %s by %s, want %s", row.command, got.Verdict, got.By, row.want)
		}
	}
}

// TestCommandAttacks: one row a way to slip a command past rules that allow
// others. None is allowed; each is asked about.
func TestCommandAttacks(t *testing.T) {
	rules := rulesOf(t, "allow:Bash(git *)", "allow:Bash(echo *)", "allow:Bash(cat *)", "allow:Bash(find *)",
		"allow:Bash(xargs *)", "allow:Bash(ls *)", "allow:Bash(env *)",
		"allow:Bash(sed *)", "allow:Bash(awk *)", "allow:Bash(tar *)", "allow:Bash(python3 *)", "allow:Bash(bash *)", "allow:Bash(sudo *)", "allow:Bash(eval *)", "allow:Bash(sort *)",
		"allow:Bash(nice *)", "allow:Bash(rsync *)", "allow:Bash(python3.11 *)", "allow:Bash(mksh *)", "allow:Bash(rm build/*)", "allow:Bash(> out/*)",
		"allow:Bash(go *)", "allow:Bash(printf *)", "allow:Bash(read *)", "allow:Bash(test *)", "allow:Bash(set *)", "allow:Bash(alias *)", "allow:Bash(cd *)", "allow:Bash(timeout *)")
	for _, row := range []struct{ way, command string }{
		{"separator", "git diff; rm -rf ~"}, {"and", "git diff && rm x"}, {"or", "git diff || rm x"}, {"pipe", "git diff | sh"}, {"background", "git diff & rm x"},
		{"new line", "git diff\nrm x"}, {"carriage return", "git diff\rrm x"}, {"comment that ends", "git diff # x\nrm x"}, {"continued line", "git diff \\\n; rm x"},
		{"substitution", "git diff $(rm x)"}, {"back quotes", "git diff `rm x`"}, {"in double quotes", `git diff "$(rm x)"`}, {"nested", `echo "$(echo "$(rm x)")"`},
		{"process substitution", "cat <(rm x)"}, {"process substitution out", "echo x > >(sh)"}, {"here-document", "cat <<E\n$(rm x)\nE\n"}, {"here-string", `cat <<< "$(rm x)"`},
		{"here-document to a shell", "bash <<E\nrm x\nE\n"}, {"subshell", "(rm x)"}, {"group", "{ rm x; }"}, {"in an if", "if rm x; then git diff; fi"}, {"in a loop", "while rm x; do git diff; done"},
		{"in a case", "case a in a) rm x;; esac"}, {"negated", "! rm x"}, {"timed", "time rm x"},
		{"quoted name", `"r"'m' x`}, {"escaped name", `\rm x`}, {"ANSI quotes", `$'\x72m' x`}, {"variable name", "r=rm; $r x"}, {"IFS", "rm${IFS}x"}, {"IFS in words", "git${IFS}diff"},
		{"braces", "{rm,x}"}, {"pattern as a name", "/bin/r? x"}, {"tilde name", "~/rm x"}, {"positional", `$@rm x`}, {"empty expansion", "r$()m x"},
		{"path", "/tmp/git diff"}, {"relative path", "./git diff"}, {"look-alike letters", "ｇit diff"}, {"zero width", "git\u200b diff"}, {"no-break space", "git\u00a0diff"}, {"other direction", "\u202egit diff"},
		{"PATH", "PATH=. git diff"}, {"PATH before", "PATH=.; git diff"}, {"exported", "export PATH=.; git diff"}, {"preload", "LD_PRELOAD=./x.so git diff"}, {"pager", "GIT_PAGER='sh -c id' git log"},
		{"external diff", "GIT_EXTERNAL_DIFF=./x git diff"}, {"env", "env PATH=. git diff"}, {"env -S", "env -S 'rm x'"}, {"loop variable", "for PATH in .; do git diff; done"}, {"read", "read PATH < a; git diff"},
		{"printf -v", "printf -v PATH .; git diff"}, {"assigning expansion", `echo "${PATH:=.}"; git diff`}, {"arithmetic", "((PATH=1)); git diff"}, {"let", "let PATH=1"},
		{"index", `echo $((a[$(rm x)]))`}, {"index in a text", `for x in 'a[$(rm x)]'; do echo $((x)); done`}, {"test -v", `test -v 'a[$(rm x)]'`}, {"double brackets", `[[ 'a[$(rm x)]' -eq 1 ]]`},
		{"prompt expansion", `echo "${x@P}"`}, {"indirect", `echo "${!x}"`}, {"function", "git() { rm x; }; git diff"}, {"other function", "function echo { rm x; }; echo a"}, {"alias", "alias git='rm x'; git diff"},
		{"aliases on", "shopt -s expand_aliases"}, {"hash", "hash -p ./evil git; git diff"}, {"enable", "enable -f ./x.so git"}, {"trap", "trap 'rm x' EXIT"}, {"source", ". ./x"}, {"set", "set -- rm x"},
		{"exec", "exec rm x"}, {"eval", "eval 'rm x'"}, {"eval of parts", "eval r m"}, {"eval of what is allowed", "eval git diff"}, {"bash -c", "bash -c 'rm x'"}, {"bash -lc", "bash -lc 'rm x'"}, {"bash of stdin", "echo rm x | bash"}, {"bash -s", "bash -s a"},
		{"sudo", "sudo git diff"}, {"command", "command rm x"}, {"builtin", "builtin eval x"}, {"nohup", "nohup rm x"}, {"timeout", "timeout 5 rm x"}, {"timeout's options", "timeout -k 5 5 rm x"}, {"coprocess", "coproc rm x"},
		{"find -exec", "find . -exec rm {} ;"}, {"find's second", `find . -exec echo {} \; -exec rm {} \;`}, {"find -execdir", "find . -execdir rm {} +"}, {"find -delete", "find . -delete"}, {"find -fprint", "find . -fprint x"},
		{"xargs", "echo x | xargs rm"}, {"xargs of git", "echo '-c core.pager=x log' | xargs git"}, {"xargs sh", "echo x | xargs -I{} sh -c {}"},
		{"git -c", "git -c core.pager='sh -c id' log"}, {"git -c joined", "git -ccore.pager=x log"}, {"git alias", "git -c alias.x='!rm x' x"}, {"git --exec-path", "git --exec-path=. diff"}, {"git -C", "git -C /etc diff"},
		{"git config", "git config core.pager 'sh -c id'"}, {"git grep -O", "git grep -O'sh -c id' x"}, {"git upload-pack", "git fetch --upload-pack='rm x' a"}, {"shortened option", "git fetch --upload-pa='rm x' a"},
		{"git rebase -x", "git rebase -x 'rm x' HEAD~1"}, {"git bisect", "git bisect run rm x"}, {"git submodule", "git submodule foreach 'rm x'"}, {"git --output", "git diff --output=/tmp/x"}, {"git ext-diff", "git diff --ext-diff"},
		{"a word git gets later", "git $X"}, {"a pattern git gets", "git diff *"},
		{"sed e", "sed '1e rm x' a"}, {"sed w", "sed 'w x' a"}, {"sed s///e", "sed 's/a/b/e' a"}, {"sed -i", "sed -i s/a/b/ a"}, {"sed -f", "sed -f x a"}, {"sed -s after", "sed -n p --in-place a"},
		{"sed w behind a delimiter", "sed 's/a/b/w /tmp/x' a"}, {"sed e before a comment", "sed 's/a/id/e#/' a"}, {"sed e before another delimiter", "sed 's|a|id|e #|' a"}, {"sed escaped delimiter", `sed 's/a\/b/id/e' a`},
		{"xargs timeout", "echo rm x | xargs timeout 5"}, {"xargs nice", "echo rm | xargs nice"}, {"xargs awk", `echo x | xargs -d '\n' awk`}, {"xargs sed", `echo 1e | xargs -d '\n' sed`}, {"xargs replaces", "echo x | xargs -I% awk % a"},
		{"xargs replaces the name", "echo rm | xargs -I ls ls x"}, {"xargs replaces, joined", "echo rm | xargs -ils ls x"}, {"xargs replaces, long", "echo rm | xargs --replace=ls ls x"}, {"xargs through another", "echo x | xargs timeout 5 git"},
		{"tar's old options", "tar xIf ./x a"}, {"rsync -e among others", "rsync -ae ./x a b"}, {"a version of python", "python3.11 -c 'import os'"}, {"python's timeit", "python3 -m timeit 'import os'"}, {"another shell", "mksh -c 'rm x'"},
		{"git instaweb", "git instaweb --httpd='sh -c id'"}, {"git send-email", "git send-email --sendmail-cmd=./x a"}, {"up and away", "rm build/../src"}, {"redirect up and away", "ls . > out/../../x"}, {"redirect elsewhere", "cd sub && ls . > out/x"},
		{"sed of nothing", "sed s a"}, {"sed cut off", "sed s/a/b a"}, {"sed w among delimiters", "sed 'w/a/b/' a"}, {"sed delimited by a letter", "sed sxaxbx a"}, {"sed gets a word later", "sed p $X"},
		{"sort's shortest option", "sort --o=/tmp/x a"}, {"a file named as a number", "echo x > 1"},
		{"awk system", `awk 'BEGIN{system("rm x")}'`}, {"awk pipe", `awk '{print | "sh"}' a`}, {"awk file", `awk '{print > "x"}' a`}, {"awk -f", "awk -f x a"},
		{"tar action", "tar -xf a --checkpoint-action=exec='rm x'"}, {"tar command", "tar xf a --to-command=sh"}, {"sort program", "sort --compress-program=./x a"}, {"sort -o", "sort -o x a"},
		{"python -c", "python3 -c 'import os'"}, {"python of stdin", "cat a | python3"}, {"python -", "python3 - < a"}, {"go -exec", "go test -exec ./x ./..."}, {"go -toolexec", "go build -toolexec=./x"}, {"go generate", "go generate ./..."},
		{"redirect", "echo x > ~/.bashrc"}, {"append", "echo x >> a"}, {"both", "echo x &> a"}, {"clobber", "echo x >| a"}, {"to a file by number", "echo x >& a"}, {"read and write", "echo x <> a"}, {"numbered", "echo x 3> a"},
		{"only a redirect", "> a"}, {"dynamic target", `echo x > "$F"`}, {"the network", "echo x > /dev/tcp/h/80"}, {"from the network", "cat < /dev/tcp/h/80"},
		{"syntax that a shell runs half", "rm x\nif"}, {"open quote", "echo 'x"}, {"too many", strings.Repeat("echo;", 3000)}, {"too deep", strings.Repeat("timeout 1 ", 12) + "echo"},
		{"select", "select x in a; do git diff; done"}, {"array", "a=(1 $(rm x)); git diff"}, {"extended test", "[[ -f x ]]"}, {"declared", "declare -x PATH=."},
	} {
		d := Decide(ModeAsk, Facts{Tool: "Bash", Command: row.command}, rules)
		if d.Verdict != Ask {
			t.Errorf("%s: %q is decided %s by %s", row.way, row.command, d.Verdict, d.By)
		}
	}
}

// TestCommandRefused: a rule that refuses finds its command at any place;
// where it cannot be seen whether it is there, somebody is asked, also in mode
// auto.
func TestCommandRefused(t *testing.T) {
	rules := rulesOf(t, "deny:Bash(rm *)", "deny:Bash(git push *)", "ask:Bash(curl *)",
		"deny:Bash(> /etc/*)", "allow:Bash")
	for _, row := range []struct {
		command string
		want    Verdict
	}{
		{"rm x", Refuse}, {"rm", Refuse}, {"/bin/rm x", Refuse}, {`\rm x`, Refuse}, {`"r"m x`, Refuse}, {`$'\x72m' x`, Refuse}, {"ls; rm x", Refuse}, {"echo $(rm x)", Refuse}, {"cat <(rm x)", Refuse},
		{"sudo rm x", Refuse}, {"bash -c 'rm x'", Refuse}, {"find . -exec rm {} ;", Refuse}, {"ls | xargs rm", Refuse}, {"timeout 5 rm x", Refuse}, {"env A=1 rm x", Refuse}, {"f() { rm x; }; f", Refuse},
		{"timeout -vk 5 5 rm x", Refuse}, {"timeout --sig KILL 5 rm x", Refuse}, {"ls | xargs -0n 1 rm", Refuse}, {"ls | xargs -0I {} rm {}", Refuse}, {"ls | xargs --replace rm {}", Refuse}, {"env -iu X rm x", Refuse},
		{"taskset 1 rm x", Refuse}, {"chrt 1 rm x", Refuse}, {"sg root -c 'rm x'", Refuse}, {"mksh -c 'rm x'", Refuse}, {"python3.11 -c x", Ask}, {"echo x > /tmp/../etc/passwd", Refuse}, {"echo x > //etc/passwd", Refuse},
		{"setsid -f rm x", Refuse}, {"env - rm x", Refuse}, {"env -v - A=1 rm x", Refuse}, {"/usr/bin/time -f %e rm x", Refuse}, {"exec -a y rm x", Refuse},
		{"nohup nice rm x &", Refuse}, {"eval 'rm x'", Refuse}, {"rm $X", Refuse}, {"if\nrm x", Ask},
		{"git push", Refuse}, {"git push origin main", Refuse}, {"git -C sub push", Refuse}, {"git -C sub", Ask}, {"git --version", Allow}, {"git --no-pager -c a=b push -f", Refuse}, {"git commit -m push", Allow}, {"git log", Allow},
		{"git $X", Ask}, {"$X y", Ask}, {"r$X y", Ask}, {"eval \"$X\"", Ask}, {"cat x | bash", Ask}, {"python3 -c 'x'", Ask}, {"curl h", Ask}, {"echo x > /etc/passwd", Refuse}, {`echo x > "$F"`, Ask},
		{"setarch -R rm x", Ask}, {"npx rm x", Ask}, {"ssh -p 22 h rm x", Ask}, {"ssh h 'cd a && rm x'", Ask}, {"docker run -it i /bin/rm x", Ask}, {"tmux new -d 'rm x'", Ask},
		{"sqlite3 a '.shell rm x'", Ask}, {"socat EXEC:'rm x' -", Ask}, {"split --filter='rm x' a", Ask}, {"/lib64/ld-linux-x86-64.so.2 /bin/rm x", Ask}, {"ksh93 -c x", Ask}, {"deno eval x", Ask},
		{"npm exec -- git push", Ask}, {"npx eslint a", Allow}, {"docker ps", Allow}, {"ssh h ls -l rm.txt", Allow},
		{"ls", Allow}, {"echo rm x", Allow}, {"echo 'rm x' # rm y", Allow}, {"go test ./... > log", Allow},
	} {
		d := Decide(ModeAuto, Facts{Tool: "Bash", Command: row.command}, rules)
		if d.Verdict != row.want {
			t.Errorf("%q: %s by %s, want %s", row.command, d.Verdict, d.By, row.want)
		}
	}
	if d := Decide(ModeAuto, Facts{Tool: "Bash", Command: "bash -c x"}, nil); d.Verdict != Allow ||
		d.By != "mode:auto" {
		t.Errorf("without rules, auto: %+v", d)
	}
	if d := Decide(ModeDeny, Facts{Tool: "Bash", Command: "ls"}, rulesOf(t, "allow:Bash(ls)")); d.Verdict != Allow {
		t.Errorf("an allowed command in mode deny: %+v", d)
	}
	for command, want := range map[string]Verdict{"ls $X": Allow, "ls > a": Allow, `ls > "$F"`: Refuse, "rm $X": Refuse, "$X": Ask} {
		if d := Decide(ModeDeny, Facts{Tool: "Bash", Command: command}, rulesOf(t, "allow:Bash(ls *)", "allow:Bash(> *)", "deny:Bash(rm *)")); d.Verdict != want {
			t.Errorf("%q beside a rule that refuses: %+v, want %s", command, d, want)
		}
	}
	if d := Decide(ModeDeny, Facts{Tool: "Bash", Command: "bash -c x"}, rulesOf(t, "allow:Bash(bash *)")); d.Verdict != Refuse {
		t.Errorf("an opaque command in mode deny: %+v", d)
	}
}

// TestRefusedFiles: a rule about redirections finds the files that a command reads or writes by one, and nothing else.
func TestRefusedFiles(t *testing.T) {
	for _, row := range []struct {
		rule, command string
		want          Verdict
	}{
		{"deny:Bash(> /etc/*)", "echo x > /etc/passwd", Refuse}, {"deny:Bash(> /etc/*)", "echo x >> /etc/passwd", Refuse}, {"deny:Bash(> /etc/*)", "echo x &> /etc/passwd", Refuse},
		{"deny:Bash(> /etc/*)", "echo x >| /etc/passwd", Refuse}, {"deny:Bash(> /etc/*)", "cat <> /etc/passwd", Refuse}, {"deny:Bash(> /etc/*)", "echo x > /tmp/a/../../etc/b", Refuse},
		{"deny:Bash(> /etc/*)", "cat < /etc/passwd", Allow}, {"deny:Bash(> /etc/*)", "cat /etc/passwd", Allow}, {"deny:Bash(> /etc/*)", "echo x > etc/passwd", Allow},
		{"deny:Bash(> /etc/*)", `echo x > "$F"`, Ask}, {"deny:Bash(> /etc/*)", `cat < "$F"`, Allow}, {"deny:Bash(> /etc/*)", `cat 2>&1`, Allow},
		{"deny:Bash(> *)", "ls > log", Refuse}, {"deny:Bash(> *)", "ls 2>&1", Allow}, {"deny:Bash(> *)", "ls 2>&-", Allow}, {"deny:Bash(> *)", "ls >& log", Refuse}, {"deny:Bash(> *)", `ls >& "$F"`, Refuse},
		{"deny:Bash(> /etc/*)", "$X y", Ask}, {"deny:Bash(rm *)", "> a", Allow}, {"deny:Bash(rm -rf *)", "rm a $X", Ask},
		{"deny:Bash(git * main)", "git push main", Refuse}, {"deny:Bash(git * main)", "git push dev", Allow}, {"deny:Bash(git * main)", "git $X main", Ask},
		{"deny:Bash(git push)", "git push", Refuse}, {"deny:Bash(git push)", "git push origin", Allow}, {"deny:Bash(git push)", "git log", Allow},
		{"deny:Bash(< /etc/*)", "cat < /etc/passwd", Refuse}, {"deny:Bash(< /etc/*)", "cat <<< /etc/passwd", Allow}, {"deny:Bash(< /etc/*)", "cat <<X\n/etc/passwd\nX", Allow},
		{"deny:Bash(< /etc/*)", "echo x > /etc/passwd", Allow}, {"deny:Bash(< *)", "cat <&0", Allow}, {"deny:Bash(< *)", "cat", Allow},
	} {
		if d := Decide(ModeAuto, Facts{Tool: "Bash", Command: row.command}, rulesOf(t, row.rule)); d.Verdict != row.want {
			t.Errorf("%s: %q is decided %s by %s, want %s", row.rule, row.command, d.Verdict, d.By, row.want)
		}
	}
}

func TestParseRule(t *testing.T) {
	for text, want := range map[string]string{"Bash": "Bash", " Bash( git  diff * ) ": "Bash(git diff *)", "mcp__github__*": "mcp__github__*", "Bash(echo (a))": "Bash(echo (a))"} {
		if r, err := ParseRule(text, Allow); err != nil || r.String() != want {
			t.Errorf("ParseRule(%q) = %q, %v", text, r, err)
		}
	}
	for _, text := range []string{"Bash(>)", "Bash(>> a)", "Bash(>a)", "Bash(> a b)", "", "git diff *", "Bash()", "Bash() ", "Bash( )\n", "Bash(git", "Bash)", "[", "Ba sh", "WriteFile(secrets/*)", "Bahs(rm *)", "mcp__*(x)"} {
		if r, err := ParseRule(text, Allow); err == nil {
			t.Errorf("ParseRule(%q) = %q, want an error", text, r)
		}
	}
	if got := strings.Join(Texts(rulesOf(t, "allow:Bash", "deny:Glob", "allow:Bash(ls *)"), Allow), ", "); got != "Bash, Bash(ls *)" {
		t.Errorf("the rules that allow: %s", got)
	}
	kept := Tightening(rulesOf(t, "allow:Bash", "ask:Bash", "deny:Glob"))
	if len(kept) != 2 || slices.ContainsFunc(kept, func(r Rule) bool { return r.Verdict == Allow }) {
		t.Errorf("Tightening = %v", kept)
	}
}

// FuzzDecide: a line is allowed only where each of its commands is.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{"ls", "ls; rm x", "$(ls)", "ls > a", "A=1 ls", "ls | ls", "\"l\"s", "cd a; ls", "timeout 5 ls", "ls <<< $(ls)"} {
		f.Add(s)
	}
	rules := []Rule{{Tool: "Bash", Command: "ls", Verdict: Allow}}
	known := strings.Fields("ls true false : pwd echo exit break continue test [ cd " + wrappers)
	f.Fuzz(func(t *testing.T, line string) {
		if Decide(ModeDeny, Facts{Tool: "Bash", Command: line}, rules).Verdict != Allow {
			return
		}
		commands, err := shell.Parse(line)
		if err != nil {
			t.Errorf("%q is allowed: %v", line, err)
		}
		for _, s := range commands {
			if len(s.Words) > 0 && !slices.Contains(known, s.Words[0].Text) {
				t.Errorf("%q is allowed, and runs %s", line, s)
			}
		}
	})
}
