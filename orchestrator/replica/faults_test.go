package replica

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/opstream"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/worldstate"
)

// flaky is a bucket whose requests fail, or act and then fail.
type flaky struct {
	bucket.Bucket
	mu  sync.Mutex
	rng *rand.Rand
}

var errFlaky = errors.New("503 slow down")

// fails reports whether a request fails before and after it acts.
func (f *flaky) fails() (before, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.rng.IntN(10)
	return n == 0, n == 1
}

func (f *flaky) do(act func() error) error {
	before, after := f.fails()
	if before {
		return errFlaky
	}
	err := act()
	if after {
		return errFlaky
	}
	return err
}

func (f *flaky) Create(ctx context.Context, name string, data []byte) error {
	return f.do(func() error { return f.Bucket.Create(ctx, name, data) })
}

func (f *flaky) Put(ctx context.Context, name string, data []byte) error {
	return f.do(func() error { return f.Bucket.Put(ctx, name, data) })
}

// TestFaults: a task moves through machines that are killed at any moment, over a bucket that fails and whose answers
// are lost. What was safe is in the stream of each later machine, in order; the chain is whole.
func TestFaults(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			plain := shared(t, nil)
			b := &flaky{Bucket: plain, rng: rand.New(rand.NewPCG(seed, 2))}
			homes := []*machine{newMachine(t), newMachine(t)}
			var safe []string // texts of lines that are safe, in order
			var parent = homes[0].parent
			for turn, no := 0, 0; turn < 8; turn++ {
				m := homes[rng.IntN(len(homes))]
				if turn == 0 {
					m = homes[0]
					os.RemoveAll(homes[1].home.Task(testTask))
					m.open(b, Cursor{Task: testTask})
				} else {
					p, err := Pull(context.Background(), plain, m.home, testTask)
					if err != nil {
						t.Fatal(err)
					}
					m.parent, m.step = parent, turn*1000
					m.open(b, p.Cursor)
				}
				var pending []string
				for range 5 + rng.IntN(20) {
					no++
					text := fmt.Sprintf("line %d", no)
					m.append("said", map[string]string{"text": text})
					pending = append(pending, text)
					switch rng.IntN(6) {
					case 0:
						m.safe()
						safe, pending = append(safe, pending...), nil
					case 1:
						m.step++
						m.save("f", text)
						m.safe()
						safe, pending, parent = append(safe, pending...), nil, m.parent
					}
				}
				m.holder.end() // killed
				<-m.holder.ended
				m.log.Close()
				m.world.Close()
			}
			last := newMachine(t)
			os.RemoveAll(last.home.Task(testTask))
			if _, err := Pull(context.Background(), plain, last.home, testTask); err != nil {
				t.Fatal(err)
			}
			if _, err := opstream.Verify(context.Background(), last.home.Task(testTask)); err != nil {
				t.Fatal(err)
			}
			r, err := opstream.OpenReader(last.home.Task(testTask), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for rec, err := range r.Since(0) {
				if err != nil {
					t.Fatal(err)
				}
				if len(safe) > 0 && string(rec.Body) == fmt.Sprintf(`{"text":%q}`, safe[0]) {
					safe = safe[1:]
				}
			}
			if len(safe) > 0 {
				t.Errorf("%d safe lines are lost, the first is %q", len(safe), safe[0])
			}
		})
	}
}

// scripted is a bucket whose creations fail as a test says.
type scripted struct {
	bucket.Bucket
	// create is called with the number of the creation, from 1. It calls act, or does not.
	create func(n int, name string, act func() error) error
	n      int
}

func (s *scripted) Create(ctx context.Context, name string, data []byte) error {
	s.n++
	return s.create(s.n, name, func() error { return s.Bucket.Create(ctx, name, data) })
}

// TestLargeFileFails: a file of several parts whose sending failed between two of them is whole in the bucket.
func TestLargeFileFails(t *testing.T) {
	plain, failed := shared(t, nil), false
	b := &scripted{Bucket: plain, create: func(n int, _ string, act func() error) error {
		if n == 2 {
			failed = true
			return errFlaky
		}
		return act()
	}}
	one, two := newMachine(t), newMachine(t)
	os.RemoveAll(two.home.Task(testTask))
	one.open(b, Cursor{Task: testTask})
	large := make([]byte, maxPartBytes+maxPartBytes/2)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range large {
		large[i] = 'a' + byte(rng.IntN(26))
	}
	one.append("said", map[string]string{"text": string(large)})
	one.safe()
	if !failed {
		t.Fatal("the file has no second part")
	}
	if _, err := Pull(context.Background(), plain, two.home, testTask); err != nil {
		t.Fatal(err)
	}
}

