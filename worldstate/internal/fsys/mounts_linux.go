package fsys

import (
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountsFile lists the mounts of this process, one a line. A poll of it reports a change; that
// costs one system call and reads nothing.
const mountsFile = "/proc/self/mountinfo"

// mounts reports when file systems are mounted or unmounted at a directory or beneath.
type mounts struct {
	file *os.File
	fd   int
	dir  string // absolute, without symbolic links
	list []string
}

func openMounts(dir string) (*mounts, error) {
	// Not os.Open: the runtime would poll the file itself and consume the event.
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

// changed reports whether the list differs from that of the previous call.
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

// read lists the mounts at the directory or beneath. In the file, spaces, tabs, newlines and
// backslashes of a mount point are a backslash and three octal digits.
func (m *mounts) read() ([]string, error) {
	data, err := io.ReadAll(io.NewSectionReader(m.file, 0, math.MaxInt64))
	dir := strings.TrimSuffix(strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(m.dir), "/")
	var list []string
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line) // number, parent, device, root, mount point, …
		if len(f) >= 5 && (f[4] == dir || strings.HasPrefix(f[4], dir+"/")) {
			list = append(list, f[0]+" "+f[2]+" "+f[4])
		}
	}
	return list, err
}
