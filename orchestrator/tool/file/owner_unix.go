//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner returns f the owner of the file it replaces, where that may be done
// and is needed. A failure leaves it with ours, as any editor would.
func keepOwner(f *os.File, old fs.FileInfo) {
	st, ok := old.Sys().(*syscall.Stat_t)
	if ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
