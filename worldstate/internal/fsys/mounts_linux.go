package fsys

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountsFile lists the mounts of this process, one a line. A poll reports that it
// has changed; that costs a system call and reads nothing.
const mountsFile = "/proc/self/mountinfo"

// mounts reports when file systems come and go at a directory or beneath.
type mounts struct {
	file *os.File
	fd   int
	dir  string // absolute, without symbolic links
	list []string
}

func openMounts(dir string) (*mounts, error) {
	// Not by os.Open, which would have the runtime poll it and take the news.
	fd, err := Openat(unix.AT_FDCWD, mountsFile, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: mountsFile, Err: err}
	}
	m := &mounts{file: os.NewFile(uintptr(fd), mountsFile), fd: fd, dir: dir}
	if m.list, err = m.read(); err != nil {
		m.file.Close()
		return nil, err
	}
	return m, nil
}

// changed reports whether the list is another one than when it was last asked.
func (m *mounts) changed() (bool, error) {
	fds := []unix.PollFd{{Fd: int32(m.fd), Events: unix.POLLPRI}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false, os.NewSyscallError("poll", err)
		}
		if n == 0 {
			return false, nil
		}
		break
	}
	list, err := m.read()
	if err != nil {
		return false, err
	}
	same := slices.Equal(list, m.list)
	m.list = list
	return !same, nil
}

// read lists the mounts at the directory or beneath: number, device and place.
func (m *mounts) read() ([]string, error) {
	if _, err := m.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var list []string
	sc := bufio.NewScanner(m.file)
	sc.Buffer(nil, maxMountLine)
	for sc.Scan() {
		f := strings.Fields(sc.Text()) // number, parent, device, root, place, …
		if len(f) < 5 {
			return nil, fmt.Errorf("%s: bad line %q", mountsFile, sc.Text())
		}
		if place := unescapeMount(f[4]); place == m.dir || strings.HasPrefix(place, strings.TrimSuffix(m.dir, "/")+"/") {
			list = append(list, f[0]+" "+f[2]+" "+place)
		}
	}
	return list, sc.Err()
}

// maxMountLine bounds a line: an overlay names all its layers in it.
const maxMountLine = 1 << 20

// unescapeMount restores the spaces, tabs, newlines and backslashes of a mount point,
// which are written as a backslash and three octal digits.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