// TestLostAnswer: the lease counts from when an object may have been stored, not from when its holder learned of it:
// others see it before.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stored time.Time
		b := &scripted{Bucket: newMemory(), create: func(n int, _ string, act func() error) error {
			if n == 1 {
				stored = time.Now()
				err := act()
				<-time.After(DefaultLease) // until the connection is given up
				return errors.Join(errFlaky, err)
			}
			return act()
		}}
		m := newMachine(t)
		var until time.Time
		h, err := Hold(t.Context(), b, Cursor{Task: testTask}, Options{Home: m.home, Renewed: func(left time.Duration) {
			if until.IsZero() {
				until = time.Now().Add(left)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Safe(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.end()
		<-h.ended
		if got := until.Sub(stored); got > DefaultLease*2/3 {
			t.Errorf("calls may begin until %v after the object was stored, and others take the task after %v",
				got, DefaultLease)
		}
		if b.n < 3 {
			t.Errorf("%d creations: nothing was sent after the lease had passed", b.n)
		}
	})
}

// memory is a bucket in memory, for tests whose time is not the machine's.
type memory struct {
	mu      sync.Mutex
	objects map[string]string
}

func newMemory() *memory { return &memory{objects: make(map[string]string)} }

func (m *memory) Create(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[name]; ok {
		return bucket.ErrExists
	}
	m.objects[name] = string(data)
	return nil
}

func (m *memory) Put(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[name] = string(data)
	return nil
}

func (m *memory) Get(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.objects[name]; ok {
		return []byte(data), nil
	}
	return nil, bucket.ErrAbsent
}

func (m *memory) List(_ context.Context, prefix, after string) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.objects {
		if strings.HasPrefix(name, prefix) && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (m *memory) Delete(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
	return nil
}

func (*memory) String() string { return "memory" }

// TestTwins: of two processes that would send the same bytes at the same time only one holds the task.
func TestTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, held := newMemory(), 0
		for range 2 {
			h, err := Hold(t.Context(), b, Cursor{Task: testTask}, Options{Home: newMachine(t).home})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Safe(t.Context()); err == nil {
				held++
			} else if !errors.Is(err, ErrLost) {
				t.Error(err)
			}
			h.end()
			<-h.ended
		}
		if held != 1 {
			t.Errorf("%d processes hold the task", held)
		}
	})
}

// TestTake: a task is taken when its log has not grown for a lease of the taker's own clock, and not before the
// holder's commands have ended, or at once when its holder has let it go.
func TestTake(t *testing.T) {
	for name, taken := range map[string]struct {
		released     bool
		holds, takes time.Duration // leases
	}{
		"killed": {false, DefaultLease, DefaultLease}, "released": {true, DefaultLease, DefaultLease},
		"a shorter lease": {false, DefaultLease, time.Minute}, "a longer lease": {false, time.Minute, DefaultLease},
	} {
		t.Run(name, func(t *testing.T) {
			released, lease := taken.released, max(taken.holds, taken.takes)
			synctest.Test(t, func(t *testing.T) {
				b := newMemory()
				holder, err := Hold(t.Context(), b, Cursor{Task: testTask},
					Options{Home: newMachine(t).home, Lease: taken.holds})
				if err != nil {
					t.Fatal(err)
				}
				if err := holder.Safe(t.Context()); err != nil {
					t.Fatal(err)
				}
				taker := newMachine(t)
				os.RemoveAll(taker.home.Task(testTask))
				var killed time.Time
				go func() {
					<-time.After(10 * DefaultLease)
					if killed = time.Now(); released {
						if err := holder.Close(context.Background()); err != nil {
							t.Error(err)
						}
					}
					holder.end()
				}()
				p, err := Take(t.Context(), b, taker.home, testTask, taken.takes, func(string) {})
				if err != nil || p.Last.Released != released {
					t.Fatalf("%+v, %v", p, err)
				}
				at := time.Now()
				<-holder.ended
				waited := at.Sub(killed)
				if waited < 0 || released && waited > lookTime ||
					!released && (waited < lease-taken.holds/4 || waited > lease+lookTime) {
					t.Errorf("taken %v after its holder ended at %v", waited, killed)
				}
			})
		})
	}
}

// first shows the first objects of a task's log only.
type first struct {
	bucket.Bucket
	n int
}

func (f first) List(ctx context.Context, prefix, after string) ([]string, error) {
	names, err := f.Bucket.List(ctx, prefix, after)
	if i := slices.Index(names, logName(testTask, uint64(f.n)+1)); i >= 0 {
		names = names[:i]
	}
	return names, err
}

