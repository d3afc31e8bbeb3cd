package worldstate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
)

// tips returns a world n snapshots that have no parents, each named by a step, in a
// random order of times.
func (b *bench) tips(n int) {
	b.Helper()
	r := rand.New(rand.NewPCG(25, 26))
	first, err := b.w.byID(b.save().ID)
	b.must(err)
	pack := objects.NewWriter(b.packDir(), b.w.opts.Hook, &b.w.packs)
	defer pack.Abort()
	set := make(map[string]gitfmt.Hash, n)
	for i := range n {
		c := *first
		c.Time, c.Message = time.Unix(int64(1_700_000_000+r.IntN(n)), 0), fmt.Sprint("tip ", i)
		data := c.Encode()
		h := gitfmt.HashObject(gitfmt.CommitObject, data)
		b.must(pack.Add(h, gitfmt.CommitObject, data))
		set[fmt.Sprintf("%s%s/%d", refs.TaskPrefix, b.w.opts.Task, i+2)] = h
	}
	b.must(b.w.objects.Publish(pack, b.w.opts.SizeLimitBytes))
	b.must(b.w.refs.Update(set))
}

// TestLogOfManyTips: the newest come first; of one second the smaller id.
func TestLogOfManyTips(t *testing.T) {
	b := newBench(t, nil)
	b.tips(300)
	list, err := b.w.Log(b.Context())
	b.must(err)
	ordered := slices.IsSortedFunc(list, func(x, y Commit) int {
		if c := y.Time.Compare(x.Time); c != 0 {
			return c
		}
		return slices.Compare([]byte(x.ID), []byte(y.ID))
	})
	if len(list) != 301 || !ordered {
		t.Errorf("%d snapshots, in order %v", len(list), ordered)
	}
}

// BenchmarkLog lists snapshots that are all tips, as many tasks leave them.
func BenchmarkLog(bb *testing.B) {
	for _, n := range []int{350, 3500} {
		bb.Run(fmt.Sprint(n), func(bb *testing.B) {
			b := newBench(bb, nil)
			b.tips(n)
			for bb.Loop() {
				_, err := b.w.Log(bb.Context())
				b.must(err)
			}
		})
	}
}
