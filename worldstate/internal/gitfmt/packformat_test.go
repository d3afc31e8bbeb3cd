package gitfmt_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestAppendRaw: what is stored as it is comes back through anybody's zlib, and
// is no longer than its blocks' heads make it.
func TestAppendRaw(t *testing.T) {
	for _, n := range []int{0, 1, 2 << 10, 1<<16 - 1, 1 << 16, 3<<16 + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			data := make([]byte, n)
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			raw := gitfmt.AppendRaw([]byte("head"), data)
			if !bytes.HasPrefix(raw, []byte("head")) {
				t.Fatal("what stood before is gone")
			}
			if most := len("head") + 2 + 4 + 5*(n/(1<<16-1)+1) + n; len(raw) > most {
				t.Errorf("%d bytes, want at most %d", len(raw), most)
			}
			z, err := zlib.NewReader(bytes.NewReader(raw[len("head"):]))
			if err != nil {
				t.Fatal(err)
			}
			back, err := io.ReadAll(z)
			if err != nil || !bytes.Equal(back, data) {
				t.Errorf("%d bytes back, want the same %d: %v", len(back), n, err)
			}
		})
	}
}
