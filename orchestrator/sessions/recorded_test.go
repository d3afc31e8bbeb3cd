package sessions_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/sessions"
)

// TestRecorded reads the sessions that the real programs wrote. Each played one script: a failing
// test, a wrong edit, three calls of an MCP server, a rewrite, and a test and a failing edit at once.
func TestRecorded(t *testing.T) {
	dir := filepath.Join(
		cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "shared", "data")), "agents")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the recorded sessions: %v", err)
		}
		t.Skipf("SKIPPED: no recorded sessions (%v); set ANAMNESIS_BENCH_DATA to the folder that holds agents/", err)
	}
	const (
		script  = "Bash=1 ReadFile StrReplaceFile Bash=1 jump_to_step big ask WriteFile Bash=0 StrReplaceFile!"
		refused = "Bash! ReadFile StrReplaceFile Bash! jump_to_step! big! ask! WriteFile Bash! StrReplaceFile!"
		shell   = "Bash=1 Bash=0 StrReplaceFile=0 Bash=1 jump_to_step big ask Bash=0 Bash=0 StrReplaceFile!"
		cut     = "Bash=1 Bash=0 StrReplaceFile=0 Bash=1 jump_to_step big!"
		none    = "left out"
	)
	for pattern, want := range map[string][]string{ // in the order of their names
		"claude/projects/*/*.jsonl.gz":             {script, refused},
		"codex/sessions/*/*/*/*.gz":                {shell, cut, none},
		"gemini/tmp/*/chats/*.gz":                  {script, none, script},
		"kimi/sessions/*/*/agents/*/wire.jsonl.gz": {script, none, script},
		"opencode/export.json.gz":                  {script},
	} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) != len(want) {
			t.Errorf("%s: %q, %v; want %d files", pattern, files, err, len(want))
			continue
		}
		for i, file := range files {
			s, err := sessions.Read(file)
			got := none
			if err == nil {
				got = calls(s)
			}
			if err != nil && !errors.Is(err, sessions.ErrLeftOut) || got != want[i] {
				t.Errorf("%s: %q, %v; want %q", file, got, err, want[i])
			}
		}
	}
}

// calls lists the calls of a session with their exit codes; ! marks another failure.
func calls(s *sessions.Session) string {
	var out []string
	for _, st := range s.Steps {
		for _, c := range st.Calls {
			name := c.Tool
			// each agent names it its own way
			for _, server := range []string{"mcp__anamnesis__", "mcp_anamnesis_", "anamnesis_"} {
				name = strings.TrimPrefix(name, server)
			}
			switch {
			case !c.Done:
				name += "?"
			case c.Exit != nil && (c.Tool == "Bash" || !c.Failed):
				name += fmt.Sprint("=", *c.Exit)
			case c.Failed:
				name += "!"
			}
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}
