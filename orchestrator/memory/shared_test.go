package memory

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/facts"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
)

// newBucket returns a directory as a bucket.
func newBucket(t *testing.T) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.TempDir(), nil, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

// TestSharedPrefix: a repository is recognised in another clone, by its remote or by its first commit, and not by the
// path of a directory.
func TestSharedPrefix(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	git(t, root, "init", "-q", at("one"))
	git(t, at("one"), "commit", "-q", "--allow-empty", "-m", "begin")
	git(t, root, "clone", "-q", at("one"), at("two"))
	git(t, root, "init", "-q", at("empty"))
	git(t, root, "init", "-q", at("other"))
	git(t, at("other"), "commit", "-q", "--allow-empty", "-m", "another beginning")
	if err := os.MkdirAll(at("two/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	one := SharedPrefix(at("one"))
	if two := SharedPrefix(at("two/sub")); two != one {
		t.Errorf("a clone has %s, want %s", two, one)
	}
	for _, name := range []string{"empty", "other", "."} {
		if got := SharedPrefix(at(name)); got == one || len(got) != len("learned/0123456789abcdef/") {
			t.Errorf("%s has %s", name, got)
		}
	}
	for _, name := range []string{"empty", "other"} { // without its history, a repository has its remote
		git(t, at(name), "remote", "add", "origin", "https://git.example.com/app.git")
	}
	if empty, other := SharedPrefix(at("empty")), SharedPrefix(at("other")); empty != other || empty == one {
		t.Errorf("one remote: %s and %s", empty, other)
	}
}

// TestOpenFactsShared: the tasks of the bucket count beside the home's, each once and as it ended last.
func TestOpenFactsShared(t *testing.T) {
	b, dir, day := newBucket(t), t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	task := func(id string, hours int) facts.Task {
		return facts.Task{ID: id, Ended: day.Add(time.Duration(hours) * time.Hour)}
	}
	h := taskdir.Home{Data: t.TempDir(), Share: b.Put, Shared: t.TempDir()}
	for _, o := range []facts.Task{task("a", 1), task("there", 4), task("there", 2), task("b", 3)} {
		name := o.Ended.Format("20060102T150405.000Z-") + o.ID
		if err := (Shared{V: SharedVersion, Name: name, Facts: o}).store(h, SharedPrefix(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.Shared, SharedPrefix(dir), "torn"), []byte(`{"v`), 0o600); err != nil {
		t.Fatal(err)
	}
	tasks := func(h taskdir.Home) (out []string) {
		r, err := OpenFacts(h, dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Tasks {
			out = append(out, o.ID+o.Ended.Format(" 15"))
		}
		return out
	}
	r, err := OpenFacts(h, dir)
	if err == nil {
		err = r.Add(task("b", 0), task("own", 2))
	}
	if got := tasks(h); err != nil || !slices.Equal(got, []string{"a 01", "own 02", "b 03", "there 04"}) {
		t.Errorf("%q, %v", got, err)
	}
	h.Share = nil
	if got := tasks(h); !slices.Equal(got, []string{"b 00", "own 02"}) {
		t.Errorf("without the bucket: %q", got)
	}
}

// TestShareTask: what a task's stream confirms of its card, and that it verified another one, counts in a home that has
// neither the stream nor counted the task, as it does where the task ran; and not without the bucket.
func TestShareTask(t *testing.T) {
	dir := t.TempDir()
	b, lesson, met := newBucket(t), lessonCard(nil),
		lessonCard(func(c *card.Card) { c.ID, c.Topic = "5yq2m5pkd3c7xw6b", "another" })
	text := lesson.Hash()
	open := func(h func(*taskdir.Home), task string, bodies ...op.Body) *Memory {
		root := t.TempDir()
		p := gatetest.Open(t, root, op.TaskOpened{Task: task, EAS: 8000}, bodies...)
		h(&p.Ledger.Home)
		m, err := Open(p.Ledger, dir, filepath.Join(root, "cards"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	put := func(m *Memory) {
		for _, c := range []*card.Card{lesson, met} {
			if _, _, err := m.cards.Put(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := t.TempDir()
	shares := func(h *taskdir.Home) { h.Share, h.Shared = b.Put, folder }
	bodies := []op.Body{
		&op.ModelReplied{Calls: []op.Call{{ID: "c1", Name: "Bash", Args: `{"command":"make"}`}}, Finish: "tool_calls"},
		&op.ToolCalled{Call: "c1", Name: "Bash", Args: `{"command":"make"}`, World: "tree"},
		&op.ToolReturned{Call: "c1", Name: "Bash", Text: "no rule"},
		&op.PassDone{Trigger: op.TriggerEnd, Cards: []string{lesson.ID}, Lessons: []string{text},
			Paired: []string{text}},
	}
	first := open(func(*taskdir.Home) {}, "t", bodies...)
	ops, err := first.Ops(op.Range{First: 5, Last: 7})
	if err != nil {
		t.Fatal(err)
	}
	lesson.SourceTask = "t"
	lesson.Provenance = card.Provenance{Task: "t", Ranges: []card.Range{{First: 5, Last: 7}},
		EvidenceHash: anamnesis.EvidenceHash(ops)}
	put(first)
	shares(&first.Home)
	if err := first.CountTask(); err != nil {
		t.Fatal(err)
	}
	if names, err := b.List(t.Context(), "learned/", ""); err != nil || len(names) > 0 {
		t.Errorf("of a task that is kept in this home only: %q, %v", names, err)
	}
	if err := os.WriteFile(filepath.Join(first.Home.Task("t"), taskdir.RemoteName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	first.verified = []usage.Event{{Card: met.ID, What: usage.Verified, Task: "t", Op: 7, Text: met.Hash()}}
	if err := errors.Join(first.CountTask(), first.Untold); err != nil {
		t.Fatal(err)
	}
	names, err := b.List(context.Background(), SharedPrefix(dir), "")
	if err != nil || len(names) != 1 {
		t.Fatalf("shared: %q, %v", names, err)
	}
	var o Shared
	if data, err := b.Get(t.Context(), names[0]); err != nil || json.Unmarshal(data, &o) != nil ||
		o.V != SharedVersion || o.Facts.ID != "t" {
		t.Errorf("%+v, %v", o, err)
	}
	whole := evidence{Derived: true, Paired: true, Ran: true, World: "tree"}
	for name, tt := range map[string]struct {
		home func(*taskdir.Home)
		want evidence
		rung recalled.Rung
	}{
		"with the bucket":    {shares, whole, recalled.Verified},
		"without the bucket": {func(h *taskdir.Home) { h.Shared = folder }, evidence{}, recalled.Hypothesis},
	} {
		m := open(tt.home, "other")
		put(m)
		if got := m.evidence(lesson); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		if got := m.trust(met).Rung; got != tt.rung {
			t.Errorf("%s: %s, want %s", name, got, tt.rung)
		}
	}
}
