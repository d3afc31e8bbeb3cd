package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"anamnesis/cmd/internal/exit"
)

// homeArgs are the arguments with which a verb comes as far as the folder for its
// state. A verb that needs none is not listed.
func homeArgs() map[string][]string {
	return map[string][]string{
		"acp proxy":     {"true"},
		"agent approve": {"helper"}, "agent show": {"default"},
		"diff":      {"t", "1", "2"},
		"eas show":  {"gpt-4o"},
		"eas probe": {"--model", "script:words.yaml"}, "eas reflect": {"--model", "script:words.yaml"},
		"install": {"claude-code", "--yes"}, "uninstall": {"claude-code", "--yes"},
		"answer": {"t"}, "apply": {"t"}, "blame": {"a.go"}, "mcp login": {"x"}, "mcp logout": {"x"}, "search": {"gate"}, "explain": {"t"}, "jump": {"t", "1"}, "say": {"t", "Go on."}, "show": {"t"}, "timeline": {"t"}, "verdict": {"t", "good"},
		"kb add": {"card.md"}, "kb edit": {"k"}, "kb export": {"--agents-md"}, "kb history": {"k"},
		"kb retire": {"k"}, "kb approve": {"k"}, "kb reject": {"k"}, "kb restore": {"k"}, "kb search": {"x"}, "kb show": {"k"}, "kb supersede": {"k", "l"},
		"mcp add": {"s", "--", "true"}, "mcp remove": {"s"}, "mcp revoke": {"s"},
		"remote pull": {"t", "--remote", "bucket"}, "remote rm": {"t", "--remote", "bucket"},
		"resume": {"t"}, "rules revoke": {"x"}, "run": {"--dir", "w", "--model", "script:words.yaml", "Go."},
		"world diff": {"--task", "t", "1", "2"}, "world fork": {"--task", "t", "1", "out"}, "world plan": {"--task", "t", "1"},
		"world restore": {"--task", "t", "1"}, "world show": {"--task", "t", "1"}, "world abandon": {"--task", "t"},
		"world gc": {"--task", "t"}, "world log": {"--task", "t"}, "world save": {"--task", "t"}, "world verify": {"--task", "t"},
	}
}

// homeless are the verbs that keep nothing in the home and read nothing from it, and
// hook and the recorder it starts, which say nothing to the agent that calls them.
var homeless = regexp.MustCompile(`^(demo|completion.*|help|version|hook|recorder|ops .*)$`)

// optional are the verbs that do without a home where none is named.
var optional = regexp.MustCompile(`^eas (list|show)$`)

// verbs lists the verbs that do something themselves, with their names.
func verbs(c *cobra.Command, above string) map[string]*cobra.Command {
	all := make(map[string]*cobra.Command)
	for _, sub := range c.Commands() {
		name := strings.TrimSpace(above + " " + sub.Name())
		maps.Copy(all, verbs(sub, name))
		if sub.Runnable() && (!sub.HasSubCommands() || name == "rules") {
			all[name] = sub
		}
	}
	return all
}

// homeFolder is a directory to run the verbs in.
func homeFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"file": "", "w/README": "", "words.yaml": "turns:\n  - reply: Done.\n",
		"card.md": "---\ntype: knowledge_card\ntopic: one\nsource_task: t\n---\n- **Issue**: one\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

// inHome runs a command line with these variables alone.
func inHome(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, told bytes.Buffer
	a := &app{
		stdin: strings.NewReader(""), stdout: &out, stderr: &told,
		getenv: func(name string) string { return env[name] },
	}
	root := a.rootCommand()
	root.SetArgs(args)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code = a.exit(root.ExecuteContext(ctx))
	return code, out.String(), told.String()
}

