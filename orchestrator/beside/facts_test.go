package beside_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

// TestFactsOfOthers: sessions of five agents in one directory, one after the other, each in the form of its hooks. From
// the third on each is told, with its first prompt, what runs the tests and what is not installed, and nothing else.
func TestFactsOfOthers(t *testing.T) {
	first := newAgent(t)
	rollout := filepath.Join(t.TempDir(), "rollout.jsonl")
	if err := os.WriteFile(rollout, []byte(`{"payload":{"item":{"id":"c1","exit_code":127}}}`+"\n"+`{"payload":{"item":{"id":"c2","exit_code":0}}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(first.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	first.write("bin/test", "#!/bin/sh\necho Ran 2 tests in 0.1s\n")
	claude := [2]string{
		`"hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_use_id":"c1","tool_input":{"command":"busted spec"},"error":"Exit code 127\nbash: busted: command not found"`,
		`"hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"c2","tool_input":{"command":"./bin/test core"},"tool_response":{"stdout":"Ran 2 tests in 0.1s"}`,
	}
	prompt := `"hook_event_name":"UserPromptSubmit","prompt":"Make it pass."`
	for i, tt := range []struct {
		agent   sessions.Agent
		prompt  string
		results [2]string
		stop    string
	}{
		{sessions.Claude, prompt, claude, "Stop"},
		{sessions.Codex, prompt, [2]string{
			fmt.Sprintf(`"hook_event_name":"PostToolUse","transcript_path":%q,"tool_name":"Bash","tool_use_id":"c1","tool_input":{"command":"busted spec"},"tool_response":"bash: busted: command not found"`, rollout),
			fmt.Sprintf(`"hook_event_name":"PostToolUse","transcript_path":%q,"tool_name":"Bash","tool_use_id":"c2","tool_input":{"command":"./bin/test core"},"tool_response":"Ran 2 tests in 0.1s"`, rollout),
		}, "Stop"},
		{sessions.OpenCode, prompt, claude, "Stop"},
		{sessions.Gemini, `"hook_event_name":"BeforeAgent","prompt":"Make it pass."`, [2]string{
			`"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:06.1Z","tool_name":"run_shell_command","tool_input":{"command":"busted spec"},"tool_response":{"llmContent":"Output: bash: busted: command not found\nExit Code: 127\n"}`,
			`"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:07.1Z","tool_name":"run_shell_command","tool_input":{"command":"./bin/test core"},"tool_response":{"llmContent":"Output: Ran 2 tests in 0.1s\n"}`,
		}, "AfterAgent"},
		{sessions.Kimi, `"hook_event_name":"UserPromptSubmit","prompt":[{"type":"text","text":"Make it pass."}]`, [2]string{
			`"hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_call_id":"c1","tool_input":{"command":"busted spec"},"error":{"code":"internal","message":"bash: busted: command not found\nCommand failed with exit code: 127."}`,
			`"hook_event_name":"PostToolUse","tool_name":"Bash","tool_call_id":"c2","tool_input":{"command":"./bin/test core"},"tool_output":"Ran 2 tests in 0.1s\n"`,
		}, "Stop"},
	} {
		a := *first
		a.task = beside.TaskOf(tt.agent, "s-1")
		s := &speaker{&a, tt.agent}
		told := s.event(`{"hook_event_name":"SessionStart"}`) + s.event("{"+tt.prompt+"}")
		works, never := fmt.Sprintf("Tests ran with: `./bin/test LABEL` (%d of %d).", i,
			i), fmt.Sprintf("Not installed: `busted` (%d of %d).", i, i)
		switch lines := strings.Count(told, "(n of the tasks that tried)"); {
		case i < 2 && strings.Contains(told, "./bin/test"):
			t.Errorf("%s is told of one task: %s", tt.agent, told)
		case i >= 2 && (lines != 1 || !strings.Contains(told, works) || !strings.Contains(told, never)):
			t.Errorf("%s is told %q, want %q and %q", tt.agent, told, works, never)
		}
		for _, r := range tt.results {
			s.event("{" + r + "}")
		}
		s.event(`{"hook_event_name":"` + tt.stop + `","last_assistant_message":"Done."}`)
		s.event(`{"hook_event_name":"SessionEnd"}`)
	}
}
