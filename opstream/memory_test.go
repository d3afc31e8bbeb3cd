package opstream

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"
)

// openDir names, in the environment, the stream a child process opens to say
// how much memory that took; openVersion the fold whose snapshot it uses.
const (
	openDir     = "OPSTREAM_TEST_OPEN_DIR"
	openVersion = "OPSTREAM_TEST_OPEN_VERSION"
)

// openAndTell opens a stream and prints what the kernel says of this process,
// among it the most memory that it had at once.
func openAndTell(dir string) {
	l, err := Open(dir, &Options{Snapshot: os.Getenv(openVersion)})
	if err == nil {
		var status []byte
		status, err = os.ReadFile("/proc/self/status")
		fmt.Printf("%s\nResumed: %v\n", status, l.resumed.Seq > 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestOpenMemory opens a long stream in a process of its own, by its
// snapshot and without, and looks at the most memory that process had: 130 MiB
// for 1,000,000 records (-nightly), less for fewer.
func TestOpenMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process's peak")
	}
	records := count(100_000, 1_000_000)
	const processBytes, recordBytes = 16 << 20, 120 // together 130 MiB at 1,000,000
	limit := processBytes + recordBytes*records
	dir := t.TempDir()
	longStream(t, dir, records)
	for _, version := range []string{"", testFold} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), openDir+"="+dir, openVersion+"="+version)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		m := regexp.MustCompile(`VmHWM:\s+(\d+) kB\n(?s:.*)Resumed: (\w+)`).FindSubmatch(out)
		if m == nil {
			t.Fatalf("no peak in %s", out)
		}
		peak, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d records, snapshot used %s: %.1f MiB, the limit is %.1f", records, m[2], float64(peak)/1024,
			float64(limit)/(1<<20))
		if string(m[2]) != strconv.FormatBool(version != "") {
			t.Errorf("snapshot used: %s", m[2])
		}
		if raceBuild {
			t.Log("NOT COMPARED under -race, which adds memory of its own; run without it")
			continue
		}
		if peak<<10 > limit {
			t.Errorf("opening %d records took %d KiB, the limit is %d", records, peak, limit>>10)
		}
	}
}
