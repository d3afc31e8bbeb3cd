//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// The rows are what snapshots promise, one promise a test, each asked of the
// package and of the built program: TestRow01… to TestRow14….

// built is the program as a user has it, made once a run of the tests, or
// the one that ANAMNESIS_BIN names.
var built = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("ANAMNESIS_BIN"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "anamnesis-built-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
		return "", err
	}
	path := filepath.Join(dir, "anamnesis")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func builtProgram(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// face is one of the two ways to a world.
type face interface {
	save() (worldstate.Snapshot, error)
	plan(target worldstate.ID, o worldstate.PlanOptions) (worldstate.Plan, error)
	restore(target worldstate.ID, o worldstate.RestoreOptions) (worldstate.Result, error)
	verify() (worldstate.Report, error)
}

// packageFace holds one World open, as a long-lived program does.
type packageFace struct{ w *worldstate.World }

func (f packageFace) save() (worldstate.Snapshot, error) {
	return f.w.SaveNext(context.Background(), "row")
}

func (f packageFace) plan(target worldstate.ID, o worldstate.PlanOptions) (worldstate.Plan, error) {
	return f.w.Plan(context.Background(), target, &o)
}

func (f packageFace) restore(target worldstate.ID, o worldstate.RestoreOptions) (worldstate.Result, error) {
	return f.w.RestoreTo(context.Background(), target, o)
}

func (f packageFace) verify() (worldstate.Report, error) {
	return f.w.Verify(context.Background())
}

// programFace runs the built program, a process a verb.
type programFace struct {
	t          testing.TB
	dir, store string
	env        []string // replaces the test's own, when given
	uid        int      // 0: the test's own user
}

// command is the program with some arguments on this world.
func (f programFace) command(args ...string) *exec.Cmd {
	args = append([]string{"world"}, args...)
	cmd := exec.Command(builtProgram(f.t), append(args, "--dir", f.dir, "--store", f.store)...)
	cmd.Env, cmd.Dir = f.env, "/"
	if f.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(f.uid), Gid: uint32(f.uid)}}
	}
	return cmd
}

// ask runs a verb with --json into v. An error carries the exit code and what
// stood on standard error.
func (f programFace) ask(v any, args ...string) error {
	cmd := f.command(append(args, "--json")...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if ended := new(exec.ExitError); errors.As(err, &ended) {
		err = exit.With(ended.ExitCode(), errors.New(strings.TrimSpace(stderr.String())))
	}
	if out.Len() > 0 {
		if jerr := json.Unmarshal(out.Bytes(), v); jerr != nil {
			f.t.Fatalf("%v printed %q: %v", args, out.String(), jerr)
		}
		exactNames(f.t, out.Bytes(), reflect.ValueOf(v).Elem())
	}
	return err
}

// exactNames restores in v, decoded from data, the names that are not UTF-8: their bytes
// are beside them, under the same key with _bytes appended.
func exactNames(t testing.TB, data []byte, v reflect.Value) {
	t.Helper()
	read := func(data []byte, into any) {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	switch v.Kind() {
	case reflect.Slice:
		var list []json.RawMessage
		read(data, &list)
		for i := range list {
			exactNames(t, list[i], v.Index(i))
		}
	case reflect.Struct:
		var all map[string]json.RawMessage
		if read(data, &all); all == nil {
			return
		}
		for i := range v.NumField() {
			key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			exact, ok := all[key+"_bytes"]
			switch field := v.Field(i); {
			case ok && field.Kind() == reflect.String:
				var name []byte
				read(exact, &name)
				field.SetString(string(name))
			case ok:
				var names map[int][]byte
				read(exact, &names)
				for n, name := range names {
					field.Index(n).SetString(string(name))
				}
			case all[key] != nil && field.Type() != reflect.TypeFor[time.Time]():
				exactNames(t, all[key], field)
			}
		}
	}
}

func (f programFace) save() (s worldstate.Snapshot, err error) {
	return s, f.ask(&s, "save", "-m", "row")
}

func planArgs(verb string, target worldstate.ID, o worldstate.PlanOptions) []string {
	args := []string{verb, string(target)}
	if o.OverwriteEdits {
		args = append(args, "--overwrite")
	}
	if o.OtherWorld {
		args = append(args, "--other-world")
	}
	return append(args, o.Paths...)
}

func (f programFace) plan(target worldstate.ID, o worldstate.PlanOptions) (p worldstate.Plan, err error) {
	return p, f.ask(&p, planArgs("plan", target, o)...)
}

func (f programFace) restore(target worldstate.ID, o worldstate.RestoreOptions) (r worldstate.Result, err error) {
	args := planArgs("restore", target, o.PlanOptions)
	if o.PlanHash != "" {
		args = append(args, "--plan", o.PlanHash)
	}
	return r, f.ask(&r, args...)
}

func (f programFace) verify() (r worldstate.Report, err error) {
	return r, f.ask(&r, "verify")
}

// rowWorld is a world and its store in fresh directories.
type rowWorld struct {
	*testing.T
	face
	top, dir, store string
}

// eachFace runs a row on a fresh world through the package and through the
// program.
func eachFace(t *testing.T, row func(w *rowWorld)) {
	t.Run("package", func(t *testing.T) {
		w := newRowWorld(t)
		w.face = packageFace{w.openPackage(nil)}
		row(w)
	})
	t.Run("program", func(t *testing.T) {
		w := newRowWorld(t)
		w.face = programFace{t: t, dir: w.dir, store: w.store}
		row(w)
	})
}

func newRowWorld(t *testing.T) *rowWorld {
	t.Helper()
	top := worldtest.TempDir(t)
	w := &rowWorld{T: t, top: top, dir: filepath.Join(top, "world"), store: filepath.Join(top, "store")}
	w.must(os.Mkdir(w.dir, 0o755))
	return w
}

func (w *rowWorld) openPackage(o *worldstate.Options) *worldstate.World {
	w.Helper()
	world, err := worldstate.Open(w.dir, w.store, o)
	w.must(err)
	w.Cleanup(func() { world.Close() })
	return world
}

func (w *rowWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *rowWorld) path(rel string) string { return filepath.Join(w.dir, rel) }

func (w *rowWorld) write(rel, content string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(rel)), 0o755))
	w.must(os.WriteFile(w.path(rel), []byte(content), 0o644))
}