// eachVerb calls do for every verb that reads the home.
func eachVerb(t *testing.T, do func(t *testing.T, name string, args []string)) {
	args, all := homeArgs(), verbs(newApp().rootCommand(), "")
	for name, c := range all {
		switch {
		case homeless.MatchString(name):
		case args[name] == nil && c.Args != nil && c.Args(c, nil) != nil:
			t.Errorf("%s needs arguments: add some to homeArgs, with which it comes as far as the home, or name it in homeless", name)
		default:
			do(t, name, append(strings.Fields(name), args[name]...))
		}
	}
	for name := range args {
		if all[name] == nil {
			t.Errorf("%s is no verb any more: remove it from homeArgs", name)
		}
	}
}

// refusedHome runs every verb with a home that cannot be one: a line that says
// which folder, what is wrong with it and what to do, nothing else.
func refusedHome(t *testing.T, env map[string]string, want string) {
	t.Helper()
	line := regexp.MustCompile(`^anamnesis: [^\n]*` + want + `[^\n]*; set ANAMNESIS_HOME to a folder that you may read and write\n$`)
	eachVerb(t, func(t *testing.T, name string, args []string) {
		if code, stdout, stderr := inHome(t, env, args...); code != refusal(name) || stdout != "" ||
			!line.MatchString(stderr) {
			t.Errorf("%q: exit %d, stdout %q, stderr\n%s", args, code, stdout, stderr)
		}
	})
}

// refusal is a verb's exit code in a home that cannot be one. The proxy runs the agent all the same.
func refusal(verb string) int {
	if verb == "acp proxy" {
		return 0
	}
	return exit.Usage
}

