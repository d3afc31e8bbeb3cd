package replica

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/opstream"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// machine is a home and a directory, where a task's stream and snapshots are written by hand.
type machine struct {
	t      testing.TB
	home   taskdir.Home
	dir    string
	log    *opstream.Log
	world  *worldstate.World
	holder *Holder
	parent worldstate.ID
	step   int
}

const testTask = "task_1_test"

func newMachine(t testing.TB) *machine {
	t.Helper()
	root := t.TempDir()
	m := &machine{t: t, home: taskdir.Home{User: root, State: filepath.Join(root, "home")},
		dir: filepath.Join(root, "work")}
	if err := errors.Join(os.MkdirAll(m.home.Task(testTask), 0o700), os.Mkdir(m.dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) store() string { return filepath.Join(m.home.Worlds(), "00ff.git") }

// open begins to write, and to send from a cursor on.
func (m *machine) open(b bucket.Bucket, c Cursor) {
	m.t.Helper()
	var err error
	if m.holder, err = Hold(context.Background(), b, c, Options{Home: m.home}); err != nil {
		m.t.Fatal(err)
	}
	if m.log, err = opstream.Open(m.home.Task(testTask), &opstream.Options{
		SealAfter: -1, SegmentSizeBytes: 4 << 10, AfterAppend: func(uint64) { m.holder.Wrote() },
	}); err != nil {
		m.t.Fatal(err)
	}
	if m.world, err = worldstate.Open(m.dir, m.store(), &worldstate.Options{Task: testTask, Home: m.home.User}); err != nil {
		m.t.Fatal(err)
	}
	m.holder.Attach(testTask, m.store(), m.log)
	m.t.Cleanup(func() { m.holder.end(); <-m.holder.ended; m.log.Close(); m.world.Close() })
}

func (m *machine) append(kind string, body any) {
	m.t.Helper()
	data, err := json.Marshal(body)
	if err == nil {
		_, err = m.log.Append(context.Background(), opstream.Entry{Kind: kind, Body: data})
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// save writes a file and records a snapshot.
func (m *machine) save(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	if err != nil {
		m.t.Fatal(err)
	}
	snap, err := m.world.Save(context.Background(),
		worldstate.SaveOptions{Message: name, Parent: m.parent, Ref: fmt.Sprint(m.step)})
	if err != nil {
		m.t.Fatal(err)
	}
	m.parent = snap.ID
	m.step++
	m.append("world.saved", map[string]any{"commit": snap.ID, "tree": snap.Tree})
}

// bundle records commits of a repository.
func (m *machine) bundle(name, text string) {
	m.t.Helper()
	name = taskdir.BundlesName + "/" + name
	path := filepath.Join(m.home.Task(testTask), name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		m.t.Fatal(err)
	}
	m.append("git.seen", map[string]string{"repository": ".", "bundle": name})
}

func (m *machine) safe() {
	m.t.Helper()
	if err := m.holder.Safe(context.Background()); err != nil {
		m.t.Fatal(err)
	}
}

func shared(t testing.TB, key []byte) bucket.Bucket {
	t.Helper()
	b, err := bucket.Open(t.TempDir(), key, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// files returns the stream's files.
func (m *machine) files() map[string]string {
	m.t.Helper()
	out := make(map[string]string)
	root := m.home.Task(testTask)
	for _, top := range []string{"ops", "blobs", taskdir.BundlesName} {
		_ = filepath.WalkDir(filepath.Join(root, top), func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				data, _ := os.ReadFile(path)
				rel, _ := filepath.Rel(root, path)
				out[rel] = string(data)
			}
			return nil
		})
	}
	return out
}

// same fails unless another home has the same stream, and the last snapshot restores to the same files there.
func (m *machine) same(other *machine) {
	m.t.Helper()
	mine, theirs := m.files(), other.files()
	for name, text := range mine {
		if theirs[name] != text {
			m.t.Errorf("%s differs: %d and %d bytes", name, len(text), len(theirs[name]))
		}
	}
	if len(mine) != len(theirs) {
		m.t.Errorf("%d files, %d there", len(mine), len(theirs))
	}
	w, err := worldstate.Open(other.dir, other.store(),
		&worldstate.Options{Task: testTask, Home: other.home.User, Moved: []string{m.dir}})
	if err != nil {
		m.t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.RestoreTo(context.Background(), m.parent, worldstate.RestoreOptions{}); err != nil {
		m.t.Fatal(err)
	}
	if err := w.Has(context.Background(), m.parent); err != nil {
		m.t.Error(err)
	}
	for name := range readAll(m.t, m.dir) {
		if readAll(m.t, m.dir)[name] != readAll(m.t, other.dir)[name] {
			m.t.Errorf("the file %s differs", name)
		}
	}
}

func readAll(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			data, _ := os.ReadFile(path)
			out[strings.TrimPrefix(path, dir)] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPull: what was safe is in another home byte for byte, with blobs, several segments and snapshots; what was
// recorded later is added by the next pull.
func TestPull(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "sealed": bytes.Repeat([]byte("k"), bucket.KeyBytes)} {
		t.Run(name, func(t *testing.T) {
			b := shared(t, key)
			one, two := newMachine(t), newMachine(t)
			os.RemoveAll(two.home.Task(testTask))
			one.open(b, Cursor{Task: testTask})
			one.append("task.opened", map[string]string{"task": testTask})
			for i := range 40 {
				one.append("said", map[string]string{"text": strings.Repeat(fmt.Sprint(i), 300)})
			}
			one.append("said", map[string]string{"text": strings.Repeat("large ", 400_000)})
			one.save("a/b.txt", "one\n")
			one.save("a/c.txt", strings.Repeat("two\n", 500_000))
			one.bundle("1.bundle", strings.Repeat("commit", 300_000))
			one.safe()
			got, err := Pull(context.Background(), b, two.home, testTask)
			if err != nil {
				t.Fatal(err)
			}
			one.same(two)
			one.save("a/b.txt", "three\n")
			one.append("said", map[string]string{"text": "more"})
			one.bundle("2.bundle", "commits")
			one.safe()
			again, err := Pull(context.Background(), b, two.home, testTask)
			if err != nil || again.Last.N <= got.Last.N || len(again.Aside) > 0 {
				t.Fatalf("the second pull: %+v, %v", again, err)
			}
			one.same(two)
			if names, err := Tasks(context.Background(), b); err != nil || len(names) != 1 || names[0] != testTask {
				t.Errorf("tasks: %q, %v", names, err)
			}
		})
	}
}

// TestLost: of two processes that continue a task one extends the log; the other is told, and its lines are set
// aside when it pulls.
func TestLost(t *testing.T) {
	b := shared(t, nil)
	one, two := newMachine(t), newMachine(t)
	os.RemoveAll(two.home.Task(testTask))
	one.open(b, Cursor{Task: testTask})
	one.append("task.opened", map[string]string{"task": testTask})
	one.save("a.txt", "one\n")
	one.safe()
	pulled, err := Pull(context.Background(), b, two.home, testTask)
	if err != nil {
		t.Fatal(err)
	}
	two.parent, two.step = one.parent, one.step
	two.open(b, pulled.Cursor)
	two.append("task.resumed", map[string]int{"pid": 2})
	two.safe()
	one.append("said", map[string]string{"text": "too late"})
	if err := one.holder.Safe(context.Background()); !errors.Is(err, ErrLost) ||
		!strings.Contains(err.Error(), "since") {
		t.Fatalf("the first process is not told: %v", err)
	}
	one.log.Close()
	back, err := Pull(context.Background(), b, one.home, testTask)
	if err != nil || len(back.Aside) != 1 {
		t.Fatalf("pull after the loss: %+v, %v", back, err)
	}
	if data, _ := os.ReadFile(back.Aside[0]); !bytes.Contains(data, []byte("too late")) {
		t.Errorf("set aside: %q", data)
	}
	if log, err := opstream.Open(one.home.Task(testTask), &opstream.Options{SealAfter: -1}); err != nil {
		t.Error(err)
	} else if seq, _ := log.Last(); seq != 3 {
		t.Errorf("the stream ends at %d", seq)
	} else {
		log.Close()
	}
}

// TestOwnTail: what a killed process recorded and did not send is sent by the next one in this home.
func TestOwnTail(t *testing.T) {
	b := shared(t, nil)
	one, two := newMachine(t), newMachine(t)
	os.RemoveAll(two.home.Task(testTask))
	one.open(b, Cursor{Task: testTask})
	one.append("task.opened", map[string]string{"task": testTask})
	one.safe()
	one.holder.end() // killed
	<-one.holder.ended
	one.append("said", map[string]string{"text": "kept"})
	one.log.Close()
	pulled, err := Pull(context.Background(), b, one.home, testTask)
	if err != nil || len(pulled.Aside) > 0 {
		t.Fatalf("%+v, %v", pulled, err)
	}
	one.open(b, pulled.Cursor)
	one.safe()
	if _, err := Pull(context.Background(), b, two.home, testTask); err != nil {
		t.Fatal(err)
	}
	one.save("x", "y")
	one.safe()
	if _, err := Pull(context.Background(), b, two.home, testTask); err != nil {
		t.Fatal(err)
	}
	one.same(two)
}

// late is a bucket that answers some time after it acted, or not if that is not waited for.
type late struct {
	bucket.Bucket
	takes time.Duration
	acted chan struct{} // gets a value as it acts, unless one waits there
}

func (l late) Create(ctx context.Context, name string, data []byte) error {
	err := l.Bucket.Create(ctx, name, data)
	select {
	case l.acted <- struct{}{}:
	default:
	}
	select {
	case <-time.After(l.takes):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestCloseUnderWay: what is being sent when a holder closes arrives, and the holder is not taken for another one.
func TestCloseUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMemory()
		m := newMachine(t)
		acted := make(chan struct{}, 1)
		m.open(late{b, time.Second, acted}, Cursor{Task: testTask})
		m.append("task.opened", map[string]string{"task": testTask})
		m.safe()
		<-acted
		<-acted // a sign of life is under way
		if err := m.holder.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.log.Close()
		last := uint64(1)
		for b.objects[logName(testTask, last+1)] != "" {
			last++
		}
		if about, _, err := decode([]byte(b.objects[logName(testTask, last)])); err != nil ||
			!about.Released || last != 3 {
			t.Errorf("the last of %d objects: %+v, %v", last, about, err)
		}
	})
}

// TestVaultAside: what a home recorded of secrets and did not send stays in the task's folder.
func TestVaultAside(t *testing.T) {
	m := newMachine(t)
	path := m.home.Vault(testTask)
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &pull{home: m.home}
	if err := p.setAside(path, 4); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(p.Aside[0]); err != nil || string(data) != "two\n" ||
		filepath.Dir(p.Aside[0]) != m.home.Task(testTask) {
		t.Errorf("%s has %q, %v", p.Aside, data, err)
	}
}

// TestSafeWaits: while the bucket fails nothing is safe, and nothing ends.
func TestSafeWaits(t *testing.T) {
	f := &failing{Bucket: shared(t, nil)}
	m := newMachine(t)
	m.open(f, Cursor{Task: testTask})
	m.append("task.opened", map[string]string{"task": testTask})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := m.holder.Safe(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it is safe although nothing can be sent: %v", err)
	}
	f.works.Store(true)
	m.safe()
	if err := m.holder.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	other := newMachine(t)
	os.RemoveAll(other.home.Task(testTask))
	if got, err := Pull(context.Background(), f, other.home, testTask); err != nil || !got.Last.Released {
		t.Errorf("the closed task is not released: %+v, %v", got, err)
	}
}
