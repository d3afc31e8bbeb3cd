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
	"anamnesis/orchestrator/taskdir"
)

// TestCopyRecord: a copy has the record with its blobs, the values behind markers, and commits; it belongs to no
// bucket, and has its own name once that is recorded. The task stays as it is. What is damaged is not copied.
func TestCopyRecord(t *testing.T) {
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "v1.t", Encoding: "r50k_base", Mark: "m"},
		&op.ModelReplied{Text: strings.Repeat("long ", 50_000)})
	if err := p.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	h, s := p.Home, &Service{Home: p.Home, o: Options{Getenv: func(string) string { return "" }}}
	dir := h.Task("v1.t")
	copied := func(id string) error {
		t.Helper()
		if err := os.Mkdir(h.Task(id), 0o700); err != nil {
			t.Fatal(err)
		}
		return s.copyRecord(t.Context(), "v1.t", id)
	}
	if err := copied("bare"); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{taskdir.RemoteName: `{"task":"v1.t"}`, taskdir.VaultName: "", "bundles/x/1.bundle": "commits"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	lines := filepath.Join(dir, "ops", "0000000000000001.jsonl")
	had, err := os.ReadFile(lines)
	if err := errors.Join(err, copied("c")); err != nil {
		t.Fatal(err)
	}
	st, err := taskdir.ReadState(h, "c")
	if err == nil {
		st, err = s.nameCopy(t.Context(), "c", st)
	}
	if err != nil || st.Opened.Task != "c" || st.Said.First != "go" || h.KeptAs("c") != "" {
		t.Errorf("the copy: %+v, %v", st, err)
	}
	blobs, err := os.ReadDir(filepath.Join(h.Task("c"), "blobs"))
	if data, failed := os.ReadFile(filepath.Join(h.Task("c"), "bundles", "x", "1.bundle")); string(data) != "commits" ||
		failed != nil || len(blobs) == 0 || err != nil {
		t.Errorf("bundle %q, %v; %d blobs, %v", data, failed, len(blobs), err)
	}
	if _, err := os.Stat(h.Vault("c")); err != nil {
		t.Error(err)
	}
	if now, _ := os.ReadFile(lines); string(now) != string(had) || h.KeptAs("v1.t") == "" {
		t.Errorf("the task has %d bytes of %d", len(now), len(had))
	}
	had[10] ^= 1
	if err := os.WriteFile(lines, had, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copied("d"); !errors.Is(err, opstream.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
}

// TestJoinClose: two errors are one line, in which each is found; a cause that both name is there once.
func TestJoinClose(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for want, errs := range map[string][2]error{"one; two": {one, two}, "one": {one, nil}, "two": {nil, two}, "of one": {fmt.Errorf("of %w", one), one}} {
		err := JoinClose(errs[0], errs[1])
		if err == nil || err.Error() != want || errs[0] != nil && !errors.Is(err, errs[0]) ||
			errs[1] != nil && !errors.Is(err, errs[1]) {
			t.Errorf("%v and %v: %v, want %s", errs[0], errs[1], err, want)
		}
	}
	if err := JoinClose(nil, nil); err != nil {
		t.Error(err)
	}
}
