package powercut

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream"
)

var nightly = flag.Bool("nightly", false, "run the fault tests with their full counts")

const (
	// lives is how many lives of a stream are cut, and wantCuts at how many
	// events at least.
	lives    = 3
	wantCuts = 200
	// wantLoss is the share of control cuts that must lose.
	wantLoss = 0.5
	// timeLimit bounds the whole test, a stuck kernel included.
	timeLimit = 4 * time.Minute
	// insideVariable says that this process is the one in a namespace of its own.
	insideVariable = "POWERCUT_INSIDE"
)

// TestExt4 cuts the power of an ext4 at every event of some lives of a
// stream: nothing acknowledged is lost, nothing wrong is read, and no honest
// crash is called corruption. Each life but the first begins where a cut of the
// one before left it, so that recoveries are cut, too.
func TestExt4(t *testing.T) {
	if !isolated(t) {
		return
	}
	base := freshImage(t)
	var have []int
	cuts, lost, doubtful := 0, 0, 0
	for seed := range uint64(lives) {
		rng := rand.New(rand.NewPCG(seed, 11))
		l := newLife(base, have, seed)
		l.run(t, roleWrite)
		events := l.disk.Events()
		next := rng.IntN(events + 1)
		for n := range events + 1 {
			image := l.disk.Cut(n, []int{512, 4096}[rng.IntN(2)], rng)
			got, err := readBack(t, image)
			if err == nil {
				err = l.compare(n, got)
			}
			if err != nil {
				lost++
				t.Errorf("life %d cut at event %d of %d: %v", seed, n, events, err)
			}
			if acked, _ := l.at(n); len(got) > 0 && got[len(got)-1] > max(acked, l.first-1) {
				doubtful++
			}
			cuts++
			if n == next {
				base, have = image, got
			}
		}
	}
	if cuts < wantCuts {
		t.Errorf("only %d cuts, want %d", cuts, wantCuts)
	}
	t.Logf("%d power cuts in %d lives of a stream on ext4, %d kept more than was acknowledged, %d lost", cuts, lives,
		doubtful, lost)
}

// TestExt4Control leaves the stream's syncs out, and cuts the power just after
// each acknowledgement. It must lose, or what TestExt4 shows means nothing.
func TestExt4Control(t *testing.T) {
	if !isolated(t) {
		return
	}
	l := newLife(freshImage(t), nil, 1)
	l.run(t, roleCareless)
	lost := 0
	for _, m := range l.acked {
		got, err := readBack(t, l.disk.Cut(m.event, 512, rand.New(rand.NewPCG(uint64(m.serial), 11))))
		if err != nil || l.compare(m.event, got) != nil {
			lost++
		}
	}
	if float64(lost) < wantLoss*float64(len(l.acked)) {
		t.Fatalf("a writer without syncs lost in only %d of %d cuts: the test proves nothing", lost, len(l.acked))
	}
	t.Logf("%d cuts of a writer without syncs, %d lost", len(l.acked), lost)
}

// TestExt4Fails lets the disk fail under a writer: fdatasync says so, ext4 goes
// read-only, the writer stops for good and says why. What was acknowledged can be
// read then, and is there when the disk works again.
func TestExt4Fails(t *testing.T) {
	if !isolated(t) {
		return
	}
	for after := 1; after < callsPerLife; after += 3 {
		l := newLife(freshImage(t), nil, uint64(after))
		l.breakAfter = after
		l.run(t, roleFail)
		acked, _ := l.at(l.disk.Events())
		if len(l.acked) != after || l.read < acked {
			t.Errorf("after %d acknowledgements: %d operations can be read, %d were acknowledged", len(l.acked),
				l.read, acked)
		}
		got, err := readBack(t, l.disk.Cut(l.disk.Events(), 512, rand.New(rand.NewPCG(uint64(after), 11))))
		if err == nil {
			err = l.compare(l.disk.Events(), got)
		}
		if err != nil {
			t.Errorf("disk broken after %d acknowledgements: %v", after, err)
		}
		t.Logf("broken after %d: %s", after, strings.Join(l.reports, "\n  "))
	}
}

