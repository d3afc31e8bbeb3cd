package beside_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

// speaker plays the hooks of an agent in its own form.
type speaker struct {
	*agent
	name sessions.Agent
}

func newSpeaker(t *testing.T, name sessions.Agent) *speaker {
	s := &speaker{newAgent(t), name}
	s.task = beside.TaskOf(name, "s-1")
	return s
}

// event tells of an event, and returns the reply as it is.
func (s *speaker) event(text string) string {
	s.Helper()
	var e map[string]any
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	e["session_id"], e["cwd"] = "s-1", s.dir
	data, err := json.Marshal(e)
	if err != nil {
		s.Fatal(err)
	}
	reply := ""
	if err := beside.Hook(s.Context(), s.svc, s.name, strings.NewReader(string(data)), "", nil, func(text []byte) error { reply += string(text); return nil }); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	return reply
}

// results lists the calls that returned: the tool, the exit code where it is known, and
// the text.
func (s *speaker) results() (list []op.ToolReturned, words []string) {
	s.Helper()
	err := s.svc.Ops(s.task, 0, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.ToolReturned:
			list = append(list, *b)
		case *op.UserSaid:
			words = append(words, b.Text)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return list, words
}

func (s *speaker) want(i int, list []op.ToolReturned, tool, text string, exit int) {
	s.Helper()
	if i >= len(list) {
		s.Fatalf("%d results, want more", len(list))
	}
	got := -1
	if list[i].Exit != nil {
		got = *list[i].Exit
	}
	if r := list[i]; r.Name != tool || strings.TrimSpace(r.Text) != text || got != exit || r.Unknown {
		s.Errorf("result %d is %s %q exit %d unknown %v, want %s %q exit %d", i, r.Name, r.Text, got, r.Unknown, tool, text, exit)
	}
}

// TestGemini: its hooks have names of their own and no ids; equal calls that run at once
// are told apart by their order, and its replies carry its own names.
func TestGemini(t *testing.T) {
	s := newSpeaker(t, sessions.Gemini)
	s.event(`{"hook_event_name":"SessionStart"}`)
	s.event(`{"hook_event_name":"BeforeAgent","prompt":"<hook_context>a card</hook_context>\n\nMake it pass."}`)
	call := `"tool_name":"run_shell_command","tool_input":{"command":"sh check.sh"}`
	s.event(`{"hook_event_name":"BeforeTool","timestamp":"2026-01-02T03:04:05.1Z",` + call + `}`)
	s.event(`{"hook_event_name":"BeforeTool","timestamp":"2026-01-02T03:04:05.2Z",` + call + `}`)
	s.event(`{"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:06.1Z",` + call + `,"tool_response":{"llmContent":"<untrusted_context>\nOutput: no\nExit Code: 1\nProcess Group PGID: 7\n</untrusted_context>","returnDisplay":"no"}}`)
	s.event(`{"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:06.2Z",` + call + `,"tool_response":{"llmContent":"Output: ok\nProcess Group PGID: 8\n","returnDisplay":"ok"}}`)
	s.event(`{"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:07Z","tool_name":"replace","tool_input":{"file_path":"a","old_string":"x","new_string":"y"},"tool_response":{"llmContent":"File not found: a","error":{"message":"File not found: a"}}}`)
	s.write("mine", "the user's")
	s.event(`{"hook_event_name":"BeforeTool","timestamp":"2026-01-02T03:04:08Z","tool_name":"read_file","tool_input":{"file_path":"a"}}`)
	s.event(`{"hook_event_name":"AfterAgent","prompt":"Make it pass.","prompt_response":"Done."}`)
	list, words := s.results()
	s.want(0, list, "Bash", "no", 1)
	s.want(1, list, "Bash", "ok", 0)
	if !list[2].IsError || list[2].Name != "StrReplaceFile" || list[0].Call == list[1].Call {
		t.Errorf("%+v", list)
	}
	if words[len(words)-1] != "Make it pass." {
		t.Errorf("the user said %q", words)
	}
	st, err := s.svc.State(s.task)
	if err != nil || st.Steps.CountEnded() != 4 || len(st.Steps.At(1).Calls) != 2 {
		t.Errorf("%d steps, %v", st.Steps.CountEnded(), err)
	}
	if _, err := beside.Jump(t.Context(), s.svc, s.task, op.JumpRequested{To: 1, Reason: "it was right"}); err != nil {
		t.Fatal(err)
	}
	if reply := s.event(`{"hook_event_name":"BeforeAgent","prompt":"Go on."}`); !strings.Contains(reply, `"hookEventName":"BeforeAgent"`) || !strings.Contains(reply, "it was right") {
		t.Errorf("reply %s", reply)
	}
}

// TestDenied: Claude Code reports a denied call only in its batch, as it does one with wrong
// arguments. Only the first was refused.
func TestDenied(t *testing.T) {
	s := newSpeaker(t, sessions.Claude)
	s.event(`{"hook_event_name":"UserPromptSubmit","prompt":"Clean up."}`)
	bash := func(id string) string {
		return `"tool_name":"Bash","tool_use_id":"` + id + `","tool_input":{"command":"rm -r a; rm b"}`
	}
	for i, told := range []string{
		"This Bash command contains multiple operations. The following parts require approval: rm -r a, rm b",
		"This command requires approval",
		"The user doesn't want to proceed with this tool use.",
		"<tool_use_error>InputValidationError: Bash failed</tool_use_error>",
	} {
		call := bash(fmt.Sprint("t", i))
		s.event(`{"hook_event_name":"PreToolUse",` + call + `}`)
		s.event(fmt.Sprintf(`{"hook_event_name":"PostToolBatch","tool_calls":[{%s,"tool_response":%q}]}`, call, told))
	}
	list, _ := s.results()
	for i, r := range list {
		if r.Refused != (i < 3) || !r.IsError {
			t.Errorf("refused %v, error %v: %s", r.Refused, r.IsError, r.Text)
		}
	}
	if len(list) != 4 {
		t.Errorf("%d results", len(list))
	}
}

// TestCodexPatch: Codex runs no hook after a patch. Its result is in the rollout, and the step says
// which file the patch wrote.
func TestCodexPatch(t *testing.T) {
	s := newSpeaker(t, sessions.Codex)
	s.write("a", "old\n")
	rollout := filepath.Join(t.TempDir(), "rollout.jsonl")
	at := fmt.Sprintf(`"transcript_path":%q,`, rollout)
	s.event(`{` + at + `"hook_event_name":"UserPromptSubmit","prompt":"Change it."}`)
	s.event(`{` + at + `"hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_use_id":"c1","tool_input":{"input":"*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n*** End Patch"}}`)
	s.write("a", "new\n")
	if err := os.WriteFile(rollout, []byte(`{"payload":{"type":"custom_tool_call_output","call_id":"c1","output":"Exit code: 0\nOutput:\nSuccess."}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.event(`{` + at + `"hook_event_name":"Stop","last_assistant_message":"Done."}`)
	list, _ := s.results()
	s.want(0, list, "StrReplaceFile", "Success.", 0)
	if !slices.Equal(list[0].Writes, []string{"a"}) {
		t.Errorf("the patch wrote %q", list[0].Writes)
	}
}

// TestCompaction: after a compaction what followed from the last jump is told again,
// and nothing where there was none. A checkpoint's note is no answer that the user has.
func TestCompaction(t *testing.T) {
	s := newSpeaker(t, sessions.Claude)
	compact := `{"hook_event_name":"SessionStart","source":"compact"}`
	s.event(`{"hook_event_name":"UserPromptSubmit","prompt":"Make it pass."}`)
	s.event(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make"},"tool_use_id":"c1"}`)
	s.write("a", "wrong")
	s.event(`{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"make"},"tool_use_id":"c1","tool_response":{"stdout":""}}`)
	if step, err := beside.Checkpoint(t.Context(), s.svc, s.task, "a is good"); err != nil || step != 2 {
		t.Fatalf("checkpoint %d, %v", step, err)
	}
	s.event(`{"hook_event_name":"Stop","last_assistant_message":"Done."}`)
	if reply := s.event(compact); reply != "" {
		t.Errorf("before a jump: %s", reply)
	}
	if _, err := beside.Jump(t.Context(), s.svc, s.task, op.JumpRequested{To: 0, Reason: "a was wrong"}); err != nil {
		t.Fatal(err)
	}
	for i, e := range []string{`{"hook_event_name":"UserPromptSubmit","prompt":"Go on."}`, `{"hook_event_name":"SessionStart","source":"resume"}`, compact, compact} {
		reply := s.event(e)
		if told := strings.Count(reply, "a was wrong"); (told == 1) != (i != 1) || i == 1 && reply != "" || strings.Contains(reply, "a is good") || strings.Contains(reply, "Done.") != (told == 1) {
			t.Errorf("%s: %s", e, reply)
		}
	}
}

// TestKimi: its prompts are lists, its errors objects, and what it is told is plain text.
func TestKimi(t *testing.T) {
	s := newSpeaker(t, sessions.Kimi)
	s.event(`{"hook_event_name":"UserPromptSubmit","prompt":[{"type":"text","text":"Make it pass."}]}`)
	call := `"tool_name":"Bash","tool_input":{"command":"sh check.sh"},"tool_call_id":`
	s.event(`{"hook_event_name":"PreToolUse",` + call + `"c1"}`)
	s.event(`{"hook_event_name":"PostToolUseFailure",` + call + `"c1","error":{"code":"internal","message":"no\nCommand failed with exit code: 3."}}`)
	s.event(`{"hook_event_name":"PreToolUse",` + call + `"c2"}`)
	s.event(`{"hook_event_name":"PostToolUse",` + call + `"c2","tool_output":"ok\n"}`)
	if reply := s.event(`{"hook_event_name":"Stop"}`); reply != "" {
		t.Errorf("reply %s", reply)
	}
	list, words := s.results()
	s.want(0, list, "Bash", "no", 3)
	s.want(1, list, "Bash", "ok", 0)
	if words[len(words)-1] != "Make it pass." {
		t.Errorf("the user said %q", words)
	}
	if _, err := beside.Jump(t.Context(), s.svc, s.task, op.JumpRequested{To: 1, Reason: "it was right"}); err != nil {
		t.Fatal(err)
	}
	if reply := s.event(`{"hook_event_name":"UserPromptSubmit","prompt":[{"type":"text","text":"Go on."}]}`); !strings.HasPrefix(reply, "<anamnesis>\n[") || !strings.Contains(reply, "it was right") {
		t.Errorf("reply %s", reply)
	}
}

// TestContextCut: the plugin of opencode learns which calls were left, and again that
// they were not where the jump is taken back.
func TestContextCut(t *testing.T) {
	s := newSpeaker(t, sessions.OpenCode)
	cut := `{"hook_event_name":"ContextCut"}`
	if reply := s.event(cut); reply != "" {
		t.Errorf("before it began: %s", reply)
	}
	s.event(`{"hook_event_name":"UserPromptSubmit","prompt":"Make it pass."}`)
	for i, id := range []string{"c1", "c2", "c3"} {
		call := `"tool_name":"bash","tool_input":{"command":"echo"},"tool_use_id":"` + id + `"`
		s.event(`{"hook_event_name":"PreToolUse",` + call + `}`)
		if err := os.WriteFile(filepath.Join(s.dir, "a"), []byte{byte('0' + i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		s.event(`{"hook_event_name":"PostToolUse",` + call + `,"tool_response":{"stdout":""}}`)
	}
	for _, tt := range []struct {
		to   int
		want string
	}{{1, `{"left":["c2","c3"]}`}, {3, ""}, {2, `{"left":["c3"]}`}} {
		if _, err := beside.Jump(t.Context(), s.svc, s.task, op.JumpRequested{To: tt.to, Reason: "r"}); err != nil {
			t.Fatal(err)
		}
		if reply := s.event(cut); reply != tt.want {
			t.Errorf("at step %d: %s, want %s", tt.to, reply, tt.want)
		}
	}
}

// TestRunning: what a call changed before its beginning was told is the call's, and a
// jump reverts it; what was changed before the prompt is the user's.
func TestRunning(t *testing.T) {
	for _, untold := range []bool{false, true} {
		s := newSpeaker(t, beside.ACP)
		s.write("lib", "kept")
		s.event(`{"hook_event_name":"UserPromptSubmit","prompt":"Clean up."}`)
		s.event(`{"hook_event_name":"Stop"}`)
		s.write("mine", "the user's")
		s.event(`{"hook_event_name":"UserPromptSubmit","prompt":"Now."}`)
		call := `"tool_name":"Bash","tool_input":{"command":"rm lib"},"tool_use_id":"c1","running":true`
		if err := os.Remove(filepath.Join(s.dir, "lib")); err != nil {
			t.Fatal(err)
		}
		if !untold {
			s.event(`{"hook_event_name":"PreToolUse",` + call + `}`)
		}
		s.event(`{"hook_event_name":"PostToolUse",` + call + `,"tool_response":{"stdout":""}}`)
		if _, err := beside.Jump(t.Context(), s.svc, s.task, op.JumpRequested{To: 1, Reason: "r"}); err != nil {
			t.Fatal(err)
		}
		s.holds("lib", "kept")
		s.holds("mine", "the user's")
	}
}
