//go:build linux

package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/op"
)

func TestRunCanceled(t *testing.T) {
	line := long(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	c := shellCommand(
		"trap 'echo bye; exit 3' TERM; setsid -f " + line + "; " + untilRuns(line) + "; echo runs; while :; do :; done")
	var out strings.Builder
	c.Output = func(_ Stream, p []byte) {
		out.Write(p)
		if strings.Contains(string(p), "runs") {
			cancel(cause)
		}
	}
	o, err := Run(ctx, c)
	if !errors.Is(err, cause) || !o.Canceled || o.Exit != 3 {
		t.Errorf("Run = %+v, %v; want the cancellation", o, err)
	}
	if out.String() != "runs\nbye\n" {
		t.Errorf("output = %q, want what the command said last, too", out.String())
	}
	if s := survivors(t, line); len(s) > 0 {
		t.Errorf("survivors: %v", describeAll(s))
	}
}

// Each write waits until the one before it has arrived.
func TestOutputInArrivalOrder(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "next")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	c := shellCommand(
		"exec 9<> " + fifo + "; for i in 1 2 3; do echo out$i; read -u 9; echo err$i >&2; read -u 9; done")
	var got []string
	c.Output = func(s Stream, p []byte) {
		got = append(got, fmt.Sprintf("%d:%s", s, p))
		fmt.Fprintln(next)
	}
	if o, err := Run(t.Context(), c); err != nil || o.Exit != 0 {
		t.Fatalf("Run = %+v, %v", o, err)
	}
	if s := strings.Join(got, ""); s != "1:out1\n2:err1\n1:out2\n2:err2\n1:out3\n2:err3\n" {
		t.Errorf("output = %q", s)
	}
}

func TestRunFaults(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	refuse := errors.New("log is full")
	tests := []struct {
		name string
		ctx  context.Context
		edit func(*Command)
		want string
	}{
		{"no program", t.Context(), func(c *Command) { c.Path = "" }, "no program"},
		{"no limit", t.Context(), func(c *Command) { c.Timeout = 0 }, "timeout"},
		{"too long", t.Context(), func(c *Command) { c.Timeout = 48 * time.Hour }, "timeout"},
		{"missing program", t.Context(), func(c *Command) { c.Path = "/no/such/program" }, "no such file"},
		{"missing directory", t.Context(), func(c *Command) { c.Dir = "/no/such/dir" }, "/no/such/dir"},
		{"argument too long", t.Context(), func(c *Command) { c.Args[2] = strings.Repeat("x", 300_000) }, "too long"},
		{"context ended", ended, func(*Command) {}, "canceled"},
		{"start not recorded", t.Context(), func(c *Command) { c.Started = func(op.ToolStarted) error { return refuse } }, "log is full"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			began := filepath.Join(t.TempDir(), "began")
			c := shellCommand("touch " + began)
			tt.edit(&c)
			_, err := Run(tt.ctx, c)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q in it", err, tt.want)
			}
			if _, err := os.Stat(began); err == nil {
				t.Error("the command ran all the same")
			}
		})
	}
}

// TestMainWithoutSupervisor: a program whose main does not call SuperviseMain gets an error that
// says so, in every mode, and is not started a second time.
func TestMainWithoutSupervisor(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mainlessMark+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "does not call guard.SuperviseMain") != 4 ||
		strings.Count(string(out), "\n") != 4 {
		t.Errorf("%v: %s", err, out)
	}
}

// mainless is the main of a program that does not call SuperviseMain.
func mainless() {
	for _, confine := range []Confinement{ConfineWorld, ConfineReadOnly, ConfineOff} {
		_, err := NewSandbox(context.Background(), SandboxOptions{Confine: confine, World: "/"})
		fmt.Println(confine, err)
	}
	_, err := Run(context.Background(),
		Command{Path: "/bin/true", Args: []string{"true"}, Dir: "/", Timeout: time.Second})
	fmt.Println(err)
}

func TestRunConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			var out strings.Builder
			c := shellCommand("echo " + strconv.Itoa(i) + "; exit " + strconv.Itoa(i))
			c.Output = func(_ Stream, p []byte) { out.Write(p) }
			o, err := Run(t.Context(), c)
			if err != nil || o.Exit != i || out.String() != fmt.Sprintln(i) {
				t.Errorf("%d: %+v, %v, %q", i, o, err, out.String())
			}
		})
	}
	wg.Wait()
}

func TestRunLeavesNoDescriptors(t *testing.T) {
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if _, err := Run(t.Context(), shellCommand("true")); err != nil {
		t.Fatal(err)
	}
	before := count()
	for range 5 {
		if _, err := Run(t.Context(), shellCommand("ls -l /proc/self/fd")); err != nil {
			t.Fatal(err)
		}
	}
	if after := count(); after > before {
		t.Errorf("descriptors: %d before, %d after", before, after)
	}
}

// The command sees its three standard descriptors and no other.
func TestCommandDescriptors(t *testing.T) {
	leak, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	var out strings.Builder
	// The directory that lists them is closed when the loop begins.
	c := shellCommand("for f in /proc/$$/fd/*; do if [ -e $f ]; then echo ${f##*/}; fi; done")
	c.Output = func(_ Stream, p []byte) { out.Write(p) }
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for fd := range strings.FieldsSeq(out.String()) {
		if n, err := strconv.Atoi(fd); err == nil && n > 2 && n != 255 { // 255 is bash's own
			t.Errorf("descriptor %d is open; all: %s", n, out.String())
		}
	}
}

func TestParseStat(t *testing.T) {
	rest := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n"
	for name, tt := range map[string]struct {
		line string
		want proc
		ok   bool
	}{
		"plain":         {"7 (bash)" + rest, proc{7, 1, 4242, 'S', "bash"}, true},
		"odd name":      {"7 (a) R (b)" + rest, proc{7, 1, 4242, 'S', "a) R (b"}, true},
		"newline":       {"7 (a\nb)" + rest, proc{7, 1, 4242, 'S', "a\nb"}, true},
		"empty":         {"", proc{}, false},
		"short":         {"7 (bash) S 1 2", proc{}, false},
		"no name":       {"7 bash S 1", proc{}, false},
		"bad pid":       {"x (bash)" + rest, proc{}, false},
		"reversed":      {"7 )bash(" + rest, proc{}, false},
		"negative ppid": {"7 (bash) S -1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21", proc{}, false},
	} {
		got, err := parseStat([]byte(tt.line))
		if (err == nil) != tt.ok || got != tt.want {
			t.Errorf("%s: parseStat = %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n"))
	f.Add([]byte("1 ()"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseStat(data)
		if err == nil && (p.pid <= 0 || p.ppid < 0) {
			t.Errorf("parseStat(%q) = %+v", data, p)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	b.Run("supervised", func(b *testing.B) {
		c := shellCommand("")
		c.Path, c.Args = "/bin/true", []string{"true"}
		for b.Loop() {
			if _, err := Run(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("plain exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
