//go:build unix

package install

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"anamnesis/orchestrator/guard/confine"
	"anamnesis/orchestrator/guard/quarantine"
	"anamnesis/orchestrator/session"
)

// kindAt returns the file system that a path is on; of two mounts at one place the later
// one hides the other.
func kindAt(mounts []confine.Mount, path string) (kind string) {
	longest := -1
	for _, m := range mounts {
		if quarantine.Within(path, m.Place) && len(m.Place) >= longest {
			longest, kind = len(m.Place), m.Kind
		}
	}
	return kind
}

// shared are file systems of a network, of Windows under WSL and of a container's host.
var shared = strings.Fields("nfs nfs4 cifs smb3 smbfs afs ceph glusterfs lustre gpfs beegfs davfs fuse.sshfs " +
	"fuse.rclone fuse.s3fs fuse.glusterfs 9p drvfs virtiofs fuse.grpcfuse fuse.osxfs fakeowner")

// Machine is what is known of the machine that this program runs on.
type Machine struct {
	Mounts    string // the text of /proc/self/mountinfo; empty where there is none
	Container bool   // /.dockerenv or /run/.containerenv exists
	Getenv    func(string) string
}

// Concerns says, a line each, what the folder of this program's state and a project's
// directory rest on that recording does not work well on.
func (m *Machine) Concerns(state, project string) (lines []string) {
	mounts, _ := confine.ParseMounts(m.Mounts) // of another form: nothing is said of it
	for _, d := range []struct{ what, path, remedy string }{
		{"the state folder", state, "name one on a local disk with ANAMNESIS_HOME, and run 'anamnesis install' again"},
		{"this directory", project, "each save reads the directory; a copy on a local disk is faster"},
	} {
		if kind := kindAt(mounts, d.path); slices.Contains(shared, kind) {
			lines = append(lines, fmt.Sprintf("%s %s is on a network mount or a folder of the host (%s), "+
				"where locks may fail and reading is slow: %s", d.what, d.path, kind, d.remedy))
		}
	}
	if m.inContainer() && slices.Contains([]string{"overlay", "aufs", "fuse.fuse-overlayfs", "vfs",
		"btrfs"}, kindAt(mounts, state)) {
		lines = append(lines, fmt.Sprintf("this is a container, and the state folder %s goes with it: mount a volume "+
			"there, or name one with ANAMNESIS_HOME", state))
	}
	return lines
}

// Surroundings is Concerns of this machine, for this program's state and a project's directory.
func (p *Places) Surroundings(project string) (lines []string) {
	table, _ := os.ReadFile("/proc/self/mountinfo") // it does not exist on macOS
	real := func(path string) string {
		if at, err := session.RealDir(path); err == nil {
			return at
		}
		return path
	}
	m := Machine{Mounts: string(table), Getenv: p.Getenv,
		Container: exists("/.dockerenv") || exists("/run/.containerenv")}
	return append(lines, m.Concerns(real(p.State), real(project))...)
}

func (m *Machine) inContainer() bool {
	return m.Container || slices.ContainsFunc([]string{"REMOTE_CONTAINERS", "CODESPACES", "DEVCONTAINER",
		"GITPOD_WORKSPACE_ID"}, func(name string) bool { return m.Getenv(name) != "" })
}
