package beside_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
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
	if err := beside.Hook(s.Context(), s.svc, s.name, strings.NewReader(string(data)), nil, func(text []byte) error { reply += string(text); return nil }); err != nil {
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
		s.Errorf("result %d is %s %q exit %d unknown %v, want %s %q exit %d", i, r.Name, r.Text, got, r.Unknown,
			tool, text, exit)
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
	s.event(`{"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:06.1Z",` + call +
		`,"tool_response":{"llmContent":"<untrusted_context>\nOutput: no\nExit Code: 1\nProcess Group PGID: 7\n</untrusted_context>","returnDisplay":"no"}}`)
	s.event(`{"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:06.2Z",` + call +
		`,"tool_response":{"llmContent":"Output: ok\nProcess Group PGID: 8\n","returnDisplay":"ok"}}`)
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
	if _, err := beside.Jump(t.Context(), s.svc, s.task, "", op.JumpRequested{To: 1, Reason: "it was right"}, session.Client{}); err != nil {
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
	s.event(`{` + at +
		`"hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_use_id":"c1","tool_input":{"input":"*** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n*** End Patch"}}`)
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

// TestUnreported: a command whose exit code nothing reports has an unknown outcome. It is neither a
// failure nor a success, and so no repair.
func TestUnreported(t *testing.T) {
	fails := `{"hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_use_id":"c1","tool_input":{"command":"make"},"error":"Exit code 2\nmake: no rule to make target 'a'"}`
	edits := `{"hook_event_name":"PostToolUse","tool_name":"Edit","tool_use_id":"c2","tool_input":{"file_path":"Makefile","old_string":"b","new_string":"a"},"tool_response":{"filePath":"/p/Makefile","structuredPatch":[]}}`
	rollout := filepath.Join(t.TempDir(), "rollout.jsonl")
	if err := os.WriteFile(rollout, []byte(`{"payload":{"item":{"id":"c2","exit_code":7}}}`+"\n"+`{"payload":{"item":{"id":"c3","exit_code":0}}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		agent  sessions.Agent
		event  string
		text   string
		exit   int // -1: not reported
		repair bool
	}{
		"reported":               {sessions.Claude, `"tool_response":{"stdout":"ok","interrupted":false}`, "ok", 0, true},
		"in the background":      {sessions.Claude, `"tool_response":{"stdout":"","backgroundTaskId":"b1"}`, "Command running in background with ID: b1", -1, false},
		"interrupted":            {sessions.Claude, `"tool_response":{"stdout":"o","interrupted":true}`, "o", -1, false},
		"another code":           {sessions.Claude, `"tool_response":{"stdout":"","returnCodeInterpretation":"No matches found"}`, runtime.NotReported, -1, false},
		"a text":                 {sessions.Claude, `"tool_response":"ok"`, "ok", -1, false},
		"a renamed field":        {sessions.Claude, `"tool_result":{"stdout":"ok"}`, runtime.NotReported, -1, false},
		"Codex without rollout":  {sessions.Codex, `"tool_response":"ok"`, "ok", -1, false},
		"Codex with its rollout": {sessions.Codex, fmt.Sprintf(`"transcript_path":%q,"tool_response":"ok"`, rollout), "ok", 0, true},
		"an editor's agent":      {beside.ACP, `"tool_response":"ok"`, "ok", -1, false},
		"an editor's with exit":  {beside.ACP, `"tool_response":{"stdout":"ok"}`, "ok", 0, true},
		"opencode with an exit":  {sessions.OpenCode, `"tool_response":{"stdout":"ok"}`, "ok", 0, true},
		"opencode without exits": {sessions.OpenCode, `"tool_response":"ok"`, "ok", -1, false},
	} {
		s := newSpeaker(t, tt.agent)
		s.event(`{"hook_event_name":"UserPromptSubmit","prompt":"Make it pass."}`)
		s.event(fails)
		s.event(edits)
		s.event(`{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"c3","tool_input":{"command":"make"},` + tt.event + `}`)
		s.event(`{"hook_event_name":"Stop","last_assistant_message":"Done."}`)
		list, _ := s.results()
		r, exit := list[2], -1
		if r.Exit != nil {
			exit = *r.Exit
		}
		if r.Text != tt.text || exit != tt.exit || r.Unknown != (tt.exit < 0) || r.IsError {
			t.Errorf("%s: %+v", name, r)
		}
		repairs := 0
		if err := s.svc.Ops(s.task, 0, func(o op.Op) error {
			if b, ok := o.Body.(*op.RepairsFound); ok {
				repairs += b.Pairs
			}
			return nil
		}); err != nil || repairs > 0 != tt.repair {
			t.Errorf("%s: %d repairs, %v", name, repairs, err)
		}
		st, err := s.svc.State(s.task)
		if err != nil || st.Steps.At(3).Failed != 0 {
			t.Errorf("%s: step 3 counts as failed, %v", name, err)
		}
	}
}

// TestModel: Claude Code and Gemini CLI name the model in the transcript alone, from the first reply
// on. It decides how much of a jump an agent attends to. A subagent's model is not the session's.
func TestModel(t *testing.T) {
	for agent, tt := range map[sessions.Agent]struct{ prompt, stop, reply, odd string }{
		sessions.Claude: {"UserPromptSubmit", "Stop",
			`{"type":"assistant","isSidechain":false,"message":{"role":"assistant","model":"%s","content":[]}}`,
			`{"type":"assistant","isSidechain":true,"message":{"model":"gpt-4o"}}` + "\n" +
				`{"type":"assistant","message":{"model":"<synthetic>"}}` + "\n" + `{"type":"user","model":"gpt-4o"}`},
		sessions.Gemini: {
			"BeforeAgent", "AfterAgent", `{"id":"1","type":"gemini","content":"","model":"%s"}`,
			`{"$set":{"model":"gpt-4o"}}` + "\n" + `{"id":"2","type":"info","model":"gpt-4o"}`,
		},
	} {
		s := newSpeaker(t, agent)
		transcript := filepath.Join(t.TempDir(), "t.jsonl")
		at := fmt.Sprintf(`{"transcript_path":%q,"hook_event_name":`, transcript)
		wrote := func(model string) {
			text := fmt.Sprintf(tt.reply, model) + "\n" + tt.odd + "\n" + `{"half`
			if err := os.WriteFile(transcript, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		uses := func(when, model string, count int) {
			t.Helper()
			row, err := s.svc.EAS(s.dir, model)
			if err != nil {
				t.Fatal(err)
			}
			st, err := s.svc.State(s.task)
			if err != nil || st.Model.Name != model || st.Model.EAS != row.EAS || st.Model.Window != row.Advertised {
				t.Errorf("%s %s: model %+v, want %s with EAS %d, %v", agent, when, st.Model, model, row.EAS, err)
			}
			n := 0
			if err := s.svc.Ops(s.task, 0, func(o op.Op) error {
				if b, ok := o.Body.(*op.TaskResumed); ok && b.Model != "" {
					n++
				}
				return nil
			}); err != nil || n != count {
				t.Errorf("%s %s: %d changes of the model, want %d, %v", agent, when, n, count, err)
			}
		}
		s.event(at + `"` + tt.prompt + `","prompt":"Make it pass."}`)
		uses("before the first reply", string(agent), 0)
		wrote("claude-sonnet-4-5")
		s.event(at + `"` + tt.stop + `"}`)
		uses("after it", "claude-sonnet-4-5", 1)
		s.event(at + `"` + tt.prompt + `","prompt":"Go on."}`)
		uses("again", "claude-sonnet-4-5", 1)
		wrote("gemini-2.5-pro")
		s.event(at + `"` + tt.stop + `"}`)
		uses("after a switch", "gemini-2.5-pro", 2)
	}
}

// TestGeminiRenamed: without a result there is no word about an exit code, which is not code 0.
func TestGeminiRenamed(t *testing.T) {
	s := newSpeaker(t, sessions.Gemini)
	s.event(`{"hook_event_name":"BeforeAgent","prompt":"Make it pass."}`)
	s.event(`{"hook_event_name":"AfterTool","timestamp":"2026-01-02T03:04:05Z","tool_name":"run_shell_command","tool_input":{"command":"make"},"tool_result":{"llmContent":"Exit Code: 1"}}`)
	if list, _ := s.results(); !list[0].Unknown || list[0].Exit != nil || list[0].Text != runtime.NotReported {
		t.Errorf("%+v", list[0])
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
	if _, err := beside.Jump(t.Context(), s.svc, s.task, "", op.JumpRequested{To: 0, Reason: "a was wrong"}, session.Client{}); err != nil {
		t.Fatal(err)
	}
	for i, e := range []string{`{"hook_event_name":"UserPromptSubmit","prompt":"Go on."}`, `{"hook_event_name":"SessionStart","source":"resume"}`, compact, compact} {
		reply := s.event(e)
		if told := strings.Count(reply, "a was wrong"); (told == 1) != (i != 1) || i == 1 && reply != "" ||
			strings.Contains(reply, "a is good") || strings.Contains(reply, "Done.") != (told == 1) {
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
	s.event(`{"hook_event_name":"PostToolUseFailure",` + call +
		`"c1","error":{"code":"internal","message":"no\nCommand failed with exit code: 3."}}`)
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
	if _, err := beside.Jump(t.Context(), s.svc, s.task, "", op.JumpRequested{To: 1, Reason: "it was right"}, session.Client{}); err != nil {
		t.Fatal(err)
	}
	if reply := s.event(`{"hook_event_name":"UserPromptSubmit","prompt":[{"type":"text","text":"Go on."}]}`); !strings.HasPrefix(reply, "<anamnesis>\n[") || !strings.Contains(reply, "it was right") {
		t.Errorf("reply %s", reply)
	}
}

// TestKimiAnswer: Kimi Code's hooks do not have the answer. It is read from the session's file; where
// it is not there, or belongs to an earlier turn, none was reported.
func TestKimiAnswer(t *testing.T) {
	event := func(text string) string { return `{"type":"context.append_loop_event","event":` + text + "}\n" }
	part := func(text string) string {
		return event(`{"type":"content.part","part":{"type":"text","text":"` + text + `"}}`)
	}
	begin, call := event(`{"type":"step.begin"}`), event(`{"type":"tool.call","toolCallId":"c"}`)
	for name, tt := range map[string]struct{ file, want string }{
		"an answer":      {begin + part("I run it.") + call + begin + part("It ") + part("passes.") + event(`{"type":"step.end"}`), "It passes."},
		"a call at last": {begin + part("I run it.") + call, "(no answer was reported)"},
		"of before":      {begin + part("It passes.") + `{"type":"turn.prompt"}` + "\n", "(no answer was reported)"},
		"no file":        {"", "(no answer was reported)"},
	} {
		t.Setenv("KIMI_CODE_HOME", t.TempDir())
		s := newSpeaker(t, sessions.Kimi)
		path := filepath.Join(os.Getenv("KIMI_CODE_HOME"), "sessions", "wd", "s-1", "agents", "main", "wire.jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if tt.file != "" {
			if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.event(`{"hook_event_name":"UserPromptSubmit","prompt":[{"type":"text","text":"Make it pass."}]}`)
		s.event(`{"hook_event_name":"Stop"}`)
		st, err := s.svc.State(s.task)
		if err != nil || st.Said.Answer != tt.want {
			t.Errorf("%s: the answer is %q, want %q, %v", name, st.Said.Answer, tt.want, err)
		}
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
		if _, err := beside.Jump(t.Context(), s.svc, s.task, "", op.JumpRequested{To: tt.to, Reason: "r"}, session.Client{}); err != nil {
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
		if _, err := beside.Jump(t.Context(), s.svc, s.task, "", op.JumpRequested{To: 1, Reason: "r"}, session.Client{}); err != nil {
			t.Fatal(err)
		}
		s.holds("lib", "kept")
		s.holds("mine", "the user's")
	}
}

// TestChanges: a call is recorded as one that may change the directory if its tool runs commands, writes or uses the
// network.
func TestChanges(t *testing.T) {
	a := newAgent(t)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "Go."})
	want := map[string]bool{}
	for tool, tt := range map[string]struct {
		input   map[string]any
		changes bool
	}{
		"Read": {map[string]any{"file_path": "f"}, false}, "Grep": {map[string]any{"pattern": "x"}, false},
		"Write": {map[string]any{"file_path": "f", "content": "x"}, true}, "Edit": {map[string]any{"file_path": "f", "old_string": "x", "new_string": "y"}, true},
		"Bash": {map[string]any{"command": "ls"}, true}, "WebFetch": {map[string]any{"url": "http://h/"}, true},
	} {
		call := map[string]any{"tool_name": tool, "tool_input": tt.input, "tool_use_id": tool}
		a.hook("PreToolUse", call)
		call["tool_response"] = map[string]any{}
		a.hook("PostToolUse", call)
		want[tool] = tt.changes
	}
	got := map[string]bool{}
	err := a.svc.Ops(a.task, 0, func(o op.Op) error {
		if b, ok := o.Body.(*op.ToolCalled); ok {
			got[b.Call] = b.Changes
		}
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("may change the directory: %v, %v; want %v", got, err, want)
	}
}
