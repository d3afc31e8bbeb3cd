//go:build unix

package install

import (
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/sessions"
)

// Mount tables, as these systems have them.
const (
	plainMounts = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n23 22 0:21 / /proc rw - proc proc rw\n"
	wslMounts   = "60 1 8:48 / / rw,relatime - ext4 /dev/sdd rw\n80 60 0:51 / /mnt/c rw,noatime - 9p C:\\134 rw,aname=drvfs;path=C:\\134\n"
	nfsMounts   = plainMounts +
		"90 22 0:44 / /home rw - nfs4 server:/home rw\n91 90 8:2 / /home/u/local\\040disk rw - ext4 /dev/sdb rw\n"
	dockerTable = "700 600 0:99 / / rw - overlay overlay rw,lowerdir=/a\n701 700 0:50 / /workspaces rw - virtiofs mount0 rw\n702 700 8:1 /v /state rw - ext4 /dev/vda1 rw\n"
)

func TestConcerns(t *testing.T) {
	for _, tt := range []struct {
		name           string
		machine        Machine
		state, project string
		want           []string // a text of each line
	}{
		{"a local disk", Machine{Mounts: plainMounts}, "/home/u/.anamnesis", "/home/u/p", nil},
		{"no table", Machine{}, "/home/u/.anamnesis", "/home/u/p", nil},
		{"a broken table", Machine{Mounts: "x\n1 2 3 - \n"}, "/s", "/p", nil},
		{"WSL, on its own disk", Machine{Mounts: wslMounts}, "/home/u/.anamnesis", "/home/u/p", nil},
		{"WSL, a home of Windows", Machine{Mounts: wslMounts}, "/mnt/c/Users/u/.anamnesis", "/mnt/c/p",
			[]string{
				"state folder /mnt/c/Users/u/.anamnesis is on a network mount or a folder of the host (9p)",
				"this directory /mnt/c/p is on a network mount or a folder of the host (9p)",
			}},
		{"a name like the mount's", Machine{Mounts: wslMounts}, "/mnt/cc", "/mnt/c2/p", nil},
		{"a home on NFS", Machine{Mounts: nfsMounts}, "/home/u/.anamnesis", "/srv/p", []string{"state folder /home/u/.anamnesis is on a network mount or a folder of the host (nfs4)"}},
		{"a disk within it", Machine{Mounts: nfsMounts}, "/home/u/local disk/state", "/srv/p", nil},
		{"sshfs", Machine{Mounts: plainMounts + "9 22 0:7 / /p rw - fuse.sshfs h: rw\n"}, "/s", "/p/x", []string{"this directory /p/x is on a network mount or a folder of the host (fuse.sshfs)"}},
		{"a devcontainer", Machine{Mounts: dockerTable, Getenv: of("REMOTE_CONTAINERS")}, "/root/.anamnesis", "/workspaces/p",
			[]string{
				"this directory /workspaces/p is on a network mount or a folder of the host (virtiofs)",
				"a container, and the state folder /root/.anamnesis goes with it",
			}},
		{"a volume for the state", Machine{Mounts: dockerTable, Container: true}, "/state", "/p", nil},
		{"a container without a variable", Machine{Mounts: dockerTable, Container: true}, "/root/s", "/p", []string{"goes with it"}},
		{"an overlay that is no container", Machine{Mounts: dockerTable}, "/root/s", "/p", nil},
	} {
		if tt.machine.Getenv == nil {
			tt.machine.Getenv = of("")
		}
		lines := tt.machine.Concerns(tt.state, tt.project)
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %q", tt.name, lines)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: %q does not say %q", tt.name, lines[i], want)
			}
		}
	}
}

// of is an environment in which one variable is set.
func of(set string) func(string) string {
	return func(name string) string {
		if name == set {
			return "1"
		}
		return ""
	}
}

// TestForbidden: each policy and setting that turns hooks off is named with its file.
func TestForbidden(t *testing.T) {
	for _, tt := range []struct {
		agent      sessions.Agent
		file, text string
		want       string
	}{
		{sessions.Claude, "etc/claude-code/managed-settings.json", `{"allowManagedHooksOnly": true}`, "managed hooks only"},
		{sessions.Claude, "etc/claude-code/managed-settings.json", `{"allowManagedHooksOnly": false}`, ""},
		{sessions.Claude, "etc/claude-code/managed-settings.d/10-x.json", `{"allowManagedHooksOnly" : true}`, "10-x.json"},
		{sessions.Claude, "etc/claude-code/managed-settings.json", `{"disableAllHooks": true}`, "turns hooks off"},
		{sessions.Codex, "etc/codex/requirements.toml", "allow_managed_hooks_only = true\n", "managed hooks only"},
		{sessions.Codex, "etc/codex/requirements.toml", "# allow_managed_hooks_only = true\n", ""},
		{sessions.Codex, "home/.codex/config.toml", "[features]\nhooks = false\n", "turns hooks off"},
		{sessions.Codex, "home/.codex/config.toml", "[features]\nhooks = true\n", ""},
		{sessions.Gemini, "etc/claude-code/managed-settings.json", `{"allowManagedHooksOnly": true}`, ""},
	} {
		root := t.TempDir()
		put(t, filepath.Join(root, tt.file), tt.text)
		p := &Places{Home: filepath.Join(root, "home"), Root: root, Getenv: of("")}
		if line := p.forbidden(tt.agent); (line == "") != (tt.want == "") || !strings.Contains(line, tt.want) {
			t.Errorf("%s, %s %q: %q, want %q", tt.agent, tt.file, tt.text, line, tt.want)
		}
	}
}
