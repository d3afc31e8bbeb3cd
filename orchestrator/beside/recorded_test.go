package beside_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

// recordings is the folder of what the real agents wrote.
func recordings(t *testing.T) string {
	dir := filepath.Join(
		cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "shared", "data")), "agents")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the recorded sessions: %v", err)
		}
		t.Skipf("SKIPPED: no recorded sessions (%v); set ANAMNESIS_BENCH_DATA to the folder that holds agents/", err)
	}
	return dir
}

// lines reads the lines of a packed file.
func lines(t *testing.T, path string) (list []string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(z)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		list = append(list, in.Text())
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestRecordedHooks: the results that hooks report are recorded with the text, the exit code and the
// model that an import of the same session has.
func TestRecordedHooks(t *testing.T) {
	dir := recordings(t)
	for _, tt := range []struct {
		agent          sessions.Agent
		folder, events string
		session, file  string
	}{
		{sessions.Claude, "claude", "UserPromptSubmit PostToolUse PostToolUseFailure PostToolBatch", "03fbf9e7-881b-4694-8972-a641402d940d", "projects/*/03fbf9e7*.jsonl.gz"},
		{sessions.Codex, "codex", "UserPromptSubmit PostToolUse", "01a2042d-5faa-7723-88a9-3ac5115e9f97", "sessions/*/*/*/*-53-32-*.jsonl.gz"},
		{sessions.Gemini, "gemini", "BeforeAgent AfterTool", "e8f1cf91-6fbb-43ae-8267-eece876a96a9", "tmp/*/chats/*e8f1cf91.jsonl.gz"},
		{sessions.Kimi, "kimi", "SessionStart UserPromptSubmit PostToolUse PostToolUseFailure", "session_eaf89356-2872-42c6-becb-4652717600e3", "sessions/*/session_eaf89356*/agents/main/wire.jsonl.gz"},
	} {
		files, err := filepath.Glob(filepath.Join(dir, tt.folder, filepath.FromSlash(tt.file)))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %q, %v", tt.agent, files, err)
		}
		whole, err := sessions.Read(files[0])
		if err != nil {
			t.Fatal(err)
		}
		transcript := filepath.Join(t.TempDir(), "transcript.jsonl")
		if err := os.WriteFile(transcript, []byte(strings.Join(lines(t, files[0]), "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newSpeaker(t, tt.agent)
		for event := range strings.FieldsSeq(tt.events) {
			for _, line := range lines(t, filepath.Join(dir, tt.folder, "hooks-"+event+".jsonl.gz")) {
				var e map[string]json.RawMessage
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				if string(e["session_id"]) != `"`+tt.session+`"` {
					continue
				}
				e["transcript_path"], _ = json.Marshal(transcript)
				if tt.agent == sessions.Kimi {
					delete(e, "transcript_path")
				}
				data, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				s.event(string(data))
			}
		}
		got := map[string][]op.ToolReturned{}
		list, _ := s.results()
		for _, r := range list {
			got[r.Name] = append(got[r.Name], r)
		}
		for _, st := range whole.Steps {
			for _, c := range st.Calls {
				if sessions.IsOwnTool(c.Tool) || strings.Contains(c.Tool, "big") || tt.agent == sessions.Codex && c.Tool == "StrReplaceFile" { // no event, or cut for the model
					continue
				}
				found := false
				for _, r := range got[c.Tool] {
					same := r.Text == strings.TrimSpace(c.Text) || r.Text == c.Text ||
						strings.HasPrefix(c.Text, r.Text) && r.Text != ""
					found = found || same && (r.Exit == nil) == (c.Exit == nil) &&
						(r.Exit == nil || *r.Exit == *c.Exit) && !r.Unknown
				}
				if !found {
					t.Errorf("%s: no hook's result is that of %s: %q, exit %v; got %+v", tt.agent, c.Tool, c.Text,
						c.Exit, got[c.Tool])
				}
			}
		}
		st, err := s.svc.State(beside.TaskOf(tt.agent, "s-1"))
		if err != nil || st.Model.Name != whole.Model {
			t.Errorf("%s: model %q, want %q, %v", tt.agent, st.Model.Name, whole.Model, err)
		}
		row, err := s.svc.EAS(s.dir, whole.Model)
		if err != nil || st.Model.EAS != row.EAS {
			t.Errorf("%s: EAS %d, want %d, %v", tt.agent, st.Model.EAS, row.EAS, err)
		}
	}
}