// TestContentFirst: whichever object is the last that a holder sent, the snapshots that the stream names are there.
func TestContentFirst(t *testing.T) {
	b, one := shared(t, nil), newMachine(t)
	one.open(b, Cursor{Task: testTask})
	one.append("task.opened", map[string]string{"task": testTask})
	for i := range 4 {
		one.save("f", strings.Repeat(fmt.Sprint(i), 100))
		if i%2 == 0 {
			one.safe()
		}
		one.append("said", map[string]string{"text": strings.Repeat("large ", 400_000)})
		one.safe()
	}
	names, err := b.List(t.Context(), logPrefix(testTask), "")
	if err != nil || len(names) < 5 {
		t.Fatalf("%d objects, %v", len(names), err)
	}
	for n := 1; n <= len(names); n++ {
		two := newMachine(t)
		os.RemoveAll(two.home.Task(testTask))
		if _, err := Pull(t.Context(), first{b, n}, two.home, testTask); err != nil {
			t.Fatalf("the first %d objects: %v", n, err)
		}
		w, err := worldstate.Open(two.dir, two.store(),
			&worldstate.Options{Task: testTask, Home: two.home.User, Moved: []string{one.dir}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := opstream.OpenReader(two.home.Task(testTask), nil)
		if err != nil {
			t.Fatal(err)
		}
		for rec, err := range r.Since(0) {
			var saved struct{ Commit worldstate.ID }
			if err = errors.Join(err, json.Unmarshal(rec.Body, &saved)); err == nil && saved.Commit != "" {
				err = w.Has(t.Context(), saved.Commit)
			}
			if err != nil {
				t.Errorf("the first %d objects, line %d: %v", n, rec.Seq, err)
			}
		}
		r.Close()
		w.Close()
	}
}

// TestDamagedLog: a log with an object that is damaged, missing, in another's place, or of a newer program is refused,
// and pulled once it is whole again.
func TestDamagedLog(t *testing.T) {
	const at = 3
	for name, damage := range map[string]func(log [][]byte) [][]byte{
		"missing":  func(log [][]byte) [][]byte { return slices.Delete(log, at-1, at) },
		"swapped":  func(log [][]byte) [][]byte { log[at-1], log[at] = log[at], log[at-1]; return log },
		"repeated": func(log [][]byte) [][]byte { return slices.Insert(log, at, log[at-1]) },
		"cut":      func(log [][]byte) [][]byte { log[at-1] = log[at-1][:len(log[at-1])/2]; return log },
		"empty":    func(log [][]byte) [][]byte { log[at-1] = nil; return log },
		"other":    func(log [][]byte) [][]byte { log[at-1] = []byte("hello"); return log },
		"rewritten": func(log [][]byte) [][]byte {
			log[at-1] = edited(log[at-1], "line 3", "line 9")
			return log
		},
		"foreign": func(log [][]byte) [][]byte {
			log[at-1] = edited(log[at-1], testTask, "task_2_test")
			return log
		},
		"flipped": func(log [][]byte) [][]byte { log[at-1][len(log[at-1])-20] ^= 1; return log },
		"newer": func(log [][]byte) [][]byte {
			log[at-1] = edited(log[at-1], `{"v":1,`, `{"v":9,`)
			return log
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, one, two := newMemory(), newMachine(t), newMachine(t)
			os.RemoveAll(two.home.Task(testTask))
			one.open(b, Cursor{Task: testTask})
			for i := range 5 {
				one.append("said", map[string]string{"text": fmt.Sprintf("line %d", i+1)})
				one.safe()
			}
			one.holder.end()
			<-one.holder.ended
			whole := maps.Clone(b.objects)
			var log [][]byte
			for n := uint64(1); n <= 5; n++ {
				log = append(log, []byte(b.objects[logName(testTask, n)]))
				delete(b.objects, logName(testTask, n))
			}
			for i, data := range damage(log) {
				n := uint64(i + 1)
				if name == "missing" && n >= at {
					n++
				}
				b.objects[logName(testTask, n)] = string(data)
			}
			_, err := Pull(t.Context(), b, two.home, testTask)
			if want := map[bool]error{true: ErrNewer, false: ErrDamaged}[name == "newer"]; !errors.Is(err, want) ||
				!strings.Contains(err.Error(), testTask) {
				t.Errorf("pulled: %v", err)
			}
			b.objects = whole
			if p, err := Pull(t.Context(), b, two.home, testTask); err != nil || p.Cursor.Last.N != 5 {
				t.Errorf("pulled the whole log: %+v, %v", p, err)
			}
		})
	}
}

// edited returns an object with another text in its files.
func edited(object []byte, was, is string) []byte {
	in, err := gzip.NewReader(bytes.NewReader(object))
	if err != nil {
		panic(err) // encode made it
	}
	text, err := io.ReadAll(in)
	if err != nil || !bytes.Contains(text, []byte(was)) {
		panic(fmt.Sprint(was, err))
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(bytes.ReplaceAll(text, []byte(was), []byte(is)))
	zip.Close()
	return out.Bytes()
}

// TestNothingBegun: a task that is not begun is not in the bucket, however long that takes, nor when it ends then.
func TestNothingBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMemory()
		h, err := Hold(t.Context(), b, Cursor{Task: testTask}, Options{Home: newMachine(t).home})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * DefaultLease)
		if err := h.Close(t.Context()); err != nil || len(b.objects) > 0 {
			t.Errorf("the bucket has %d objects, %v", len(b.objects), err)
		}
	})
	b, m := newMemory(), newMachine(t)
	m.open(b, Cursor{Task: testTask})
	if err := m.holder.Close(t.Context()); err != nil || len(b.objects) > 0 {
		t.Errorf("with a stream that has no line, the bucket has %d objects, %v", len(b.objects), err)
	}
	if err := b.Put(t.Context(), indexPrefix+testTask, []byte("{}\n")); err != nil { // a process ended behind it
		t.Fatal(err)
	}
	if has, err := Has(t.Context(), b, testTask); has || err != nil {
		t.Errorf("the name of a task that was not begun is taken: %v, %v", has, err)
	}
}

