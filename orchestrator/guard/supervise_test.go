//go:build linux

package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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

// victimMark makes the test binary run one command and wait to be killed.
const victimMark = "ANAMNESIS_TEST_VICTIM"

func TestMain(m *testing.M) {
	SuperviseMain()
	if command := os.Getenv(victimMark); command != "" {
		victim(command)
	}
	os.Exit(m.Run())
}

// victim runs a command until it is killed, and says who supervises it.
func victim(command string) {
	_, err := Run(context.Background(), Command{
		Path: "/bin/bash", Args: []string{"bash", "-c", command}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")},
		Timeout: time.Hour,
		Started: func(s op.ToolStarted) error {
			_, err := fmt.Printf("%d %d %s\n", s.PID, s.StartTime, s.BootID)
			return err
		},
	})
	fmt.Fprintln(os.Stderr, "victim ended:", err)
	os.Exit(1)
}

// shapes are the ways in which a process gets away from its command. Each is a
// shell text that starts $LONG so that it should survive, then writes a line
// to the pipe `ready` when it runs.
var shapes = []struct{ name, text string }{
	{"background", `$LONG &`},
	{"setsid", `setsid $LONG &`},
	{"setsid fork", `setsid -f $LONG`},
	{"double fork", `( ( $LONG & ) & )`},
	{"nohup", `nohup $LONG >/dev/null 2>&1 &`},
	{"disown", `$LONG & disown`},
	{"daemon", `( setsid bash -c 'cd /; exec </dev/null >/dev/null 2>&1; ( '"$LONG"' & ) ' & )`},
	{"trap", `bash -c "trap '' TERM HUP INT QUIT; $LONG & wait; $LONG & wait" &`},
	{"stopped", `$LONG & until pgrep -fx "$LONG" >/dev/null; do :; done; kill -STOP $!`},
	{"bare environment", `env -i setsid -f $LONG`},
	{"deep", `bash -c "bash -c 'setsid -f $LONG' & setsid $LONG &" &`},
	{"fork chain", `f() { $LONG & ( f2 ) & }; f2() { $LONG & }; f`},
}

// long is a command line that runs for ever and that no other process has.
func long(t *testing.T) string {
	t.Helper()
	seconds := 1_000_000 + os.Getpid()%1000*1000 + int(sequence(t))
	return fmt.Sprintf("sleep %d", seconds)
}

// sequence numbers the calls of one test run, apart for parallel tests.
func sequence(t *testing.T) uint32 {
	var h uint32 = 2166136261
	for _, b := range []byte(t.Name()) {
		h = (h ^ uint32(b)) * 16777619
	}
	return h % 1_000_000_00
}

// survivors lists the processes that run exactly this command line.
func survivors(t *testing.T, line string) []proc {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	var found []proc
	for _, p := range all {
		if !p.dead() && p.name() == line {
			found = append(found, p)
		}
	}
	return found
}

func command(text string) Command {
	return Command{
		Path: "/bin/bash", Args: []string{"bash", "-c", text}, Dir: "/",
		Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: time.Minute,
	}
}

func TestNothingSurvivesTheCommand(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			line := long(t)
			// The command ends when what it started is seen to run.
			text := "LONG='" + line + "'\n" + shape.text + "\nuntil pgrep -fx \"$LONG\" >/dev/null; do :; done"
			o, err := Run(t.Context(), command(text))
			if err != nil {
				t.Fatal(err)
			}
			if o.Exit != 0 || len(o.Alive) > 0 {
				t.Errorf("outcome = %+v", o)
			}
			if o.NLeft == 0 || !strings.Contains(fmt.Sprint(o.Left), line) {
				t.Errorf("left = %v, want %q named", o.Left, line)
			}
			if s := survivors(t, line); len(s) > 0 {
				t.Errorf("survivors: %v", shown(s))
			}
		})
	}
}

func TestNothingSurvivesTheTimeout(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			line := long(t)
			c := command("LONG='" + line + "'\ntrap '' TERM\n" + shape.text + "\ncat <> <(:)")
			c.Timeout = time.Second
			begin := time.Now()
			o, err := Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(begin); d > c.Timeout+time.Second {
				t.Errorf("returned after %v with a limit of %v", d, c.Timeout)
			}
			if !o.TimedOut || o.Exit < 128 || len(o.Alive) > 0 {
				t.Errorf("outcome = %+v", o)
			}
			if s := survivors(t, line); len(s) > 0 {
				t.Errorf("survivors: %v", shown(s))
			}
		})
	}
}

