package replica

import (
	"context"
	"errors"
	"fmt"
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
		b := &scripted{Bucket: memory{}, create: func(n int, _ string, act func() error) error {
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
			t.Errorf("calls may begin until %v after the object was stored, and others take the task after %v", got, DefaultLease)
		}
		if b.n < 3 {
			t.Errorf("%d creations: nothing was sent after the lease had passed", b.n)
		}
	})
}

// memory is a bucket in memory, for tests whose time is not the machine's.
type memory map[string]string

func (m memory) Create(_ context.Context, name string, data []byte) error {
	if _, ok := m[name]; ok {
		return bucket.ErrExists
	}
	m[name] = string(data)
	return nil
}

func (m memory) Put(_ context.Context, name string, data []byte) error {
	m[name] = string(data)
	return nil
}

func (m memory) Get(_ context.Context, name string) ([]byte, error) {
	if data, ok := m[name]; ok {
		return []byte(data), nil
	}
	return nil, bucket.ErrAbsent
}

func (m memory) List(_ context.Context, prefix, after string) (names []string, err error) {
	for name := range m {
		if strings.HasPrefix(name, prefix) && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (m memory) Delete(_ context.Context, name string) error {
	delete(m, name)
	return nil
}

func (memory) String() string { return "memory" }
