package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	assets "anamnesis"
	"anamnesis/cmd/internal/bench/depot"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/session"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	depot.CommandMain()
	os.Exit(m.Run())
}

// TestPairs: the tests of each repository fail, and pass after the repair.
func TestPairs(t *testing.T) {
	all, err := pairs()
	if err != nil || len(all) != 12 {
		t.Fatalf("%d pairs: %v", len(all), err)
	}
	for _, u := range all {
		for _, which := range []string{"learn", "trap"} {
			dir := t.TempDir()
			if err := u.pair.write(which)(dir); err != nil {
				t.Fatal(err)
			}
			before, err := u.pair.passes(t.Context(), which, dir)
			if err != nil {
				t.Fatal(err)
			}
			fix := exec.Command("sh", "-c", u.pair.fix)
			fix.Dir = dir
			_ = fix.Run() // it may name files of the other repository
			after, err := u.pair.passes(t.Context(), which, dir)
			if before || !after || err != nil {
				t.Errorf("%s, %s: passes %v before and %v after the repair, %v", u.name, which, before, after, err)
			}
		}
	}
}

// server answers as a model that repairs each pair at once and gives the worlds up. It
// fails from request number failFrom on, if that is not 0.
type server struct {
	requests, failFrom atomic.Int64
	fixes              map[string]string // by a file of the repository
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.requests.Add(1)
	if from := s.failFrom.Load(); from > 0 && n >= from {
		http.Error(w, `{"error": {"message": "no such model", "code": "model_not_found"}}`, http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	delta := map[string]any{"role": "assistant", "content": "Done."}
	for file, fix := range s.fixes {
		if strings.Contains(string(body), `\n`+file) && !strings.Contains(string(body), `"role":"tool"`) {
			args, _ := json.Marshal(map[string]string{"command": fix})
			delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
				"index": 0, "id": "c1", "type": "function", "function": map[string]string{"name": "Bash", "arguments": string(args)},
			}}}
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, chunk := range []map[string]any{
		{"choices": []any{map[string]any{"index": 0, "delta": delta}}},
		{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}},
		{"choices": []any{}, "usage": map[string]int{"prompt_tokens": 1000, "completion_tokens": 10}},
	} {
		text, _ := json.Marshal(chunk)
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// TestRun plays all units with a local server, is interrupted once, continues, and asks
// nothing where all results exist.
func TestRun(t *testing.T) {
	if testing.Short() || os.Getenv("ANAMNESIS_CI") == "" {
		t.Skip("NOT RUN: heavy; .ci/run runs it, or ANAMNESIS_CI=1")
	}
	all, err := pairs()
	if err != nil {
		t.Fatal(err)
	}
	srv := &server{fixes: make(map[string]string)}
	for _, u := range all {
		for name := range u.pair.files {
			if _, file, _ := strings.Cut(name, "/"); strings.HasSuffix(file, ".sh") && file != "test.sh" {
				srv.fixes[file] = u.pair.fix
			}
		}
	}
	srv.failFrom.Store(9)
	web := httptest.NewServer(srv)
	defer web.Close()
	home := t.TempDir()
	env := map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis"), "OPENAI_API_KEY": "none", "PATH": os.Getenv("PATH")}
	svc, err := session.New(session.Options{Getenv: func(name string) string { return env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), svc, Options{Model: "gpt-4o", MaxCostUSD: 5, Dir: "/tmp/out"}); !errors.Is(err, ErrUsage) {
		t.Errorf("a directory that commands do not see: %v", err)
	}
	var log strings.Builder
	o := Options{Model: "gpt-4o", BaseURL: web.URL, MaxCostUSD: 5, Dir: filepath.Join(t.TempDir(), "out"), Seed: 7, Program: program, Sandbox: "off",
		Log: func(line string) { log.WriteString(line + "\n") }}
	if _, err := Run(t.Context(), svc, o); err == nil || !strings.Contains(err.Error(), "the same command continues") {
		t.Fatalf("interrupted: %v", err)
	}
	srv.failFrom.Store(0)
	rep, err := Run(t.Context(), svc, o)
	if err != nil {
		t.Fatal(err)
	}
	if b, p := rep.Rows[0], rep.Rows[1]; b.Units != worlds || b.With+b.Without != 0 || p.Units != 12 || p.With != 12 || p.Without != 12 || rep.USD <= 0 || rep.USD > 5 {
		t.Errorf("%+v\n%s", rep, log.String())
	}
	if !strings.Contains(log.String(), "44 tasks of at most $0.1136 each, $5.00 together") {
		t.Errorf("the cost is not stated first:\n%s", log.String())
	}
	asked := srv.requests.Load()
	again, err := Run(t.Context(), svc, o)
	if err != nil || srv.requests.Load() != asked || again.USD != rep.USD {
		t.Errorf("a finished run asked %d times more: %v", srv.requests.Load()-asked, err)
	}
	o.Seed = 8
	if _, err := Run(t.Context(), svc, o); !errors.Is(err, ErrUsage) {
		t.Errorf("another run in the same directory: %v", err)
	}
}
