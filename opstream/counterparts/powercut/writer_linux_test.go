package powercut

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/opstream"
)

// The environment of the process that writes, or unmounts what was written.
const (
	roleVariable  = "POWERCUT_ROLE"
	imageVariable = "POWERCUT_IMAGE"
	dirVariable   = "POWERCUT_DIR"
	seedVariable  = "POWERCUT_SEED"
	firstVariable = "POWERCUT_FIRST" // serial of the first operation
)

// The roles.
const (
	roleWrite     = "write"
	roleCareless  = "write without sync"
	roleFail      = "write until the disk fails"
	roleUnmount   = "unmount"
	callsPerLife  = 14
	streamDirName = "log"
	foldVersion   = "powercut/1"
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case roleUnmount:
		err = unix.Unmount(os.Getenv(dirVariable), 0)
	case roleWrite, roleCareless:
		err = writeLife(role == roleCareless)
	case roleFail:
		err = failLife()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// bodyOf is the body of the operation with a serial: some stand in one sector,
// some in several, some in a blob.
func bodyOf(serial int) []byte {
	rng := rand.New(rand.NewPCG(uint64(serial), 3))
	body := fmt.Sprintf(`{"n":%d,"pad":"%s"}`, serial, strings.Repeat("x", rng.IntN(1+rng.IntN(3000))))
	if serial%9 == 0 {
		body = `{"$blob":` + body + `}`
	}
	return []byte(body)
}

// streamOptions makes small segments, so that new ones begin often.
func streamOptions() *opstream.Options {
	return &opstream.Options{SegmentSizeBytes: 8 << 10, SealAfter: -1, Snapshot: foldVersion}
}

// writeLife mounts the image, appends to its stream, and ends without closing
// it. It says what it is about to append and what was acknowledged, and waits
// for an answer each time, so that the recorder knows when that was.
func writeLife(careless bool) error {
	dir := os.Getenv(dirVariable)
	if err := mountImage(os.Getenv(imageVariable), dir); err != nil {
		return err
	}
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		return err
	}
	serial, err := strconv.Atoi(os.Getenv(firstVariable))
	if err != nil {
		return err
	}
	answers := bufio.NewReader(os.Stdin)
	say := func(word string, serial int) error {
		fmt.Println(word, serial)
		_, err := answers.ReadString('\n')
		return err
	}
	o := streamOptions()
	if careless {
		o.FS = noSync{}
	}
	stream := filepath.Join(dir, streamDirName)
	log, err := opstream.Open(stream, o)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	for range callsPerLife {
		if last, _ := log.Last(); last > 0 && rng.IntN(6) == 0 {
			_ = log.WriteSnapshot(foldVersion, []byte("fold"), last) // derived: that it fails ends nothing
		}
		if rng.IntN(6) == 0 {
			if err := log.Close(); err != nil {
				return err
			}
			if log, err = opstream.Open(stream, o); err != nil {
				return err
			}
		}
		entries := make([]opstream.Entry, 1+rng.IntN(3))
		for i := range entries {
			entries[i] = opstream.Entry{Kind: "test.op", Body: bodyOf(serial + i)}
		}
		serial += len(entries)
		if err := say("begun", serial-1); err != nil {
			return err
		}
		if _, err := log.Append(context.Background(), entries...); err != nil {
			return errors.Join(fmt.Errorf("%w: %w", errAppend, err), log.Close())
		}
		if err := say("acked", serial-1); err != nil {
			return err
		}
	}
	return nil
}

// noSync is the operating system's file system, but that nothing is ever
// synced.
type noSync struct{}

func (noSync) Mkdir(name string) error              { return os.Mkdir(name, 0o700) }
func (noSync) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }
func (noSync) Remove(name string) error             { return os.Remove(name) }
func (noSync) SyncDir(string) error                 { return nil }

func (noSync) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (noSync) Open(name string, flag int) (opstream.File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return noSyncFile{f}, nil
}

type noSyncFile struct{ *os.File }

func (noSyncFile) Sync() error { return nil }

func (f noSyncFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// errStopped is what the writer's end is when it did not end by itself, and
// errAppend when an append failed.
var (
	errStopped = errors.New("the writer failed")
	errAppend  = errors.New("append")
)

// failLife writes until the disk fails under it, and reports what it is told
// then, what can be read, and what the next writer is told.
func failLife() error {
	err := writeLife(false)
	if !errors.Is(err, errAppend) || !errors.Is(err, opstream.ErrPoisoned) || !errors.Is(err, unix.EIO) {
		return fmt.Errorf("want an append that fails with an input/output error and stops the writer, got: %w", err)
	}
	report := func(words ...any) { fmt.Println("report", strings.ReplaceAll(fmt.Sprint(words...), "\n", "; ")) }
	report(err)
	stream := filepath.Join(os.Getenv(dirVariable), streamDirName)
	r, err := opstream.OpenReader(stream, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	last := 0
	for rec, err := range r.Since(0) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(rec.Kind, "log.") {
			if last, err = serialOf(rec.Body); err != nil {
				return err
			}
		}
	}
	fmt.Println("read", last)
	log, err := opstream.Open(stream, streamOptions())
	if err == nil {
		return errors.Join(errors.New("a stream on a failed disk opens for writing"), log.Close())
	}
	if !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EIO) {
		return fmt.Errorf("want that the file system is read-only, got: %w", err)
	}
	report(err)
	return nil
}
