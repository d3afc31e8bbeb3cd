package taskdir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/opstream"
)

// TestSummariesOmitUnbegun: a process that is killed before its first operation leaves a folder
// with at most a lock and an empty stream. That is no task; a folder that lost its stream is one.
func TestSummariesOmitUnbegun(t *testing.T) {
	h := Home{State: t.TempDir()}
	for id, files := range map[string][]string{
		"made":     nil,
		"locked":   {opstream.LockName},
		"remote":   {opstream.LockName, RemoteName, DeadlineName},
		"lost":     {opstream.LockName, VaultName},
		"streamed": {opstream.LockName, VaultName, "ops/0000000000000001.jsonl"},
	} {
		if err := os.MkdirAll(h.Task(id), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			path := filepath.Join(h.Task(id), f)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := Summaries(h)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, s.ID+" "+s.State)
	}
	if want := []string{"lost unreadable"}; !slices.Equal(got, want) {
		t.Errorf("Summaries lists %q, want %q", got, want)
	}
	for id, want := range map[string]bool{"remote": false, "lost": true, "streamed": false} {
		Unreserve(h, id)
		if _, err := os.Stat(h.Task(id)); (err == nil) != want {
			t.Errorf("after Unreserve, the folder of %s: %v", id, err)
		}
	}
}
