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

// TestRenamed: doctor names an agent whose hooks have other fields or events than this program reads, with
// what it got of them. Nothing is said of an agent that only talked, or whose hooks are understood.
func TestRenamed(t *testing.T) {
	prompt, stop := `{"hook_event_name":"UserPromptSubmit","prompt":"p"}`, `{"hook_event_name":"Stop"}`
	turn := func(id string, replace ...string) []string {
		call := `"tool_name":"Bash","tool_use_id":"` + id + `","tool_input":{"command":"make"}`
		list := []string{prompt, `{"hook_event_name":"PreToolUse",` + call + `}`, `{"hook_event_name":"PostToolUse",` + call + `,"tool_response":{"stdout":"ok"}}`, stop}
		for i := range list {
			list[i] = strings.NewReplacer(replace...).Replace(list[i])
		}
		return list
	}
	talk := func(n int) (list []string) {
		for range n / 2 {
			list = append(list, prompt, stop)
		}
		return list
	}
	for name, tt := range map[string]struct {
		events []string
		want   string // empty: nothing
	}{
		"understood":            {turn("c1"), ""},
		"a tool's name":         {turn("c1", `"tool_name"`, `"tool"`), "claude-code 2.4.0: 4 events, 0 calls; 2 are not as this program knows them, as PostToolUse without tool_name: its hooks have changed"},
		"a call's id":           {turn("c1", `"tool_use_id"`, `"call_id"`), "4 events, 0 calls; 2 are not as this program knows them, as PostToolUse without tool_use_id"},
		"the input":             {turn("c1", `"tool_input"`, `"input"`), "without tool_input"},
		"the result":            {turn("c1", `"tool_response"`, `"result"`), "4 events, 0 calls; 1 are not as this program knows them, as PostToolUse without tool_response"},
		"the prompt":            {turn("c1", `"prompt"`, `"text"`), "UserPromptSubmit without prompt"},
		"an event":              {turn("c1", "PreToolUse", "BeforeToolUse"), "BeforeToolUse without a known name"},
		"a conversation":        {talk(8), ""},
		"none but conversation": {talk(20), "claude-code 2.4.0: 20 events, 0 calls: if it ran tools, its hooks have changed"},
		"one of many":           {append(append(turn("c1"), turn("c2")...), turn("c3", `"prompt"`, `"text"`)...), ""},
	} {
		s := newSpeaker(t, sessions.Claude)
		transcript := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(transcript, []byte(`{"type":"user","version":"2.4.0"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, e := range tt.events {
			s.event(fmt.Sprintf(`{"transcript_path":%q,`, transcript) + e[1:])
		}
		found := strings.Join(beside.Findings(s.svc.Home, s.dir, ""), "\n")
		if !strings.Contains(found, tt.want) || tt.want == "" && found != "" {
			t.Errorf("%s: %q, want %q", name, found, tt.want)
		}
	}
}

// TestRenamedHead: events that name no session are counted, too.
func TestRenamedHead(t *testing.T) {
	svc := service(t)
	for range 3 {
		in := strings.NewReader(fmt.Sprintf(`{"session":"s-1","cwd":%q,"hook_event_name":"Stop"}`, t.TempDir()))
		if err := beside.Hook(t.Context(), svc, sessions.Codex, in, "", nil, nil); err == nil {
			t.Error("an event without a session is recorded")
		}
	}
	if found := strings.Join(beside.Findings(svc.Home, ".", ""), "\n"); !strings.Contains(found, "codex: 3 events, 0 calls; 3 are not as this program knows them, as Stop without its session, name or directory") {
		t.Errorf("%s", found)
	}
}
