package beside_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/beside/continuation"
)

// TestContinuation: the copy of a session ends with the results of the step's calls.
func TestContinuation(t *testing.T) {
	a := newAgent(t)
	a.hook("UserPromptSubmit", map[string]any{"prompt": "Go."})
	for i := range 3 {
		a.ok(fmt.Sprint("t", i), "touch a", func() { a.write("a", fmt.Sprint(i)) })
	}
	a.hook("Stop", map[string]any{"last_assistant_message": "Done."})
	home := t.TempDir()
	var lines strings.Builder
	line := func(kind, uuid, content string) {
		fmt.Fprintf(&lines, `{"type":%q,"uuid":%q,"cwd":%q,"message":{"content":%s}}`+"\n", kind, uuid, a.dir, content)
	}
	line("user", "u0", `"Go."`)
	for i := range 3 {
		line("assistant", fmt.Sprint("say", i), `[{"type":"text","text":"next"}]`)
		line("assistant", fmt.Sprint("call", i), fmt.Sprintf(`[{"type":"tool_use","id":"t%d"}]`, i))
		line("user", fmt.Sprint("result", i), fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t%d"}]`, i))
	}
	line("assistant", "done", `[{"type":"text","text":"Done."}]`)
	line("user", "u1", `"Again."`)
	line("assistant", "other", `[{"type":"text","text":"Other."}]`)
	file := filepath.Join(home, ".claude", "projects", "p", a.id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	for step, want := range map[int]string{1: "say1", 2: "say2", 3: "done", 4: "done"} {
		c, err := continuation.At(a.svc, a.task, step, getenv)
		if err != nil || c.Message != want || c.Dir != a.dir || c.Session != a.id {
			t.Errorf("step %d: %+v, %v; want %s", step, c, err, want)
		}
	}
	if _, err := continuation.At(a.svc, a.task, 0, getenv); err == nil {
		t.Error("step 0 has a message of the agent")
	}
	bare := strings.ReplaceAll(lines.String(), fmt.Sprintf(`"cwd":%q,`, a.dir), "")
	if err := os.WriteFile(file, []byte(bare), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := continuation.At(a.svc, a.task, 1, getenv); err != nil || c.Dir != a.dir {
		t.Errorf("the session's file names no directory: %q, %v; want the task's, %q", c.Dir, err, a.dir)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := continuation.At(a.svc, a.task, 1, getenv); err == nil || !strings.Contains(err.Error(), a.id) {
		t.Errorf("without the session's file: %v", err)
	}
}
