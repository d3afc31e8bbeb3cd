package opstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/durable"
)

// childDir names, in the environment, the stream a child process appends to.
const childDir = "OPSTREAM_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		appendForEver(dir)
	}
	if dir := os.Getenv(openDir); dir != "" {
		openAndTell(dir)
	}
	os.Exit(m.Run())
}

// appendForEver appends from several goroutines and prints each seq once it
// is acknowledged, until the process is killed.
func appendForEver(dir string) {
	l, err := Open(dir, &Options{SegmentSizeBytes: 4 << 10})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for c := range 4 {
		go func() {
			for i := 0; ; i++ {
				body := fmt.Sprintf(`{"c":%d,"i":%d,"pad":"%0*d"}`, c, i, i%700, 0)
				seq, err := l.Append(context.Background(), Entry{Kind: "k", Body: []byte(body)})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println(seq)
			}
		}()
	}
	select {}
}

// killsPerStream is after how many kills TestKill begins another stream: every
// open verifies the whole stream, so that kills on one stream cost more and
// more.
const killsPerStream = 50

// TestKill kills a process that appends, at random moments, again and again
// on one stream: no acknowledged record is lost, the writer is refused while
// it lives, and its lock ends with it.
func TestKill(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	rounds := count(60, 2000)
	var records uint64
	for done := 0; done < rounds; done += killsPerStream {
		records += killAndReopen(t, rng, min(killsPerStream, rounds-done))
	}
	t.Logf("%d kills, %d records acknowledged, 0 lost", rounds, records)
}

// killAndReopen kills the writers of one new stream and returns the last seq
// that was acknowledged.
func killAndReopen(t *testing.T, rng *rand.Rand, kills int) (acked uint64) {
	dir := t.TempDir()
	for round := range kills {
		acked = max(acked, appendUntilKilled(t, dir, time.Duration(rng.IntN(20_000))*time.Microsecond))
		l, err := Open(dir, nil)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		last, _ := l.Last()
		if last < acked {
			t.Fatalf("round %d: LOST: last seq %d, %d was acknowledged", round, last, acked)
		}
		mustClose(t, l)
	}
	rep, err := Verify(t.Context(), dir)
	if err != nil || rep.Has(SeverityCorrupt) || rep.Has(SeverityTorn) {
		t.Fatalf("Verify = %v, %v", rep.Findings, err)
	}
	return acked
}

// appendUntilKilled lets a child append to the stream for a time once it is
// its writer, and returns the last seq the child said was acknowledged.
func appendUntilKilled(t *testing.T, dir string, after time.Duration) (acked uint64) {
	cmd, lines := startWriter(t, dir)
	var locked *durable.LockedError
	if _, err := Open(dir, nil); !errors.As(err, &locked) || locked.PID != cmd.Process.Pid {
		t.Fatalf("a second writer got %v, want it refused naming %d", err, cmd.Process.Pid)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	for lines.Scan() {
		seq, err := strconv.ParseUint(strings.TrimSpace(lines.Text()), 10, 64)
		if err != nil {
			break // the last line, cut by the kill
		}
		acked = max(acked, seq)
	}
	_ = cmd.Wait() // killed
	return acked
}
