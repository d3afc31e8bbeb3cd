//go:build unix

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"anamnesis/worldstate"
)

var worldDir = flag.String("dir", "../../worldstate", "the directory that World copies; only read")

// build builds the program.
func build(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "anamnesis")
	if _, err := output(exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/anamnesis")); err != nil {
		b.Fatal(err)
	}
	return program
}

// subject saves and restores the one tree into a store of its own.
type subject struct {
	name    string
	forget  func() error                   // makes the next save a first save
	save    func() (state string, _ error) // returns what restore goes back to
	restore func(state string) error
	sync    func() error // nil: a restore is durable, or never, when it returns

	wall, processor, durable []time.Duration
}

// ours is package worldstate in process, its store open all the time, as in a running task.
func ours(ctx context.Context, top, tree string) *subject {
	var w *worldstate.World
	var last worldstate.ID
	store := filepath.Join(top, "scan")
	forget := func() (err error) {
		if w != nil {
			w.Close()
		}
		if err := os.RemoveAll(store); err != nil {
			return err
		}
		last = ""
		w, err = worldstate.Open(tree, store, nil)
		return err
	}
	return &subject{name: "scan", forget: forget, save: func() (string, error) {
		snap, err := w.Save(ctx, worldstate.SaveOptions{Message: "bench", Parent: last})
		last = snap.ID
		return string(snap.ID), err
	}, restore: func(state string) error {
		last = worldstate.ID(state)
		options := worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{OverwriteEdits: true}}
		_, err := w.RestoreTo(ctx, last, options)
		return err
	}, sync: func() error { return w.Sync() }}
}

// program is this program's binary, one process a command.
func program(ctx context.Context, binary, top, tree string) *subject {
	store := filepath.Join(top, "cli")
	run := func(args ...string) (snap worldstate.Snapshot, err error) {
		args = append(append([]string{"world"}, args...), "--dir", tree, "--store", store, "--json")
		out, err := output(exec.CommandContext(ctx, binary, args...))
		if err == nil {
			err = json.Unmarshal(out, &snap)
		}
		return snap, err
	}
	return &subject{name: "cli", forget: func() error { return os.RemoveAll(store) }, save: func() (string, error) {
		snap, err := run("save")
		return string(snap.ID), err
	}, restore: func(state string) error {
		_, err := run("restore", state, "--overwrite")
		return err
	}}
}

// shadow is a git repository outside the tree that it saves: what every agent that rewinds files with git does. Each
// command is a process, as there. With reset it restores by 'git reset --hard', which needs a commit, instead of by
// 'git read-tree'.
func shadow(ctx context.Context, name, top, tree string, reset bool) *subject {
	repo := filepath.Join(top, name)
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + repo, "--work-tree=" + tree}, args...)...)
		cmd.Dir = tree
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@b", "GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@b")
		out, err := output(cmd)
		return strings.TrimSpace(string(out)), err
	}
	return &subject{name: name, forget: func() error {
		if err := os.RemoveAll(repo); err != nil {
			return err
		}
		_, err := git("init", "-q")
		return err
	}, save: func() (string, error) {
		if _, err := git("add", "-A"); err != nil {
			return "", err
		}
		id, err := git("write-tree")
		if err == nil && reset {
			id, err = git("commit-tree", "-m", "bench", id)
		}
		return id, err
	}, restore: func(state string) error {
		var err error
		if reset {
			_, err = git("reset", "-q", "--hard", state)
		} else {
			_, err = git("read-tree", "--reset", "-u", state)
		}
		return err
	}}
}

func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, &stderr)
	}
	return out, nil
}

// BenchmarkWorld saves and restores a copy of a directory with each subject in turn, in the same run, so that a busy
// machine is busy for all of them. It reports medians in milliseconds, and the time of the better git over ours.
func BenchmarkWorld(b *testing.B) {
	top := b.TempDir()
	tree := filepath.Join(top, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		b.Fatal(err)
	}
	const copyTree = `tar -C "$0" --exclude=.git -cf - . | tar -C "$1" -xf -`
	if _, err := output(exec.Command("sh", "-c", copyTree, *worldDir, tree)); err != nil {
		b.Fatal(err)
	}
	binary := build(b)
	subjects := []*subject{
		ours(b.Context(), top, tree), program(b.Context(), binary, top, tree),
		shadow(b.Context(), "git", top, tree, false), shadow(b.Context(), "git-reset", top, tree, true),
	}
	for _, s := range subjects {
		if err := s.forget(); err != nil {
			b.Fatal(err)
		}
	}
	// A change of a file that is ignored would not be saved.
	list := exec.Command("git", "--git-dir="+filepath.Join(top, "git"), "--work-tree=.", "ls-files", "-z", "--others",
		"--exclude-standard")
	list.Dir = tree
	out, err := output(list)
	if err != nil || len(out) == 0 {
		b.Fatalf("the ignore rules of %s leave nothing of it to save (%v)", *worldDir, err)
	}
	files := slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), func(name string) bool {
		info, err := os.Lstat(filepath.Join(tree, name))
		return err != nil || !info.Mode().IsRegular()
	})
	b.Run("first", func(b *testing.B) { benchmarkSave(b, subjects, tree, nil, true) })
	b.Run("unchanged", func(b *testing.B) { benchmarkSave(b, subjects, tree, nil, false) })
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("save=", n), func(b *testing.B) { benchmarkSave(b, subjects, tree, spread(files, n), false) })
	}
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint("restore=", n), func(b *testing.B) { benchmarkRestore(b, subjects, tree, spread(files, n)) })
	}
}

