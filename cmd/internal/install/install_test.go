package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/sessions"
)

func places(t *testing.T) *Places {
	home := t.TempDir()
	return &Places{Home: home, State: filepath.Join(home, "it's", "state"), Program: "/no/such/anamnesis", Getenv: func(string) string { return "" }}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		return "absent"
	}
	return string(data)
}

func (p *Places) do(t *testing.T, agent sessions.Agent) {
	t.Helper()
	files, err := p.Plan(agent)
	if err == nil {
		err = p.Install(agent, files)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *Places) undo(t *testing.T, agent sessions.Agent) {
	t.Helper()
	files, err := p.PlanRemoval(agent)
	if err == nil {
		err = p.Uninstall(agent, files)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const settings = `{
  // mine
  "model": "m",
  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine.sh"}]}]}
}
`

// TestBackAgain: install and uninstall leave every file as it was; where something
// else changed a file meanwhile, exactly our entries go.
func TestBackAgain(t *testing.T) {
	for _, agent := range Agents() {
		for _, before := range []string{"absent", settings} {
			p := places(t)
			path := filepath.Join(p.Home, ".claude", "settings.json")
			other := filepath.Join(p.Home, ".claude.json")
			if agent == sessions.Codex {
				path, other = filepath.Join(p.Home, ".codex", "hooks.json"), filepath.Join(p.Home, ".codex", "config.toml")
			}
			if before != "absent" {
				put(t, path, before)
			}
			p.do(t, agent)
			if text := get(t, path); !strings.Contains(text, "hook.sh") || before != "absent" && (!strings.Contains(text, "// mine") || !strings.Contains(text, "mine.sh")) {
				t.Errorf("%s installed: %s", agent, text)
			}
			if text := get(t, other); !strings.Contains(text, "serve") {
				t.Errorf("%s has no server: %s", agent, text)
			}
			if again, err := p.Plan(agent); err != nil || len(again) != 0 {
				t.Errorf("%s is planned again: %+v, %v", agent, again, err)
			}
			p.undo(t, agent)
			if get(t, path) != before || get(t, other) != "absent" || get(t, p.wrapper()) != "absent" {
				t.Errorf("%s after uninstall: %s / %s", agent, get(t, path), get(t, other))
			}
			p.do(t, agent)
			text := get(t, path)
			put(t, path, strings.Replace(text, "{", "{\n  \"later\": 1,", 1))
			put(t, other, get(t, other)+"\n")
			p.undo(t, agent)
			if text = get(t, path); strings.Contains(text, "hook.sh") || !strings.Contains(text, `"later": 1`) || before != "absent" && !strings.Contains(text, "mine.sh") {
				t.Errorf("%s after uninstall with changes: %s", agent, text)
			}
			if text = get(t, other); strings.Contains(text, "serve") {
				t.Errorf("%s keeps the server: %s", agent, text)
			}
		}
	}
}

// TestBadConfig: a file that cannot be read is left as it is, and so are the others.
func TestBadConfig(t *testing.T) {
	p := places(t)
	path := filepath.Join(p.Home, ".claude", "settings.json")
	put(t, path, `{"hooks": [`)
	if _, err := p.Plan(sessions.Claude); err == nil || !strings.Contains(err.Error(), "settings.json") {
		t.Errorf("%v", err)
	}
	if get(t, path) != `{"hooks": [` || get(t, p.wrapper()) != "absent" {
		t.Error("something was written")
	}
}

// TestWrapper: whatever becomes of the program, the wrapper ends with 0, says nothing
// on standard error, and on standard output what the program answered.
func TestWrapper(t *testing.T) {
	p := places(t)
	p.Program = filepath.Join(t.TempDir(), "program")
	p.do(t, sessions.Claude)
	for name, tt := range map[string]struct{ script, want string }{
		"deleted":            {"", ""},
		"a reply":            {"#!/bin/sh\ncat\n", "in"},
		"works on":           {"#!/bin/sh\necho -n r; exec >&-; sleep 600 &\n", "r"},
		"panics":             {"#!/bin/sh\necho goroutine >&2; exit 2\n", ""},
		"is killed":          {"#!/bin/sh\nkill -9 $$\n", ""},
		"knows no verb":      {"#!/bin/sh\necho unknown command >&2; exit 1\n", ""},
		"cannot be executed": {"\x00\x01", ""},
	} {
		os.Remove(p.Program)
		if tt.script != "" {
			if err := os.WriteFile(p.Program, []byte(tt.script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-c", p.Command(sessions.Claude))
		cmd.Stdin = strings.NewReader("in")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || string(out) != tt.want || stderr.String() != "" {
			t.Errorf("%s: %q, %v, %q", name, out, err, stderr.String())
		}
	}
}
