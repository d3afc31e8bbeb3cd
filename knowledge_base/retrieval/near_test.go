package retrieval

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// rewritten are lessons of testdata/small as a later pass would word them.
func rewritten() map[string]string {
	return map[string]string{
		"go-test-cache": "cached go test passes\nA test reading a fixture from outside the module still passes after that fixture changed: go test took the cached result. Use go test -count=1.",
		"sqlite-locked": "SQLITE_BUSY with two writers\nWhen two connections write, SQLite says database is locked. Set a busy_timeout, switch to WAL mode, and keep one connection for writes.",
		"docker-layer":  "docker build misses a changed constraints file\nCOPY requirements.txt before RUN pip install caches the layer, and a changed constraints file is ignored. Copy both files first.",
		"k8s-oom":       "JVM pod is OOMKilled, exit code 137\nThe JVM does not see the cgroup limit. -XX:MaxRAMPercentage=75 helps, with the memory request set to the limit.",
		"utf8-bom":      "invalid character 'ï' from json.Unmarshal\nWindows saved the config with a byte order mark; strip the bytes EF BB BF first.",
	}
}

// nearOf returns the most resembling document of each.
func nearOf(t *testing.T, docs []record, more map[string]string) map[string]Neighbour {
	t.Helper()
	texts := make(map[string]string)
	for _, d := range docs {
		texts[d.ID] = d.Title + "\n" + d.Text
	}
	for id, text := range more {
		texts[id+"-again"] = text
	}
	x := filled(t, nil, texts)
	if err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]Neighbour)
	for _, d := range docs {
		near, err := x.Near(t.Context(), d.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(near) > 0 {
			out[d.ID] = near[0]
		}
	}
	return out
}

// nearestIn is nearOf of a corpus.
func nearestIn(t *testing.T, corpus string, more map[string]string) map[string]Neighbour {
	t.Helper()
	docs, err := readRecords(filepath.Join("testdata", corpus, "corpus.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return nearOf(t, docs, more)
}

// On two sets of cards about different things no two are called the same; a
// lesson worded anew is.
func TestNear(t *testing.T) {
	related := 0
	for id, n := range nearestIn(t, "cards", nil) {
		if n.IsDuplicate() {
			t.Errorf("%s is called the same as %+v", id, n)
		}
		if n.Related() {
			related++
		}
	}
	if related > 15 {
		t.Errorf("%d of 151 cards about different things are called related to another", related)
	}
	for id, n := range nearestIn(t, "small", rewritten()) {
		_, again := rewritten()[id]
		if n.IsDuplicate() != again || again && n.ID != id+"-again" {
			t.Errorf("%s beside %+v: same %v, want %v", id, n, n.IsDuplicate(), again)
		}
	}
}

func TestNearCancelled(t *testing.T) {
	x := filled(t, nil, map[string]string{"a": "one text"})
	if err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Near(ctx, "a", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if near, err := x.Near(t.Context(), "nosuch", 1); err != nil || near != nil {
		t.Errorf("no such document: %v, %v", near, err)
	}
}

// TestDenies: nearly the same text with a negation does not share a place with one without.
func TestDenies(t *testing.T) {
	for text, want := range map[string]bool{
		"Set a busy_timeout and switch to WAL mode.": false, "Never switch to WAL mode on a network file system.": true,
		"You shouldn't retry the upload": true, "先拷贝两个文件再安装依赖": false, "不要先拷贝两个文件": true,
	} {
		if got := denies(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
