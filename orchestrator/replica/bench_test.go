package replica

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/worldstate"
)

// slow is a bucket each of whose requests takes a time.
type slow struct {
	bucket.Bucket
	takes time.Duration
}

func (s slow) Create(ctx context.Context, name string, data []byte) error {
	<-time.After(s.takes)
	return s.Bucket.Create(ctx, name, data)
}

func (s slow) Get(ctx context.Context, name string) ([]byte, error) {
	<-time.After(s.takes)
	return s.Bucket.Get(ctx, name)
}

func (s slow) List(ctx context.Context, prefix, after string) ([]string, error) {
	<-time.After(s.takes)
	return s.Bucket.List(ctx, prefix, after)
}

// TestSafeRequests: what is recorded is safe after one request, and after two where one is under way.
func TestSafeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 30 * time.Millisecond
		m := newMachine(t)
		m.open(slow{newMemory(), takes}, Cursor{Task: testTask})
		defer m.log.Close()
		m.append("task.opened", map[string]string{"task": testTask})
		m.safe()
		requests := func() int {
			begun := time.Now()
			m.safe()
			return int(time.Since(begun) / takes)
		}
		if n := requests(); n != 0 {
			t.Errorf("%d requests where nothing is new", n)
		}
		m.append("said", map[string]string{"text": "one"})
		if n := requests(); n != 1 {
			t.Errorf("%d requests for one line", n)
		}
		m.append("said", map[string]string{"text": "two"})
		<-time.After(lingerTime + takes/2) // it is under way
		m.append("said", map[string]string{"text": "three"})
		if n := requests(); n > 2 {
			t.Errorf("%d requests behind one that is under way", n)
		}
		m.holder.end()
		<-m.holder.ended
	})
}

// benchSteps is how many steps BenchmarkPull's task has. Each adds a file and four lines.
const benchSteps = 1000

// BenchmarkPull copies a task into an empty home and restores its last files; beside it, who has the home copies it
// with cp and restores them.
func BenchmarkPull(b *testing.B) {
	plain, one := shared(b, nil), newMachine(b)
	one.open(plain, Cursor{Task: testTask})
	one.append("task.opened", map[string]string{"task": testTask})
	for i := range benchSteps {
		for range 3 {
			one.append("said", map[string]string{"text": fmt.Sprintf("%0200d", i)})
		}
		one.save(fmt.Sprintf("d%d/f%d", i%20, i), fmt.Sprintf("%02000d", i))
		one.safe()
	}
	one.holder.end()
	<-one.holder.ended
	restore := func(b *testing.B, m *machine) {
		w, err := worldstate.Open(m.dir, m.store(),
			&worldstate.Options{Task: testTask, Home: m.home.User, Moved: []string{one.dir}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.RestoreTo(b.Context(), one.parent, worldstate.RestoreOptions{}); err != nil {
			b.Fatal(err)
		}
		w.Close()
	}
	for name, from := range map[string]bucket.Bucket{"directory": plain, "20ms": slow{plain, 20 * time.Millisecond}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m := newMachine(b)
				os.RemoveAll(m.home.Task(testTask))
				if _, err := Pull(b.Context(), from, m.home, testTask); err != nil {
					b.Fatal(err)
				}
				restore(b, m)
			}
		})
	}
	b.Run("cp", func(b *testing.B) {
		for b.Loop() {
			m := newMachine(b)
			os.RemoveAll(m.home.State)
			if out, err := exec.Command("cp", "-r", one.home.State, m.home.State).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			restore(b, m)
		}
	})
}

// BenchmarkSafe reports how many bytes are sent for those that a task records: lines, blobs and packs.
func BenchmarkSafe(b *testing.B) {
	for name, text := range map[string]int{"lines of 200 bytes": 200, "lines of 2000 bytes": 2000} {
		b.Run(name, func(b *testing.B) {
			sent, m := &counting{Bucket: newMemory()}, newMachine(b)
			m.open(sent, Cursor{Task: testTask})
			i := 0
			for b.Loop() {
				i++
				for range 3 {
					m.append("said", map[string]string{"text": fmt.Sprintf("%0*d", text, i)})
				}
				m.save("f", fmt.Sprintf("%0*d", text, i))
				m.safe()
			}
			recorded := int64(0)
			for _, dir := range []string{filepath.Join(m.home.Task(testTask), "ops"), filepath.Join(m.home.Task(testTask), "blobs"), m.store()} {
				_ = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
					if err == nil && !e.IsDir() {
						info, err := e.Info()
						if err == nil {
							recorded += info.Size()
						}
					}
					return nil
				})
			}
			b.ReportMetric(float64(sent.bytes)/float64(recorded), "sent/recorded")
			b.ReportMetric(float64(sent.n)/float64(i), "requests/step")
		})
	}
}

// counting counts what is sent.
type counting struct {
	bucket.Bucket
	n, bytes int
}

func (c *counting) Create(ctx context.Context, name string, data []byte) error {
	c.n, c.bytes = c.n+1, c.bytes+len(data)
	return c.Bucket.Create(ctx, name, data)
}
