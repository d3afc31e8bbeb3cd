//go:build unix

package tool

import (
	"io/fs"
	"syscall"
)

// identity returns a file's inode and the number of its names.
func identity(info fs.FileInfo) (inode, uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, 1
	}
	return inode{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}
