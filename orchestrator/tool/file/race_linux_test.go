package file_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/tool/file"
)

// A directory of the path changes places with a link, all the time, while the
// tools work. Whatever they answer: nothing outside is read or written, and
// nothing of .git is.
func TestSymlinkRace(t *testing.T) {
	for name, to := range map[string]string{"outside": "../ws-secrets", "git": ".git"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, top := world(t)
			swap, link := filepath.Join(env.Dir, "swap"), filepath.Join(env.Dir, "link")
			err := errors.Join(os.Mkdir(swap, 0o755), os.Symlink(to, link),
				os.WriteFile(filepath.Join(swap, "config"), []byte("harmless"), 0o644),
				os.WriteFile(filepath.Join(swap, "key"), []byte("harmless"), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := unix.Renameat2(unix.AT_FDCWD, swap, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
						t.Errorf("exchange: %v", err)
						return
					}
				}
			})
			for n := 0; ctx.Err() == nil; n++ {
				if r := call(t, env, file.ReadFile(nil), map[string]any{"path": "swap/key"}); strings.Contains(r.Text, secret) {
					t.Fatalf("read the outside: %s", r.Text)
				}
				// The texts stand only in the files behind the links.
				call(t, env, file.StrReplaceFile(),
					map[string]any{"path": "swap/config", "old": "[core]", "new": "evil"})
				call(t, env, file.StrReplaceFile(), map[string]any{"path": "swap/key", "old": secret, "new": "evil"})
				if n%16 == 0 { // a write that succeeds waits for the disk
					call(t, env, file.WriteFile(), map[string]any{"path": "swap/config", "content": "evil"})
				}
			}
			cancel()
			wg.Wait()
			outsideUnharmed(t, top)
			if _, err := os.Stat(filepath.Join(top, "ws-secrets", "config")); err == nil {
				t.Error("a file was made outside")
			}
		})
	}
}