func (w *rowWorld) remove(rels ...string) {
	w.Helper()
	for _, rel := range rels {
		w.must(os.RemoveAll(w.path(rel)))
	}
}

func (w *rowWorld) holds(rel, want string) {
	w.Helper()
	if got, err := os.ReadFile(w.path(rel)); err != nil || string(got) != want {
		w.Errorf("%q holds %q (%v), want %q", rel, got, err, want)
	}
}

func (w *rowWorld) look() worldtest.Tree { w.Helper(); return worldtest.Snapshot(w, w.dir) }

// saved saves, and checks that a save touches nothing.
func (w *rowWorld) saved() worldstate.Snapshot {
	w.Helper()
	before := w.look()
	s, err := w.save()
	w.must(err)
	worldtest.Untouched(w, before, w.look(), nil, "a save")
	return s
}

// back restores a snapshot after a save, and checks what every restore
// promises: only the paths it names were touched, its word on the tree is what
// another look says, and it claims the target exactly when it is there.
func (w *rowWorld) back(target worldstate.Snapshot) worldstate.Result {
	w.Helper()
	w.saved()
	return w.restored(target, worldstate.RestoreOptions{})
}

func (w *rowWorld) restored(target worldstate.Snapshot, o worldstate.RestoreOptions) worldstate.Result {
	w.Helper()
	before := w.look()
	res, err := w.restore(target.ID, o)
	w.must(err)
	after := w.look()
	worldtest.Untouched(w, before, after, append(slices.Clone(res.Written), res.Deleted...), "a restore")
	if res.Exact != (res.Tree == target.Tree) {
		w.Errorf("exact is %v, the tree %s and the target's %s", res.Exact, res.Tree, target.Tree)
	}
	if len(res.Kept) == 0 && len(o.Paths) == 0 && !res.Exact {
		w.Errorf("nothing was kept, and yet the tree is %s and not %s", res.Tree, target.Tree)
	}
	now, err := w.save()
	w.must(err)
	if now.Tree != res.Tree {
		w.Errorf("the restore said tree %s, the next save says %s", res.Tree, now.Tree)
	}
	return res
}

// whole checks the store with verify and with git.
func (w *rowWorld) whole() {
	w.Helper()
	r, err := w.verify()
	if err != nil || !r.OK || r.Unfinished {
		w.Errorf("verify: %+v %v", r, err)
	}
	out := git(w, w.top, "--git-dir="+w.store, "fsck", "--strict", "--full", "--no-dangling")
	if strings.TrimSpace(out) != "" {
		w.Errorf("git fsck --strict: %s", out)
	}
}

// noOptions restores the whole world and keeps edits.
var noOptions worldstate.RestoreOptions

// refused checks an error's exit code and that it names what it is about.
func (w *rowWorld) refused(err error, code int, words ...string) {
	w.Helper()
	if err == nil || exit.Code(err) != code {
		w.Errorf("got %v (exit code %d), want exit code %d", err, exit.Code(err), code)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// need skips a test where something is not to be had, and fails where it must.
func need(t testing.TB, ok bool, what string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("ANAMNESIS_CI") != "":
		t.Fatalf("this needs %s, and CI must have it", what)
	default:
		t.Skipf("NOT CHECKED: this needs %s", what)
	}
}

// git runs the real git with an identity and no configuration of anybody's.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	_, err := exec.LookPath("git")
	need(t, err == nil, "git")
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
