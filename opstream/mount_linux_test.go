package opstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// insideMount says, in the environment, that a test runs in a mount namespace of
// its own.
const insideMount = "OPSTREAM_TEST_INSIDE_MOUNT"

// mounted runs the calling test again in a child process with a mount namespace
// of its own, which ends with the child, and there mounts and returns a directory.
// Elsewhere, and in the parent, ok is false. Where nobody may mount, the same is
// done on a file system that replaces it.
func mounted(t *testing.T, mount func(t *testing.T, dir string) error, instead func(*quotaFS)) (dir string, ok bool) {
	t.Helper()
	if os.Getenv(insideMount) != "" {
		dir := t.TempDir()
		if err := mount(t, dir); err != nil {
			t.Skipf("MAY NOT MOUNT: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		return dir, true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v",
		fmt.Sprint("-nightly=", *nightly))
	cmd.Env = append(os.Environ(), insideMount+"=1", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Unshareflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), bytes.Contains(out, []byte("MAY NOT MOUNT")):
		t.Logf("NOBODY MAY MOUNT HERE: a file system of our own stands in for the real one: %v %s", err, out)
		instead(&quotaFS{dir: filepath.Join(t.TempDir(), "log"), room: unlimited})
		return "", false
	case err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())):
		t.Fatalf("in a mount namespace: %v\n%s", err, out)
	}
	t.Logf("in a mount namespace:\n%s", out)
	return "", false
}

// mountTmpfs mounts a tmpfs of 1 MiB.
func mountTmpfs(_ *testing.T, dir string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700")
}

// mountExt4 mounts an ext4 of 24 MiB by a loop device, which ends with the
// mount.
func mountExt4(t *testing.T, dir string) error {
	image := filepath.Join(t.TempDir(), "ext4.img")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	for _, line := range [][]string{
		{"truncate", "-s", "24M", image},
		{"mkfs.ext4", "-q", "-F", "-m", "0", image},
		{"mount", "-t", "ext4", "-o", "loop", image, dir},
	} {
		if out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line[0], err, out)
		}
	}
	return nil
}

// mountedDisk is a real one.
type mountedDisk string

func (d mountedDisk) place() (string, durable.FS) { return filepath.Join(string(d), "log"), nil }
func (d mountedDisk) filler() string              { return filepath.Join(string(d), "filler") }
func (d mountedDisk) fill(t *testing.T, leaveBytes int) {
	fillDisk(t, d.filler(), leaveBytes)
}

func (d mountedDisk) free(t *testing.T) {
	if err := os.Remove(d.filler()); err != nil {
		t.Fatal(err)
	}
}

func TestFullTmpfs(t *testing.T) {
	if mount, ok := mounted(t, mountTmpfs, func(q *quotaFS) { fullDisk(t, q) }); ok {
		fullDisk(t, mountedDisk(mount))
	}
}

func TestFullExt4(t *testing.T) {
	if mount, ok := mounted(t, mountExt4, func(q *quotaFS) { fullDisk(t, q) }); ok {
		fullDisk(t, mountedDisk(mount))
	}
}

// fullDisk fills a file system again and again, and frees it: a refused append
// leaves no part of a line, and the log continues when there is room.
func fullDisk(t *testing.T, disk smallDisk) {
	dir, fsys := disk.place()
	o := &Options{SegmentSizeBytes: 64 << 10, SealAfter: -1, FS: fsys}
	l := mustOpen(t, dir, o)
	var want []string
	rounds, refused := count(20, 200), 0
	for round := range rounds {
		disk.fill(t, (8+round%5*9)*4096)
		for i := 0; ; i++ {
			// Some are small, some larger than a page, some are blobs.
			body := fmt.Sprintf(`{"n":%d,"i":%d,"pad":"%s"}`, round, i,
				strings.Repeat("x", (round*7919+i*104729)%(wire.MaxInlineBytes*5/4)))
			_, err := l.Append(t.Context(), Entry{Kind: "k", Body: []byte(body)})
			if err == nil {
				want = append(want, body)
				continue
			}
			if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrPoisoned) {
				t.Fatalf("round %d: Append = %v, want no space left, and no poison", round, err)
			}
			refused++
			break
		}
		wholeLines(t, dir)
		disk.free(t)
		body := fmt.Sprintf(`{"after":%d}`, round)
		mustAppend(t, l, Entry{Kind: "k", Body: []byte(body)})
		if want = append(want, body); round%5 == 4 {
			mustClose(t, l)
			want = startOver(t, dir, want)
			l = mustOpen(t, dir, o)
		}
	}
	t.Logf("the disk was full %d times, %d appends refused, no part of a line left, and each time the log went on",
		rounds, refused)
}

