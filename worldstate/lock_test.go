package worldstate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestLockMark: what a process killed in the middle of a change left is removed
// by the next to take the lock, whose mark says so; the mark of one that changed
// nothing does not make anybody look.
func TestLockMark(t *testing.T) {
	for mark, swept := range map[string]bool{"-": false, "*": true, "+": true, "": true} {
		t.Run("mark "+mark, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("a", "1")
			b.save()
			b.save() // one that finds nothing remembers how the lock stood
			left := filepath.Join(b.w.objects.packDir(), tempPrefix+"left")
			b.must(os.WriteFile(left, nil, 0o600))
			b.must(os.WriteFile(b.w.lock.path, fmt.Appendf(nil, "%s12345 another-boot\n", mark), 0o600))
			b.save()
			if _, err := os.Stat(left); os.IsNotExist(err) != swept {
				t.Errorf("swept: %t, want %t", os.IsNotExist(err), swept)
			}
			if text := b.lockText(); text[0] != lockIdle {
				t.Errorf("the lock says %q afterwards", text)
			}
		})
	}
}

// TestLockMarkKilled kills a save at every crash point: the lock says so from the
// first change to the last, and the next save takes the mark away.
func TestLockMarkKilled(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "0")
	b.save()
	for n := 0; ; n++ {
		b.write("a", fmt.Sprint(n+1))
		if !b.killed("save", "", n) {
			break
		}
		if text := b.lockText(); text[0] != lockChanging {
			t.Errorf("killed at point %d, the lock says %q", n, text)
		}
		b.save()
		if text := b.lockText(); text[0] != lockIdle {
			t.Errorf("saved after the kill at point %d, the lock says %q", n, text)
		}
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
