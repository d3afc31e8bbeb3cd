package worldstate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLockSweeps: what a killed process left goes when another one first takes the
// lock, whatever mark an older program has put into it.
func TestLockSweeps(t *testing.T) {
	for _, mark := range []string{"-", "*", "+", ""} {
		t.Run("mark "+mark, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("a", "1")
			b.save()
			left := filepath.Join(b.w.objects.packDir(), tempPrefix+"left")
			b.must(os.WriteFile(left, nil, 0o600))
			b.must(os.WriteFile(b.w.lock.path, fmt.Appendf(nil, "%s12345 another-boot\n", mark), 0o600))
			b.open(nil)
			b.save()
			if _, err := os.Stat(left); !os.IsNotExist(err) {
				t.Errorf("it is left: %v", err)
			}
			if text := b.lockText(); text != string(b.w.lock.own) || text[0] != lockIdle {
				t.Errorf("the lock says %q afterwards", text)
			}
		})
	}
}

// TestLockReplaced: a lock whose file another one replaces is taken on that one.
func TestLockReplaced(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	b.save()
	b.must(os.Remove(b.w.lock.path))
	b.write("a", "2")
	b.save()
	if text := b.lockText(); text[0] != lockIdle || len(text) != lockText {
		t.Errorf("the new lock says %q", text)
	}
}

func (b *bench) lockText() string {
	b.Helper()
	text, err := os.ReadFile(b.w.lock.path)
	b.must(err)
	return string(text)
}
