package gitdir

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

func encoded(t *testing.T, version uint32, entries []*index.Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := index.NewEncoder(&b).Encode(&index.Index{Version: version, Entries: entries}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A spliced index has the bytes that encoding the same entries has.
func TestSpliceIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	made := func(name string) *index.Entry {
		e := &index.Entry{Name: name, Hash: plumbing.ComputeHash(plumbing.BlobObject, fmt.Append(nil, r.Int())), Mode: filemode.Regular}
		if r.IntN(2) == 0 {
			e.CreatedAt, e.ModifiedAt = time.Unix(r.Int64N(1<<31), r.Int64N(1e9)), time.Unix(r.Int64N(1<<31), r.Int64N(1e9))
			e.Dev, e.Inode, e.UID, e.GID, e.Size, e.Mode = r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32(), filemode.Executable
		}
		return e
	}
	for i := range 300 {
		version := uint32(2 + i%2)
		was, is := make(map[string]*index.Entry), make(map[string]*index.Entry)
		for range r.IntN(20) {
			name := strings.Repeat("d/", r.IntN(3)) + strings.Repeat("x", r.IntN(9)) + fmt.Sprint(r.IntN(30))
			was[name] = made(name)
			was[name].SkipWorktree = version == 3 && r.IntN(4) == 0
			is[name] = was[name]
		}
		var put []*index.Entry
		for name := range was {
			switch r.IntN(4) {
			case 0:
				put = append(put, &index.Entry{Name: name})
				delete(is, name)
			case 1:
				is[name] = made(name)
				put = append(put, is[name])
			}
		}
		for range r.IntN(3) {
			if name := "new" + fmt.Sprint(r.IntN(99)) + strings.Repeat("n", i/290*0xfff); is[name] == nil {
				is[name] = made(name)
				put = append(put, is[name])
			}
		}
		list := func(m map[string]*index.Entry) (out []*index.Entry) {
			for _, e := range m {
				out = append(out, e)
			}
			return out
		}
		want, before := encoded(t, version, list(is)), encoded(t, version, list(was))
		got, ok := SpliceIndex(before, put)
		if !ok || !bytes.Equal(got, want) {
			t.Fatalf("%d: ok %v, spliced\n%q\nencoded\n%q", i, ok, got, want)
		}
		before[r.IntN(len(before))] ^= 1 << r.IntN(8)
		if _, ok := SpliceIndex(before, put); ok {
			t.Fatalf("%d: a damaged index was taken", i)
		}
	}
}

func FuzzSpliceIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01 no entry and no sum"))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append(data, make([]byte, 20)...) // which is taken for any sum
		if out, ok := SpliceIndex(data, nil); ok {
			if _, ok := SpliceIndex(out, nil); !ok {
				t.Error("what was spliced cannot be")
			}
		}
	})
}
