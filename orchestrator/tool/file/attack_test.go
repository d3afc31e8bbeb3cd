package file_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

const secret = "the secret outside"

// world is a directory with a world in it and things beside it that no tool
// may reach.
func world(t testing.TB) (*tool.Env, string) {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "ws")
	for name, text := range map[string]string{
		"outside.txt": secret, "ws-secrets/key": secret,
		"ws/in.txt": "inside\n", "ws/sub/deep.txt": "deep\n", "ws/.git/config": "[core]\n", "ws/.anamnesis/state": "s\n",
		"ws/nested/.git/config": "[core]\n", "ws/.env": "KEY=1\n", "ws/knowledge_base/card.md": "own\n",
	} {
		p := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"out-file": "../outside.txt", "out-dir": "..", "abs-out": filepath.Join(top, "outside.txt"),
		"in-link": "in.txt", "abs-in": filepath.Join(dir, "in.txt"), "loop": "loop", "ping": "pong", "pong": "ping",
		"git": ".git", "git-config": ".git/config", "new-out": "../new.txt", "through": "sub/../../outside.txt",
		"env-link": ".env", "dangling": "not/yet.txt", "root": "/", "null-link": "/dev/null",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{"hard-out": "../ws-secrets/key", "sub/hard-in": "in.txt"} {
		if err := os.Link(filepath.Join(dir, of), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &tool.Env{Call: "c", Root: root, Dir: dir}, top
}

func TestPathAttacks(t *testing.T) {
	env, top := world(t)
	socket, err := net.Listen("unix", filepath.Join(env.Dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	const both, writes, reads = "both", "writes", "reads"
	tests := []struct{ name, path, who, want string }{
		{"parent", "../outside.txt", both, "out of the world"},
		{"parent inside", "sub/../../outside.txt", both, "out of the world"},
		{"many parents", strings.Repeat("../", 50) + "etc/passwd", both, "out of the world"},
		{"absolute", "/etc/passwd", both, "outside the world"},
		{"absolute beside", filepath.Join(top, "outside.txt"), both, "outside the world"},
		{"sibling prefix", filepath.Join(top, "ws-secrets/key"), both, "outside the world"},
		{"absolute with parent", env.Dir + "/../outside.txt", both, "outside the world"},
		{"sibling by parent", "../ws-secrets/key", both, "out of the world"},
		{"empty", "", both, "empty"},
		{"NUL", "in.txt\x00.png", both, "NUL"},
		{"the world itself", ".", both, "directory"},
		{"a directory", "sub", both, "directory"},
		{"a directory by slash", "new/", both, "directory"},
		{"below a file", "in.txt/x", both, "not a directory"},
		{"link out", "out-file", both, "out of the world"},
		{"absolute link out", "abs-out", both, "out of the world"},
		{"through a link out", "out-dir/outside.txt", both, "out of the world"},
		{"link that climbs inside", "through", both, "out of the world"},
		{"link to the root", "root/etc/passwd", both, "out of the world"},
		{"link to a device", "null-link", both, "out of the world"},
		{"link to a new file outside", "new-out", both, "out of the world"},
		{"loop", "loop", both, "too many symbolic links"},
		{"loop of two", "ping", both, "too many symbolic links"},
		{"hard link out", "hard-out", both, "another name (hard link)"},
		{"fifo", "fifo", both, "named pipe"},
		{"socket", "sock", both, "socket"},
		{"long name", strings.Repeat("x", 300), both, "name too long"},
		{"many directories", strings.Repeat("d/", 2000) + "f", both, "nested too deeply"},
		{"many bytes", strings.Repeat(strings.Repeat("d", 250)+"/", 140) + "f", both, "nested too deeply"},
		{"git", ".git/config", writes, ".git"},
		{"git, new file", ".git/hooks/pre-commit", writes, ".git"},
		{"git in capitals", ".GIT/config", writes, ".git"},
		{"nested git", "nested/.git/config", writes, ".git"},
		{"git file of a worktree", "sub/.git", writes, ".git"},
		{"git by link", "git/config", writes, ".git"},
		{"git file by link", "git-config", writes, ".git"},
		{"git by detour", "sub/../.git/config", writes, ".git"},
		{"own state", ".anamnesis/state", writes, ".anamnesis"},
		{"own knowledge base", ".anamnesis/knowledge_base/2026-01/x.md", writes, ".anamnesis"},
		{"secrets", ".env", reads, "allow-secrets"},
		{"secrets by link", "env-link", reads, "allow-secrets"},
		{"missing", "no.txt", reads, "does not exist"},
		{"missing directory", "no/such.txt", reads, "does not exist"},
		{"dangling link", "dangling", reads, "does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, env, tt.path, tt.want, tt.who != reads, tt.who != writes) })
	}
	outsideUnharmed(t, top)
}

// refused checks that the tools that write, that read, or both refuse a path with
// an error that contains want.
func refused(t *testing.T, env *tool.Env, path, want string, writes, reads bool) {
	t.Helper()
	results := map[string]tool.Result{}
	if writes {
		write := file.WriteFile()
		results["WriteFile"] = call(t, env, write, map[string]any{"path": path, "content": "evil"})
		results["append"] = call(t, env, write, map[string]any{"path": path, "content": "evil", "mode": "append"})
		results["StrReplaceFile"] = call(t, env, file.StrReplaceFile(),
			map[string]any{"path": path, "old": "e", "new": "evil"})
	}
	if reads {
		results["ReadFile"] = call(t, env, file.ReadFile(nil), map[string]any{"path": path})
	}
	for who, r := range results {
		missing := who == "StrReplaceFile" && strings.Contains(r.Text, "does not exist")
		if !r.IsError || !strings.Contains(r.Text, want) && !missing || strings.Contains(r.Text, secret) {
			t.Errorf("%s %q: %+v, want an error with %q", who, path, r, want)
		}
		if len(r.Reads)+len(r.Writes) > 0 {
			t.Errorf("%s %q claims reads %v, writes %v", who, path, r.Reads, r.Writes)
		}
	}
}

// outsideUnharmed checks that nothing beside the world has changed.
func outsideUnharmed(t *testing.T, top string) {
	t.Helper()
	for _, name := range []string{"outside.txt", "ws-secrets/key"} {
		if data, err := os.ReadFile(filepath.Join(top, name)); err != nil || string(data) != secret {
			t.Errorf("%s is now %q, %v", name, data, err)
		}
	}
	entries, err := os.ReadDir(top)
	if err != nil || len(entries) != 3 {
		t.Errorf("beside the world: %v, %v; want outside.txt, ws, ws-secrets", entries, err)
	}
	for name, want := range map[string]string{".git/config": "[core]\n", "nested/.git/config": "[core]\n", ".anamnesis/state": "s\n"} {
		if data, err := os.ReadFile(filepath.Join(top, "ws", name)); err != nil || string(data) != want {
			t.Errorf("%s is now %q, %v", name, data, err)
		}
	}
	noTemps(t, top)
}

// The text of a path alone is refused where it leads out; what looks at the files
// comes after and is held by TestPathAttacks.
func TestRelRefuses(t *testing.T) {
	env, _ := world(t)
	for _, path := range []string{"..", "../outside.txt", "sub/../../outside.txt", env.Dir + "-secrets/key", env.Dir + "/../ws-secrets/key", "/"} {
		var refused *tool.PathError
		if rel, err := env.Rel(path); !errors.As(err, &refused) {
			t.Errorf("Rel(%q) = %q, %v", path, rel, err)
		}
	}
}

func TestPathsUnderstood(t *testing.T) {
	env, top := world(t)
	alias := filepath.Join(top, "ws", "..", "ws")
	for path, rel := range map[string]string{
		"in.txt": "in.txt", "./in.txt": "in.txt", "sub/../in.txt": "in.txt", "sub//deep.txt": "sub/deep.txt",
		filepath.Join(env.Dir, "in.txt"): "in.txt", alias + "/in.txt": "in.txt",
		"sub/hard-in": "sub/hard-in", "in-link": "in.txt", "abs-in": "in.txt", "knowledge_base/card.md": "knowledge_base/card.md",
	} {
		r := call(t, env, file.ReadFile(nil), map[string]any{"path": path})
		if r.IsError || len(r.Reads) != 1 || r.Reads[0] != rel {
			t.Errorf("ReadFile %q: %+v, want it to read %s", path, r, rel)
		}
		r = call(t, env, file.WriteFile(), map[string]any{"path": path, "content": "x\n", "mode": "append"})
		if r.IsError || len(r.Writes) != 1 || r.Writes[0] != rel {
			t.Errorf("WriteFile %q: %+v, want it to write %s", path, r, rel)
		}
	}
	r := call(t, env, file.WriteFile(), map[string]any{"path": "dangling", "content": "made\n"})
	if data, err := os.ReadFile(filepath.Join(env.Dir, "not/yet.txt")); err != nil || string(data) != "made\n" {
		t.Errorf("writing through a dangling link: %q, %v; %s", data, err, r.Text)
	}
	if info, err := os.Lstat(filepath.Join(env.Dir, "in-link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	r = call(t, env, file.ReadFile([]string{"**/.env"}), map[string]any{"path": ".env"})
	if r.IsError || !strings.Contains(r.Text, "KEY=1") {
		t.Errorf("an allowed secrets file: %+v", r)
	}
}
