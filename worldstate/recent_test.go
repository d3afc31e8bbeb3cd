package worldstate

import (
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestRecent: the value that was used least recently gives way.
func TestRecent(t *testing.T) {
	var r recent[int]
	key := func(n int) gitfmt.Hash { return gitfmt.Hash{byte(n)} }
	holds := func(want ...int) {
		t.Helper()
		if len(r) != len(want) {
			t.Fatalf("%d values, want %v", len(r), want)
		}
		for i, n := range want {
			if r[i].of != key(n) || r[i].value != 10*n {
				t.Errorf("value %d is %+v, want %v", i, r[i], want)
			}
		}
	}
	use := func(n int, want bool) {
		t.Helper()
		if v, ok := r.get(key(n)); ok != want || ok && v != 10*n || !ok && v != 0 {
			t.Errorf("get(%d) = %d, %v", n, v, ok)
		}
	}
	use(1, false)
	for n := 1; n <= maxRecent; n++ {
		r.put(key(n), 10*n)
	}
	holds(1, 2, 3, 4)
	use(1, true) // the first
	holds(2, 3, 4, 1)
	use(3, true)
	use(3, true) // the last
	holds(2, 4, 1, 3)
	use(9, false)
	r.put(key(5), 50)
	holds(4, 1, 3, 5)
	use(2, false)
}