// isolated reports whether this process has a mount namespace of its own.
// Otherwise it runs the test in a child that has: its mounts and loop devices
// end with it, whatever ends it.
func isolated(t *testing.T) bool {
	if !*nightly {
		t.Skip("cuts the power of a real ext4; runs with -nightly, as root, with /dev/fuse")
	}
	if os.Getenv(insideVariable) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Fatal("mounting needs root")
	}
	for _, need := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(need); err != nil {
			t.Fatalf("this machine cannot cut the power of an ext4: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-nightly")
	cmd.Env = append(os.Environ(), insideVariable+"=1", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("in a mount namespace of its own:\n%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("%v (%v)", err, context.Cause(ctx))
	}
	return false
}

// freshImage returns an empty ext4.
func freshImage(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fresh.img")
	if err := makeExt4(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// life is one life of a stream: the disk's record, and when which operation
// was begun and acknowledged.
type life struct {
	disk         *Recorder
	seed         uint64
	have         []int // serials that are in the stream from before
	first        int   // serial of the first operation of this life
	begun, acked []mark
	breakAfter   int      // after how many acknowledgements the disk fails; 0 for never
	read         int      // the last serial the writer could read after that
	reports      []string // and what it was told
}

func newLife(base []byte, have []int, seed uint64) *life {
	return &life{disk: NewRecorder(base), seed: seed, have: have, first: 1 + int(seed)*1000}
}

// mark says that from an event on, the operations up to a serial were.
type mark struct{ event, serial int }

// at returns the last serials that were acknowledged and begun when the n-th
// event had happened; 0 for none.
func (l *life) at(n int) (acked, begun int) {
	last := func(marks []mark) (serial int) {
		for _, m := range marks {
			if m.event <= n {
				serial = m.serial
			}
		}
		return serial
	}
	return last(l.acked), last(l.begun)
}

// compare says what is wrong with the operations read back after a cut at the
// n-th event.
func (l *life) compare(n int, got []int) error {
	acked, begun := l.at(n)
	all := slices.Clone(l.have)
	for s := l.first; s <= begun; s++ {
		all = append(all, s)
	}
	must := len(l.have) + max(0, acked-l.first+1)
	switch {
	case len(got) < must:
		return fmt.Errorf("LOST: %d operations, %d were acknowledged", len(got), must)
	case len(got) > len(all) || !slices.Equal(got, all[:len(got)]):
		return fmt.Errorf("WRONG: operations %v, written were %v", got, all)
	}
	return nil
}

// run lets a process write to a stream on the image, and records its disk.
func (l *life) run(t *testing.T, role string) {
	t.Helper()
	fuseDir, ext4Dir := t.TempDir(), t.TempDir()
	path, unmount, err := Serve(fuseDir, l.disk)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		imageVariable + "=" + path, dirVariable + "=" + ext4Dir,
		seedVariable + "=" + strconv.FormatUint(l.seed, 10), firstVariable + "=" + strconv.Itoa(l.first),
	}
	err = l.write(t.Context(), append(env, roleVariable+"="+role))
	// This process serves the disk and must not wait for it.
	cmd := command(t.Context(), append(env, roleVariable+"="+roleUnmount))
	if out, uerr := cmd.CombinedOutput(); uerr != nil {
		err = errors.Join(err, fmt.Errorf("unmount ext4: %w: %s", uerr, out))
	}
	if err := errors.Join(err, retryBusy(unmount)); err != nil {
		t.Fatal(err)
	}
	if acked, _ := l.at(l.disk.Events()); acked == 0 || l.disk.Flushes() == 0 {
		t.Fatalf("the record holds %d acknowledgements and %d flushes", len(l.acked), l.disk.Flushes())
	}
}

func command(ctx context.Context, env []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// write runs the writer and notes what it says, while it waits.
func (l *life) write(ctx context.Context, env []string) error {
	cmd := command(ctx, env)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		serial, _ := strconv.Atoi(rest)
		m := mark{event: l.disk.Events(), serial: serial}
		switch word {
		case "report":
			l.reports = append(l.reports, rest)
			continue
		case "read":
			l.read = serial
			continue
		case "begun":
			l.begun = append(l.begun, m)
		case "acked":
			if l.acked = append(l.acked, m); len(l.acked) == l.breakAfter {
				l.disk.Break()
			}
		}
		if _, err := fmt.Fprintln(in); err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %w: %s", errStopped, err, stderr.String())
	}
	return nil
}

// readBack mounts an image, opens its stream as the next writer does, and gives
// the serials of the operations in it. An operation that is not what was written
// is an error.
func readBack(t *testing.T, image []byte) (serials []int, err error) {
	t.Helper()
	path, dir := filepath.Join(t.TempDir(), "cut.img"), t.TempDir()
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := mountImage(path, dir); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, retryBusy(func() error { return unix.Unmount(dir, 0) }), os.Remove(path))
	}()
	stream := filepath.Join(dir, streamDirName)
	if _, err := os.Stat(filepath.Join(stream, "ops")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was cut before it began
	}
	log, err := opstream.Open(stream, streamOptions())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for rec, err := range log.Since(0) {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(rec.Kind, "log.") {
			continue
		}
		serial, err := serialOf(rec.Body)
		if err != nil {
			return nil, fmt.Errorf("WRONG: record %d: %w", rec.Seq, err)
		}
		serials = append(serials, serial)
	}
	return serials, nil
}

// serialOf reads a body's serial, and compares the body with what was written.
func serialOf(body []byte) (int, error) {
	at := bytes.Index(body, []byte(`"n":`))
	if at < 0 {
		return 0, fmt.Errorf("a body of its own: %.60s", body)
	}
	var serial int
	if _, err := fmt.Sscanf(string(body[at:]), `"n":%d,`, &serial); err != nil {
		return 0, err
	}
	if !bytes.Equal(body, bodyOf(serial)) {
		return 0, fmt.Errorf("it is not what was written: %.60s", body)
	}
	return serial, nil
}
