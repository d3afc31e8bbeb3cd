package worldstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
			left := filepath.Join(b.packDir(), fsys.TempPrefix+"left")
			b.must(os.WriteFile(left, nil, 0o600))
			b.must(os.WriteFile(b.lockPath(), fmt.Appendf(nil, "%s12345 another-boot\n", mark), 0o600))
			b.open(nil)
			b.save()
			if _, err := os.Stat(left); !os.IsNotExist(err) {
				t.Errorf("it is left: %v", err)
			}
			if text := b.lockText(); !strings.Contains(text, fmt.Sprintf(`"pid":%d,`, os.Getpid())) {
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
	b.must(os.Remove(b.lockPath()))
	b.write("a", "2")
	b.save()
	b.must(b.w.lockStore(t.Context(), 0))
	defer b.w.lock.Release()
	if _, err := fsys.AcquireLock(t.Context(), b.store, fsys.WriterLock, 0); !errors.Is(err, ErrLocked) ||
		!strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("the new lock while it is held: %v", err)
	}
}

func (b *bench) lockPath() string { return filepath.Join(b.store, fsys.StateDir, fsys.WriterLock) }

func (b *bench) lockText() string {
	b.Helper()
	text, err := os.ReadFile(b.lockPath())
	b.must(err)
	return string(text)
}
