package guard

import (
	"anamnesis/orchestrator/guard/quarantine"
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is one line of /proc/self/mountinfo.
type mount struct {
	id      uint64
	device  string // major:minor
	root    string // the directory of the device that is mounted
	place   string // where
	kind    string // of file system
	options string // of the file system
}

// readMounts lists the mounts of this process.
func readMounts() ([]mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var all []mount
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		f := strings.Fields(lines.Text()) // id, parent, device, root, place, … "-", kind, source, options
		at := slices.Index(f, "-")
		if at < 5 || len(f) < at+3 {
			return nil, fmt.Errorf("list mounts: unexpected line %q", lines.Text())
		}
		id, err := strconv.ParseUint(f[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("list mounts: unexpected line %q", lines.Text())
		}
		all = append(all, mount{id: id, device: f[2], root: unescapeMount(f[3]), place: unescapeMount(f[4]), kind: f[at+1], options: f[len(f)-1]})
	}
	return all, lines.Err()
}

// unescapeMount decodes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	for _, c := range []string{" ", "\t", "\n", "#", `\`} {
		s = strings.ReplaceAll(s, fmt.Sprintf(`\%03o`, c[0]), c)
	}
	return s
}

// withOtherNames adds to directories every other path under which a mount
// shows them, or a part of them: a bind mount, a second mount of the device, a
// mount beneath one of them that is also mounted elsewhere. A path that keep
// lies in is left out.
func withOtherNames(dirs []string, keep string) ([]string, error) {
	dirs = existing(dirs)
	if len(dirs) == 0 {
		return nil, nil
	}
	all, err := readMounts()
	if err != nil {
		return nil, err
	}
	var trees []mount // device and root of what is to be hidden
	for _, dir := range dirs {
		id, err := mountOf(dir)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if m.id == id && quarantine.Within(dir, m.place) {
				rel, _ := filepath.Rel(m.place, dir)
				trees = append(trees, mount{device: m.device, root: filepath.Join(m.root, rel)})
			}
			if m.place != dir && quarantine.Within(m.place, dir) {
				trees = append(trees, m)
			}
		}
	}
	out := slices.Clone(dirs)
	for _, t := range trees {
		for _, m := range all {
			if m.device != t.device {
				continue
			}
			name := ""
			switch {
			case quarantine.Within(m.root, t.root):
				name = m.place
			case quarantine.Within(t.root, m.root):
				rel, _ := filepath.Rel(m.root, t.root)
				name = filepath.Join(m.place, rel)
			}
			// Another mount may cover this one; then the name is not the tree's.
			if id, err := mountOf(name); name == "" || err != nil || id != m.id {
				continue
			}
			if !quarantine.Within(keep, name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}

// mountOf is the id of the mount that a path lies in.
func mountOf(path string) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil {
		return 0, fmt.Errorf("find the mount of %s: %w", path, err)
	}
	if st.Mask&unix.STATX_MNT_ID == 0 { // a kernel before 5.8
		return mountOfOpen(path)
	}
	return st.Mnt_id, nil
}

// mountOfOpen is mountOf by way of a descriptor.
func mountOfOpen(path string) (uint64, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("find the mount of %s: %w", path, err)
	}
	defer unix.Close(fd)
	data, err := readSmall(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, fmt.Errorf("find the mount of %s: %w", path, err)
	}
	_, after, _ := bytes.Cut(data, []byte("mnt_id:"))
	id, _, _ := bytes.Cut(bytes.TrimSpace(after), []byte("\n"))
	n, err := strconv.ParseUint(string(id), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("find the mount of %s: %w", path, err)
	}
	return n, nil
}