// TestTreeIsGits saves one directory here and with git: the world's id is git's tree id.
func TestTreeIsGits(t *testing.T) {
	top, tree := t.TempDir(), t.TempDir()
	for name, mode := range map[string]os.FileMode{"a": 0o644, "run.sh": 0o755, "empty.txt": 0o644} {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(strings.TrimSuffix(name, "empty.txt")), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a", filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	w, err := worldstate.Open(tree, filepath.Join(top, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	snap, err := w.Save(t.Context(), worldstate.SaveOptions{Message: "test"})
	if err != nil {
		t.Fatal(err)
	}
	git := shadow(t.Context(), "git", top, tree, false)
	if err := git.forget(); err != nil {
		t.Fatal(err)
	}
	if id, err := git.save(); err != nil || id != snap.Tree {
		t.Errorf("git's tree is %s (%v), ours %s", id, err, snap.Tree)
	}
}

// spread returns n of the files, from everywhere in the tree.
func spread(files []string, n int) []string {
	n = min(n, len(files))
	out := make([]string, n)
	for i := range out {
		out[i] = files[i*len(files)/n]
	}
	return out
}

// change appends a line to each file and returns it.
func change(b *testing.B, tree string, files []string) string {
	line := fmt.Sprintf("\nchange %d\n", time.Now().UnixNano())
	for _, name := range files {
		f, err := os.OpenFile(filepath.Join(tree, name), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteString(line); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return line
}

// warm lets each subject save twice, with a rest between, so that stores and caches are warm and the second save finds
// every time stamp old enough to be trusted.
func warm(b *testing.B, subjects []*subject) {
	for range 2 {
		for _, s := range subjects {
			s.wall, s.processor, s.durable = nil, nil, nil
			if _, err := s.save(); err != nil {
				b.Fatalf("%s: %v", s.name, err)
			}
		}
		time.Sleep(250 * time.Millisecond)
	}
}

func benchmarkSave(b *testing.B, subjects []*subject, tree string, files []string, first bool) {
	warm(b, subjects)
	for round := 0; b.Loop(); round++ {
		change(b, tree, files)
		for i := range subjects { // another one is the first each time
			s := subjects[(i+round)%len(subjects)]
			if first {
				if err := s.forget(); err != nil {
					b.Fatal(err)
				}
			}
			s.measure(b, func() error { _, err := s.save(); return err }, nil)
		}
	}
	report(b, subjects)
}

func benchmarkRestore(b *testing.B, subjects []*subject, tree string, files []string) {
	warm(b, subjects)
	for round := 0; b.Loop(); round++ {
		for i := range subjects {
			s := subjects[(i+round)%len(subjects)]
			state, err := s.save()
			if err != nil {
				b.Fatalf("%s: %v", s.name, err)
			}
			line := change(b, tree, files)
			if _, err := s.save(); err != nil {
				b.Fatalf("%s: %v", s.name, err)
			}
			s.measure(b, func() error { return s.restore(state) }, s.sync)
			for _, name := range files {
				if data, err := os.ReadFile(filepath.Join(tree, name)); err != nil ||
					strings.HasSuffix(string(data), line) {
					b.Fatalf("%s left %s changed (%v)", s.name, name, err)
				}
			}
		}
	}
	report(b, subjects)
}

// measure adds one sample. sync, if not nil, waits for what f left under way.
func (s *subject) measure(b *testing.B, f, sync func() error) {
	begin, used := time.Now(), processorTime()
	err := f()
	s.wall = append(s.wall, time.Since(begin))
	if err == nil && sync != nil {
		err = sync()
		s.durable = append(s.durable, time.Since(begin))
	}
	s.processor = append(s.processor, processorTime()-used)
	if err != nil {
		b.Fatalf("%s: %v", s.name, err)
	}
}

// processorTime is what this process and its ended children have used.
func processorTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

func report(b *testing.B, subjects []*subject) {
	b.ReportMetric(0, "ns/op")
	best := 0.0
	for _, s := range subjects {
		wall := quantile(s.wall, 0.5)
		b.ReportMetric(wall, s.name+"-ms")
		b.ReportMetric(quantile(s.processor, 0.5), s.name+"-cpu-ms")
		if len(s.durable) > 0 {
			b.ReportMetric(quantile(s.durable, 0.5), s.name+"-durable-ms")
		}
		if strings.HasPrefix(s.name, "git") && (best == 0 || wall < best) {
			best = wall
		}
	}
	b.ReportMetric(best/quantile(subjects[0].wall, 0.5), "git/"+subjects[0].name)
}

// quantile returns a quantile of the samples in milliseconds.
func quantile(samples []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]) / 1e6
}
