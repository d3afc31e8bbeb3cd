package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/taskdir"
)

// TestDetach: the copy has the record with its blobs, values behind markers and commits, under its own name, and
// belongs to no bucket. What another process had begun to copy is replaced; a task in use, damaged or done is not copied.
func TestDetach(t *testing.T) {
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "v1.t", Encoding: "r50k_base", Mark: "m"}, &op.ModelReplied{Text: strings.Repeat("long ", 50_000)})
	if err := p.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	h, s := p.Home, &Service{Home: p.Home, o: Options{Getenv: func(string) string { return "" }}}
	dir := h.Task("v1.t")
	for name, text := range map[string]string{
		taskdir.RemoteName: `{"task":"v1.t"}`, taskdir.VaultName: "", "bundles/1.bundle": "commits", "../.copy-v1.t/ops/x": "", "../.copy-v1.t.part/ops/x": "",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := replica.Lock(h, "v1.t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.detach(t.Context(), "v1.t", "Go on."); !errors.Is(err, taskdir.ErrRunning) {
		t.Errorf("in use: %v", err)
	}
	lock.Close()
	lines := filepath.Join(dir, "ops", "0000000000000001.jsonl")
	had, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.detach(t.Context(), "v1.t", "Go on.")
	if now, _ := os.ReadFile(lines); err != nil || id != "task_2_go" || string(now) != string(had) || h.KeptAs("v1.t") == "" {
		t.Fatalf("copied as %q: %v; %d bytes of %d", id, err, len(now), len(had))
	}
	st, err := taskdir.ReadState(h, id)
	if err != nil || st.Opened.Task != id || st.Said.First != "go" || h.KeptAs(id) != "" {
		t.Errorf("the copy: %+v, %v", st, err)
	}
	blobs, err := os.ReadDir(filepath.Join(h.Task(id), "blobs"))
	if data, failed := os.ReadFile(filepath.Join(h.Task(id), "bundles", "1.bundle")); string(data) != "commits" || failed != nil || len(blobs) == 0 || err != nil {
		t.Errorf("bundle %q, %v; %d blobs, %v", data, failed, len(blobs), err)
	}
	if _, err := os.Stat(h.Vault(id)); err != nil {
		t.Error(err)
	}
	tasks, err := os.ReadDir(filepath.Dir(dir))
	for _, e := range tasks {
		if strings.HasPrefix(e.Name(), ".copy") {
			t.Errorf("%s is left", e.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
	had[10] ^= 1
	if err := os.WriteFile(lines, had, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.detach(t.Context(), "v1.t", "Go on."); !errors.Is(err, opstream.ErrCorrupt) || h.HasTask("task_3_go") {
		t.Errorf("damaged: %v", err)
	}
}

// TestJoinClose: two errors are one line, in which each is found; a cause that both name is there once.
func TestJoinClose(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for want, errs := range map[string][2]error{"one; two": {one, two}, "one": {one, nil}, "two": {nil, two}, "of one": {fmt.Errorf("of %w", one), one}} {
		err := JoinClose(errs[0], errs[1])
		if err == nil || err.Error() != want || errs[0] != nil && !errors.Is(err, errs[0]) || errs[1] != nil && !errors.Is(err, errs[1]) {
			t.Errorf("%v and %v: %v, want %s", errs[0], errs[1], err, want)
		}
	}
	if err := JoinClose(nil, nil); err != nil {
		t.Error(err)
	}
}
