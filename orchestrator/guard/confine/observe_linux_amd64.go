package confine

import "golang.org/x/sys/unix"

// olderCalls are system calls that newer architectures lack.
func olderCalls() []observed {
	first := []named{{-1, 0}}
	return []observed{
		{unix.SYS_OPEN, 1, first}, {unix.SYS_CREAT, -1, first}, {unix.SYS_MKDIR, -1, first},
		{unix.SYS_MKNOD, -1, first}, {unix.SYS_UNLINK, -1, first}, {unix.SYS_RMDIR, -1, first},
		{unix.SYS_CHMOD, -1, first}, {unix.SYS_RENAME, -1, []named{{-1, 0}, {-1, 1}}},
		{unix.SYS_LINK, -1, []named{{-1, 1}}}, {unix.SYS_SYMLINK, -1, []named{{-1, 1}}},
	}
}