// fillDisk writes zeros until there is no space left, and frees some bytes
// again.
func fillDisk(t *testing.T, path string, leaveBytes int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zeros, size := make([]byte, 4096), int64(0)
	for {
		n, err := f.Write(zeros)
		size += int64(n)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(max(0, size-int64(leaveBytes))); err != nil {
		t.Fatal(err)
	}
}

// startOver checks that the closed stream holds exactly what was acknowledged,
// without damage, and removes it: the disk is small.
func startOver(t *testing.T, dir string, want []string) []string {
	t.Helper()
	l := mustOpen(t, dir, nil)
	if got := bodies(t, l); !slices.Equal(got, want) || l.Recovered() != nil {
		t.Fatalf("%d records of %d, recovered %v", len(got), len(want), l.Recovered())
	}
	mustClose(t, l)
	rep, err := Verify(t.Context(), dir)
	if err != nil || rep.Has(SeverityCorrupt) || rep.Has(SeverityTorn) {
		t.Fatalf("Verify = %v, %v", rep.Findings, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return nil
}

// wholeLines checks that no segment ends in a part of a line.
func wholeLines(t *testing.T, dir string) {
	t.Helper()
	segs, err := filepath.Glob(filepath.Join(dir, segments.OpsDirName, "*"+segments.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, seg := range segs {
		data, err := os.ReadFile(seg)
		if err != nil || len(data) > 0 && data[len(data)-1] != '\n' {
			t.Fatalf("%s ends in a part of a line: %.80q, %v", seg, data[max(0, len(data)-80):], err)
		}
	}
}

// TestReadOnlyDisk makes a file system read-only, a real one where it can.
func TestReadOnlyDisk(t *testing.T) {
	mount, ok := mounted(t, mountTmpfs, func(q *quotaFS) {
		readOnlyDisk(t, q.dir, q, func(on bool) { q.readOnly = on })
	})
	if !ok {
		return
	}
	readOnlyDisk(t, filepath.Join(mount, "log"), nil, func(on bool) {
		flags := uintptr(unix.MS_REMOUNT)
		if on {
			flags |= unix.MS_RDONLY
		}
		if err := unix.Mount("", mount, "", flags, ""); err != nil {
			t.Fatal(err)
		}
	})
}

// readOnlyDisk: a new writer is told that it can write nothing, reading and
// verifying still work, and when it can be written again nothing is missing.
func readOnlyDisk(t *testing.T, dir string, fsys durable.FS, readOnly func(on bool)) {
	o := &Options{FS: fsys}
	l := mustOpen(t, dir, o)
	mustAppend(t, l, Entry{Kind: "k", Body: []byte(`{"n":1}`)})
	mustClose(t, l)
	readOnly(true)
	if _, err := Open(dir, o); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Open = %v, want that the file system is read-only", err)
	}
	if _, err := Open(filepath.Join(filepath.Dir(dir), "new"), o); !errors.Is(err, syscall.EROFS) {
		t.Errorf("Open of a new stream = %v", err)
	}
	if got := records(t, dir); len(got) != 2 || string(got[0].Body) != `{"n":1}` {
		t.Errorf("read %+v", got)
	}
	if rep, err := Verify(context.Background(), dir); err != nil || len(rep.Findings) != 0 || rep.Records != 2 {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
	readOnly(false)
	l = mustOpen(t, dir, o)
	if seq := mustAppend(t, l, Entry{Kind: "k"}); seq != 3 || l.Recovered() != nil {
		t.Errorf("the next append got %d, recovered %v", seq, l.Recovered())
	}
	mustClose(t, l)
}
