//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner sets f's owner to that of the file it replaces, if necessary and permitted. If that
// fails, the new owner stays, as with any editor.
func keepOwner(f *os.File, old fs.FileInfo) {
	st, ok := old.Sys().(*syscall.Stat_t)
	if ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