// startVictim starts a process that runs the command through Run, and returns
// when `line` runs.
func startVictim(t *testing.T, text, line string) (*exec.Cmd, op.ToolStarted) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), victimMark+"=LONG='"+line+"'\n"+text+"\ncat <> <(:)")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // also when the test fails before it kills the victim
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var s op.ToolStarted
	if _, err := fmt.Fscan(bufio.NewReader(out), &s.PID, &s.StartTime, &s.BootID); err != nil {
		t.Fatalf("read the victim's supervisor: %v", err)
	}
	go io.Copy(io.Discard, out)
	await(t, "the command runs", func() bool { return len(survivors(t, line)) > 0 })
	return cmd, s
}

// await polls a condition of the system that nothing announces.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestNothingSurvivesOurOwnDeath(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			line := long(t)
			cmd, s := startVictim(t, shape.text, line)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			// What a later start does is harmless while the supervisor works.
			if err := EndLeftover(s); err != nil {
				t.Error(err)
			}
			if s := survivors(t, line); len(s) > 0 {
				t.Errorf("survivors: %v", shown(s))
			}
		})
	}
}

func TestSupervisorEndsAloneWhenWeDie(t *testing.T) {
	line := long(t)
	cmd, s := startVictim(t, "setsid -f $LONG", line)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	await(t, "the supervisor has ended everything", func() bool { return len(survivors(t, line)) == 0 })
	await(t, "the supervisor has ended", func() bool {
		p, err := readProc(s.PID)
		return err != nil || p.start != s.StartTime || p.dead()
	})
}

// Both the program and the supervisor are killed at once: what is left is
// found by its mark.
func TestEndLeftoverWithoutSupervisor(t *testing.T) {
	line := long(t)
	cmd, s := startVictim(t, "setsid -f $LONG", line)
	if err := unix.Kill(s.PID, unix.SIGSTOP); err != nil { // so that it cannot clean up
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := unix.Kill(s.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if len(survivors(t, line)) == 0 {
		t.Fatal("nothing is left over: the test tests nothing")
	}
	if err := EndLeftover(s); err != nil {
		t.Error(err)
	}
	if s := survivors(t, line); len(s) > 0 {
		t.Errorf("survivors: %v", shown(s))
	}
}

func TestEndLeftoverStoppedSupervisor(t *testing.T) {
	line := long(t)
	cmd, s := startVictim(t, "env -i setsid -f $LONG", line)
	if err := unix.Kill(s.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := EndLeftover(s); err != nil {
		t.Error(err)
	}
	if s := survivors(t, line); len(s) > 0 {
		t.Errorf("survivors: %v", shown(s))
	}
}

// A process that merely has the number of the old one is not touched.
func TestEndLeftoverSparesOthers(t *testing.T) {
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := readProc(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]op.ToolStarted{
		"another start time": {PID: p.pid, StartTime: p.start + 1, BootID: bootID()},
		"another boot":       {PID: p.pid, StartTime: p.start, BootID: "00000000-0000"},
		"no boot id":         {PID: p.pid, StartTime: p.start},
		"init":               {PID: 1, StartTime: 1, BootID: bootID()},
		"nothing":            {},
	} {
		if err := EndLeftover(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	in.Close()
	if err := other.Wait(); err != nil {
		t.Errorf("the other process ended with %v", err)
	}
}

func TestRunCanceled(t *testing.T) {
	line := long(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	c := command("trap 'echo bye; exit 3' TERM; setsid -f " + line + "; until pgrep -fx '" + line + "' >/dev/null; do :; done; echo runs; while :; do :; done")
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
		t.Errorf("survivors: %v", shown(s))
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
	c := command("exec 9<> " + fifo + "; for i in 1 2 3; do echo out$i; read -u 9; echo err$i >&2; read -u 9; done")
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
			c := command("touch " + began)
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

// A supervisor must not start supervisors: that is a program whose main does
// not call SuperviseMain.
func TestRunInsideASupervisorRefuses(t *testing.T) {
	t.Setenv(supervisorMark, "1")
	if _, err := Run(t.Context(), command("true")); err == nil || !strings.Contains(err.Error(), "SuperviseMain") {
		t.Errorf("err = %v", err)
	}
}

func TestRunConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			var out strings.Builder
			c := command("echo " + strconv.Itoa(i) + "; exit " + strconv.Itoa(i))
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
	if _, err := Run(t.Context(), command("true")); err != nil {
		t.Fatal(err)
	}
	before := count()
	for range 5 {
		if _, err := Run(t.Context(), command("ls -l /proc/self/fd")); err != nil {
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
	c := command("for f in /proc/$$/fd/*; do if [ -e $f ]; then echo ${f##*/}; fi; done")
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
		c := command("")
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
