package replica

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

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
