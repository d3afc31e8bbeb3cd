package worldstate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/worldstate/internal/fsys"
)

// TestLockSweeps: what a killed process left goes when another one first takes the
// lock, whatever mark an older program has put into it.
func TestLockSweeps(t *testing.T) {
	for _, mark := range []string{"-", "*", "+", ""} {
		t.Run("mark "+mark, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("a", "1")
			b.save()
			left := filepath.Join(b.w.objects.PackDir(), fsys.TempPrefix+"left")
			b.must(os.WriteFile(left, nil, 0o600))
			b.must(os.WriteFile(b.w.lock.Path, fmt.Appendf(nil, "%s12345 another-boot\n", mark), 0o600))
			b.open(nil)
			b.save()
			if _, err := os.Stat(left); !os.IsNotExist(err) {
				t.Errorf("it is left: %v", err)
			}
			if text := b.lockText(); text != string(b.w.lock.Own) {
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
	b.must(os.Remove(b.w.lock.Path))
	b.write("a", "2")
	b.save()
	if text, own := b.lockText(), fmt.Sprintf("%d %s\n", os.Getpid(), fsys.BootID()); text != own {
		t.Errorf("the new lock says %q, want %q", text, own)
	}
}

func (b *bench) lockText() string {
	b.Helper()
	text, err := os.ReadFile(b.w.lock.Path)
	b.must(err)
	return string(text)
}