// TestRemoveUnread: a task whose last object cannot be read is not removed while its log grows.
func TestRemoveUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		sealed, err := bucket.Open(dir, bytes.Repeat([]byte("k"), bucket.KeyBytes), os.Getenv)
		other, failed := bucket.Open(dir, bytes.Repeat([]byte("o"), bucket.KeyBytes), os.Getenv)
		plain, bad := bucket.Open(dir, nil, os.Getenv)
		if err := errors.Join(err, failed, bad); err != nil {
			t.Fatal(err)
		}
		h, err := Hold(t.Context(), sealed, Cursor{Task: testTask}, Options{Home: newMachine(t).home})
		if err := errors.Join(err, h.Safe(t.Context())); err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string]bucket.Bucket{"the key": sealed, "another key": other, "no key": plain} {
			if _, err := Remove(t.Context(), b, testTask, func(string) {}); !errors.Is(err, ErrHeld) {
				t.Errorf("with %s: %v", name, err)
			}
		}
		h.end()
		<-h.ended
		if n, err := Remove(t.Context(), other, testTask, func(string) {}); err != nil || n == 0 {
			t.Errorf("nobody works on it: %d objects removed, %v", n, err)
		}
	})
}

// uplink is a bucket where a part takes ten seconds of its own clock.
type uplink struct {
	*memory
	now time.Time
	gap time.Duration // the longest between two objects of a log
	at  time.Time
}

func (s *uplink) Create(ctx context.Context, name string, data []byte) error {
	if strings.Contains(name, "/parts/") {
		s.now = s.now.Add(10 * time.Second)
	} else {
		s.gap, s.at = max(s.gap, s.now.Sub(s.at)), s.now
	}
	return s.memory.Create(ctx, name, data)
}

// TestLongUpload: while parts go up for longer than a lease, the log grows.
func TestLongUpload(t *testing.T) {
	begun := time.Now()
	b := &uplink{memory: newMemory(), now: begun, at: begun}
	h := &Holder{
		o: Options{Home: newMachine(t).home, Lease: time.Minute, Now: func() time.Time { return b.now }}, bucket: b,
		task: testTask, holder: "h", changed: make(chan struct{}),
	}
	h.cursor.Task = testTask
	if err := h.extend(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	large := file{name: worldsPrefix + "00ff.git/x.pack", data: make([]byte, 20*maxPartBytes)}
	if err := h.extend(t.Context(), &batch{files: []file{large}}, false); err != nil {
		t.Fatal(err)
	}
	if b.now.Sub(begun) < 3*time.Minute || b.gap > time.Minute/4+10*time.Second {
		t.Errorf("of %v the log did not grow for %v", b.now.Sub(begun), b.gap)
	}
	p := &pull{Pulled: Pulled{Cursor: Cursor{Task: testTask}}, bucket: b}
	last, err := p.get(t.Context(), logName(testTask, h.cursor.Last.N))
	if err != nil || len(last.files) != 1 || len(last.files[0].data) != len(large.data) {
		t.Errorf("the last object is %+v, %v", last, err)
	}
}
