package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var errFault = errors.New("input/output error")

// faulty fails the n-th step, counted from 1; a write that fails has written half.
type faulty struct {
	OS
	left int
}

func (f *faulty) step() error {
	if f.left--; f.left == 0 {
		return errFault
	}
	return nil
}

func (f *faulty) Open(name string, flag int) (File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.OS.Open(name, flag)
	return faultyFile{file, f}, err
}

func (f *faulty) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.OS.Rename(from, to)
}

func (f *faulty) SyncDir(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.OS.SyncDir(name)
}

type faultyFile struct {
	File
	f *faulty
}

func (f faultyFile) WriteAt(data []byte, off int64) (int, error) {
	if err := f.f.step(); err != nil {
		n, _ := f.File.WriteAt(data[:len(data)/2], off)
		return n, err
	}
	return f.File.WriteAt(data, off)
}

func (f faultyFile) Sync() error {
	if err := f.f.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A write that fails at any step leaves the old content, or the new one if only the sync of the
// directory failed, and no temporary file.
func TestWriteFileFaults(t *testing.T) {
	steps := []string{"open", "write", "sync", "rename", "sync of the directory"}
	for i := range len(steps) + 1 {
		path := filepath.Join(t.TempDir(), "file")
		writeText(t, path, "old")
		err := WriteFile(&faulty{left: i + 1}, path, []byte("new content"))
		if failed := i < len(steps); failed != errors.Is(err, errFault) {
			t.Errorf("fault %d: %v", i, err)
		}
		if got, renamed := readText(t, path), i >= 4; renamed != (got == "new content") || !renamed && got != "old" {
			t.Errorf("fault %d leaves %q", i, got)
		}
		if names, err := (OS{}).ReadDir(filepath.Dir(path)); err != nil || !slices.Equal(names, []string{"file"}) {
			t.Errorf("fault %d leaves the files %q, %v", i, names, err)
		}
	}
}

// An append that fails part-way is cut back, so that the next one begins a line.
func TestAppendFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	for i := range 4 {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		writeText(t, path, "one\n")
		err := Append(&faulty{left: i + 1}, path, []byte("two\n"))
		want := "one\n"
		if i == 3 {
			want += "two\n"
		}
		if got := readText(t, path); got != want || (err == nil) != (i == 3) {
			t.Errorf("fault %d: %q, %v", i, got, err)
		}
	}
}

// A file that users edit keeps its link and its mode; a new one gets the mode asked for.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	writeText(t, real, "old")
	if err := errors.Join(os.Chmod(real, 0o664), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "sub", "made")
	if err := errors.Join(Rewrite(link, []byte("new"), 0o600), Rewrite(made, nil, 0o640)); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "real" || readText(t, real) != "new" {
		t.Errorf("the link leads to %q, %v; the file says %q", to, err, readText(t, real))
	}
	for path, want := range map[string]fs.FileMode{real: 0o664, made: 0o640, filepath.Dir(made): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestRemoveTemp(t *testing.T) {
	dir := t.TempDir()
	writeText(t, Temp(filepath.Join(dir, "x")), "left")
	writeText(t, filepath.Join(dir, "x"), "kept")
	if err := errors.Join(RemoveTemp(dir, TempPrefix), RemoveTemp(filepath.Join(dir, "none"), TempPrefix)); err != nil {
		t.Fatal(err)
	}
	if names, err := (OS{}).ReadDir(dir); err != nil || !slices.Equal(names, []string{"x"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	held.Close()
	again, err := TryLock(path)
	if err != nil {
		t.Fatalf("after the file was closed: %v", err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock that does not wait: %v", err)
	}
	again.Close()
}

// The loser of a WriterLock is told who holds it; what other programs or dead ones wrote into
// the file names nobody; a file that replaced the lock's is locked in its place.
func TestWriterLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for _, stale := range []string{"12345 another-boot\n", `{"pid":1,"start":1}`, `{"pid":-1}`, "rubbish"} {
		writeText(t, path, stale)
		if pid := Writer(path); pid != 0 {
			t.Errorf("%q names %d", stale, pid)
		}
	}
	l, other := NewWriterLock(path), NewWriterLock(path)
	lost := func() {
		t.Helper()
		var held *LockedError
		if err := other.Acquire(t.Context(), 0); !errors.As(err, &held) || held.PID != os.Getpid() ||
			!errors.Is(err, ErrLocked) {
			t.Errorf("a second writer: %v", err)
		}
	}
	if err := l.Acquire(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	lost()
	if err := errors.Join(l.Release(), os.Remove(path), l.Acquire(t.Context(), 0)); err != nil {
		t.Fatal(err)
	}
	lost()
	if pid := Writer(path); pid != os.Getpid() {
		t.Errorf("the writer is %d", pid)
	}
	if err := l.Close(); err != nil || Writer(path) != 0 || readText(t, path) != "" {
		t.Errorf("after it was closed: %v, %d, %q", err, Writer(path), readText(t, path))
	}
	if err := errors.Join(other.Acquire(t.Context(), 0), other.Close()); err != nil {
		t.Error(err)
	}
}

// Reads are bounded and wait for no FIFO.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	writeText(t, path, "0123456789")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(path, 10); err != nil || string(data) != "0123456789" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := ReadTail(path, 3); err != nil || string(data) != "789" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadFile(path, 9); err == nil || !strings.Contains(err.Error(), fmt.Sprint(9)) {
		t.Errorf("a file above the limit: %v", err)
	}
	for _, other := range []string{fifo, dir} {
		if _, err := ReadFile(other, 9); !Unreadable(err) {
			t.Errorf("%s: %v", other, err)
		}
	}
}