// TestImpossibleHome: every verb tells in the same way of a folder for its state
// that cannot be one.
func TestImpossibleHome(t *testing.T) {
	dir := homeFolder(t)
	file := filepath.Join(dir, "file")
	t.Run("a file", func(t *testing.T) {
		refusedHome(t, map[string]string{"ANAMNESIS_HOME": file, "HOME": dir},
			"the program's folder "+file+": "+file+" is not a folder")
	})
	t.Run("below a file", func(t *testing.T) {
		refusedHome(t, map[string]string{"ANAMNESIS_HOME": file + "/a/b", "HOME": dir},
			"the program's folder "+file+"/a/b: "+file+" is not a folder")
	})
	t.Run("a link to nothing", func(t *testing.T) {
		if err := os.Symlink("nothing/here", "link"); err != nil {
			t.Fatal(err)
		}
		refusedHome(t, map[string]string{"ANAMNESIS_HOME": dir + "/link", "HOME": dir},
			"the program's folder "+dir+"/link: "+dir+"/link is a dangling link")
	})
	t.Run("a link to itself", func(t *testing.T) {
		if err := os.Symlink("round", "round"); err != nil {
			t.Fatal(err)
		}
		refusedHome(t, map[string]string{"ANAMNESIS_HOME": dir + "/round", "HOME": dir},
			"the program's folder "+dir+"/round: too many levels of symbolic links")
	})
	t.Run("not text", func(t *testing.T) {
		refusedHome(t, map[string]string{"ANAMNESIS_HOME": dir + "/h\xff", "HOME": dir},
			"the program's folder "+dir+"/h.{1,3}: its path is not UTF-8 text")
	})
	t.Run("HOME is a file", func(t *testing.T) {
		refusedHome(t, map[string]string{"HOME": file},
			"the program's folder "+file+"/[a-z./]*/anamnesis: "+file+" is not a folder")
	})
	t.Run("a folder in it is a file", func(t *testing.T) {
		home := filepath.Join(dir, "tasksfile")
		if err := errors.Join(os.Mkdir(home, 0o700), os.WriteFile(filepath.Join(home, "tasks"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := inHome(t, map[string]string{"ANAMNESIS_HOME": home, "HOME": dir}, "tasks")
		if code != exit.Usage || stdout != "" ||
			!strings.HasSuffix(stderr, "; set ANAMNESIS_HOME to a folder that you may read and write\n") ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("tasks: exit %d, stdout %q, stderr\n%s", code, stdout, stderr)
		}
	})
	t.Run("none", func(t *testing.T) {
		line := regexp.MustCompile(`^anamnesis: [^\n]*neither ANAMNESIS_HOME nor HOME is set: set one[^\n]*\n$`)
		eachVerb(t, func(t *testing.T, name string, args []string) {
			code, stdout, stderr := inHome(t, nil, args...)
			if optional.MatchString(name) && code == exit.Done && stderr == "" {
				return
			}
			if code != refusal(name) || stdout != "" || !line.MatchString(stderr) {
				t.Errorf("%q: exit %d, stdout %q, stderr\n%s", args, code, stdout, stderr)
			}
		})
	})
}

// TestForbiddenHome is TestImpossibleHome for a folder whose permissions forbid
// its use, as an ordinary user.
func TestForbiddenHome(t *testing.T) {
	if os.Geteuid() == 0 {
		const nobody = 65534
		again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
		return
	}
	dir := homeFolder(t)
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	refusedHome(t, map[string]string{"ANAMNESIS_HOME": closed, "HOME": dir},
		"the program's folder "+closed+": "+closed+": no permission")
	refusedHome(t, map[string]string{"ANAMNESIS_HOME": closed + "/below", "HOME": dir},
		"the program's folder "+closed+"/below: [^;]*no permission")
	if err := os.Chmod(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	refusedHome(t, map[string]string{"ANAMNESIS_HOME": closed + "/below", "HOME": dir},
		"the program's folder "+closed+"/below: "+closed+": no permission")
	plainlyRefused(t, map[string]string{"ANAMNESIS_HOME": closed, "HOME": dir})

	env := map[string]string{"ANAMNESIS_HOME": filepath.Join(dir, "home"), "HOME": dir, "PATH": os.Getenv("PATH")}
	if code, _, stderr := inHome(t, env, "run", "--model", "script:words.yaml", "--dir", "w", "--task", "one", "--approval", "auto", "Go."); code != exit.Done {
		t.Fatalf("run: exit %d\n%s", code, stderr)
	}
	for folder, args := range map[string][]string{"tasks": {"show", "one"}, "worlds": {"doctor", "one"}} {
		path := filepath.Join(env["ANAMNESIS_HOME"], folder)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := inHome(t, env, args...)
		if line := regexp.MustCompile(`^anamnesis: .* one: stat ` + path + `/.*: permission denied; set ANAMNESIS_HOME to a folder that you may read and write\n$`); code != exit.Usage || !line.MatchString(stderr) {
			t.Errorf("%q without access to %s: exit %d\n%s", args, folder, code, stderr)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// Where the holds cannot be listed, no second task begins in a directory.
	live := filepath.Join(env["ANAMNESIS_HOME"], "live")
	if err := os.Chmod(live, 0o300); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(live, 0o700)
	code, _, stderr := inHome(t, env, "run", "--model", "script:words.yaml", "--dir", "w", "--task", "two", "--approval", "auto", "Go.")
	if line := live + ": permission denied; set ANAMNESIS_HOME to a folder that you may read and write\n"; code != exit.Usage || !strings.HasSuffix(stderr, line) {
		t.Errorf("run without a list of the holds: exit %d\n%s", code, stderr)
	}
}

// plainlyRefused runs every verb with a home that may be read only: what writes is
// refused like an impossible home, and no line is a bare error of the system.
func plainlyRefused(t *testing.T, env map[string]string) {
	t.Helper()
	bare := regexp.MustCompile(`permission denied|read-only file system|no permission|not permitted`)
	eachVerb(t, func(t *testing.T, name string, args []string) {
		if name == "serve" {
			return // it reads, and does not end
		}
		code, _, stderr := inHome(t, env, args...)
		for line := range strings.Lines(stderr) {
			if bare.MatchString(line) &&
				(code != exit.Usage ||
					!strings.HasSuffix(line, "; set ANAMNESIS_HOME to a folder that you may read and write\n")) {
				t.Errorf("%q: exit %d, stderr\n%s", args, code, stderr)
			}
		}
	})
}

// TestReadOnlyHome is TestImpossibleHome on a file system that is mounted
// read-only.
func TestReadOnlyHome(t *testing.T) {
	const mark = "ANAMNESIS_TEST_READONLY_HOME"
	if os.Getenv(mark) == "" {
		if exec.Command("unshare", "--user", "--map-root-user", "--mount", "true").Run() != nil {
			if os.Getenv("ANAMNESIS_CI") != "" {
				t.Fatal("NOT RUN: user namespaces are missing")
			}
			t.Skip("NOT RUN: user namespaces are missing")
		}
		t.Setenv(mark, "1")
		again(t, &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		})
		return
	}
	dir := homeFolder(t)
	disk := filepath.Join(dir, "disk")
	if err := errors.Join(os.Mkdir(disk, 0o700), unix.Mount("tmpfs", disk, "tmpfs", 0, ""), os.Mkdir(disk+"/home", 0o700),
		unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	refusedHome(t, map[string]string{"ANAMNESIS_HOME": disk + "/none", "HOME": dir},
		"the program's folder "+disk+"/none: "+disk+": the file system is read-only")
	env := map[string]string{"ANAMNESIS_HOME": disk + "/home", "HOME": dir}
	plainlyRefused(t, env)
	if code, _, stderr := inHome(t, env, "doctor"); code != exit.Usage ||
		!strings.Contains(stderr, "write to "+disk+"/home: read-only file system; set ANAMNESIS_HOME") {
		t.Errorf("doctor: exit %d\n%s", code, stderr)
	}
}

// again runs the calling test in a process with these attributes, from a copy of the
// program that another user may read.
func again(t *testing.T, attr *syscall.SysProcAttr) {
	t.Helper()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "anamnesis.test")
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.WriteFile(path, program, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.SysProcAttr = os.TempDir(), attr
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestReadingReadOnlyHome: what only reads works in a home that cannot be written, and a home that cannot be made is
// refused instead of being empty.
func TestReadingReadOnlyHome(t *testing.T) {
	refusedHome(t, map[string]string{"ANAMNESIS_HOME": "/proc/nope/x", "HOME": t.TempDir()},
		"the program's folder /proc/nope/x: ")
	if os.Geteuid() == 0 {
		const nobody = 65534
		again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
		return
	}
	dir := homeFolder(t)
	home := filepath.Join(dir, "home")
	env := map[string]string{"ANAMNESIS_HOME": home, "HOME": dir, "PATH": os.Getenv("PATH")}
	card := filepath.Join(dir, "card.md")
	if err := os.WriteFile(card, []byte("---\ntype: knowledge_card\ntopic: gate\nsource_task: t\nid: g1\n---\n- **Issue**: the gate is shut\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"kb", "add", card}, {"kb", "approve", "g1"}, {"run", "--model", "script:words.yaml", "--dir", "w", "--task", "one", "--approval", "auto", "Go."}} {
		if code, _, stderr := inHome(t, env, args...); code != exit.Done {
			t.Fatalf("%q: exit %d\n%s", args, code, stderr)
		}
	}
	chmod := func(dirs, files os.FileMode) {
		err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.Type()&os.ModeSymlink != 0 {
				return err
			}
			if d.IsDir() {
				return os.Chmod(path, dirs)
			}
			return os.Chmod(path, files)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	chmod(0o500, 0o400)
	t.Cleanup(func() { chmod(0o700, 0o600) })
	for _, args := range [][]string{{"tasks"}, {"timeline", "one"}, {"kb", "list"}, {"kb", "search", "the gate is shut"}, {"kb", "show", "g1"}, {"kb", "stats"}, {"doctor", "one"}} {
		if code, stdout, stderr := inHome(t, env, args...); code != exit.Done || stdout == "" {
			t.Errorf("%q: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
	if code, _, stderr := inHome(t, env, "kb", "retire", "g1"); code == exit.Done ||
		!strings.Contains(stderr, "permission denied") {
		t.Errorf("a change: exit %d\n%s", code, stderr)
	}
}
