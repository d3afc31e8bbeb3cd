package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/guard/quarantine"
)

// Mounts lists the mounts of this process.
func Mounts() ([]Mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return ParseMounts(string(data))
}

// withOtherNames adds every other path under which a mount shows the directories, or parts of
// them: a bind mount, a second mount of the device, a mount beneath one of them that is also
// mounted elsewhere. It omits paths that contain keep.
func withOtherNames(dirs []string, keep string) ([]string, error) {
	dirs = Existing(dirs)
	if len(dirs) == 0 {
		return nil, nil
	}
	all, err := Mounts()
	if err != nil {
		return nil, err
	}
	var trees []Mount // device and root of the hidden directories
	for _, dir := range dirs {
		id, err := mountOf(dir)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if m.id == id && quarantine.Within(dir, m.Place) {
				rel, _ := filepath.Rel(m.Place, dir)
				trees = append(trees, Mount{device: m.device, Root: filepath.Join(m.Root, rel)})
			}
			if m.Place != dir && quarantine.Within(m.Place, dir) {
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
			case quarantine.Within(m.Root, t.Root):
				name = m.Place
			case quarantine.Within(t.Root, m.Root):
				rel, _ := filepath.Rel(m.Root, t.Root)
				name = filepath.Join(m.Place, rel)
			}
			// Another mount may cover this one; then the name leads elsewhere.
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

func mountOf(path string) (uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil {
		return 0, fmt.Errorf("find the mount of %s: %w", path, err)
	}
	if st.Mask&unix.STATX_MNT_ID == 0 { // before 5.8; mount_setattr needs 5.12, Landlock 5.13
		return 0, fmt.Errorf("find the mount of %s: this kernel does not report it", path)
	}
	return st.Mnt_id, nil
}
