package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// readmeCommands returns the lines of a page's shell blocks, without comments.
func readmeCommands(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.SplitSeq(m[1], "\n") {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// Numbers of operations and tokens depend on how long commands take.
var (
	demoBlock = regexp.MustCompile("(?s)The model of the demo .*?\n```\n(.*?)```\n")
	digits    = regexp.MustCompile(`\d+`)
)

// readmeDemo returns the lines that README.md shows of the demo.
func readmeDemo(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := demoBlock.FindSubmatch(text)
	if m == nil {
		t.Fatal("README.md shows nothing of the demo")
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(m[1])), "\n"),
		func(l string) bool { return l == "…" })
}

// TestReadmeLanguages: both READMEs name the same commands, in the same order.
func TestReadmeLanguages(t *testing.T) {
	here, there := readmeCommands(t, "../../README.md"), readmeCommands(t, "../../docs/README.zh.md")
	if !slices.Equal(here, there) {
		t.Errorf("README.md has\n%q\nand docs/README.zh.md\n%q", here, there)
	}
}

// sayer is a server that answers each request for a reply with the same words.
func sayer(t *testing.T, words string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", words)
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// TestReadmeWalk is a newcomer's walk: every command of README.md is run, from the clone
// to the page, with the program that the README installs. A local server replaces
// the model; this repository for the address that it is cloned from.
func TestReadmeWalk(t *testing.T) {
	t.Parallel()
	heavy(t)
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	d := onScreen(t, 120, 40, "turns: []\n")
	project := filepath.Join(d.dir, "my", "project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(project, "date.go"), []byte("package date\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(d.dir, "bin")
	env := append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OPENAI_") }),
		"HOME="+d.dir, "ANAMNESIS_HOME="+filepath.Join(d.dir, "home"), "GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // HOME is another
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	dir := filepath.Join(d.dir, "src")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sh := func(line string) string {
		t.Helper()
		cmd := exec.Command("bash", "-euc", line)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	wants := func(line, text string) {
		t.Helper()
		if out := sh(line); !strings.Contains(out, text) {
			t.Errorf("%s: want %q in\n%s", line, text, out)
		}
	}
	walk := map[string]func(line string){
		"git clone REPOSITORY anamnesis && cd anamnesis": func(line string) {
			sh(strings.Replace(line, "REPOSITORY", repo, 1))
			dir = filepath.Join(dir, "anamnesis")
		},
		"go install ./cmd/anamnesis":               func(line string) { sh(line) },
		`export PATH="$PATH:$(go env GOPATH)/bin"`: func(line string) { sh(line) }, // GOBIN is in PATH already
		"go run ./cmd/anamnesis demo": func(line string) {
			out := digits.ReplaceAllString(sh(line), "N")
			for _, shown := range readmeDemo(t) {
				if !strings.Contains(out, digits.ReplaceAllString(shown, "N")) {
					t.Errorf("README.md shows %q, which the demo does not print:\n%s", shown, out)
				}
			}
		},
		"go test ./...": func(string) { sh("go list ./...") }, // this test is one of them: it is not run within itself
		"export OPENAI_API_KEY=…": func(string) {
			env = append(env, "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+sayer(t, "Leap years are right now."))
		},
		"cd my/project": func(string) { dir = project },
		"anamnesis --model gpt-5 --eas 4000": func(line string) {
			d.write("anamnesis", "#!/bin/sh\nexec "+filepath.Join(bin, "anamnesis")+" \"$@\"\n")
			d.types("clear; cd ../my/project; export " + strings.Join(env[len(env)-2:], " ") + "; " + line + "\n")
			d.sees("/help · @file")
			d.types("The date parser fails on leap years. Fix it and run the tests.\n")
			d.answered("Leap years are right now.", "gpt-5 · ask")
			d.press("C-c", "C-c")
			d.sees("'anamnesis -c' continues it")
			d.prompted()
		},
		"anamnesis import":              func(line string) { sh(line + " --yes") },
		"anamnesis install claude-code": func(line string) { wants(line+" --yes", ".claude") },
		"anamnesis kb export --agents-md": func(line string) {
			card := "---\ntype: knowledge_card\ntopic: leap years\nsource_task: by_hand\n---\n- **Issue**: February has 29 days\n- **Solution**: test the year\n"
			sh("printf '%s' " + "'" + card +
				"' | anamnesis kb add --project - && anamnesis kb approve --project $(anamnesis kb list --project --json | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')")
			wants(line+" --yes", "AGENTS.md")
		},
	}
	for _, line := range readmeCommands(t, "../../README.md") {
		do := walk[line]
		if do == nil {
			t.Fatalf("README.md has %q, and this test does not know how to run it", line)
		}
		do(line)
		delete(walk, line)
	}
	for line := range walk {
		t.Errorf("README.md does not have %q any more", line)
	}
	// What the README names in its text.
	wants("anamnesis timeline", "step 1")
	wants("anamnesis run --model gpt-5 --eas 4000 --approval deny 'Once more.'", "Leap years are right now.")
	wants("anamnesis resume 'And again.'", "Leap years are right now.")
	wants("anamnesis jump 0 --dry-run", "step 0")
	wants("anamnesis jump 0", "is at step 0")
	wants("anamnesis doctor", "whole")
}
