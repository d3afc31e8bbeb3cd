//go:build linux

package guard

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/confine"
)

// victimMark makes the test binary run one command and wait to be killed.
const victimMark = "ANAMNESIS_TEST_VICTIM"

// mainlessMark makes the test binary a program that does not call SuperviseMain.
const mainlessMark = "ANAMNESIS_TEST_MAINLESS"

func TestMain(m *testing.M) {
	if os.Getenv(mainlessMark) != "" {
		mainless()
		os.Exit(0)
	}
	SuperviseMain()
	if command := os.Getenv(victimMark); command != "" {
		victim(command)
	}
	if text := os.Getenv(stageMark); text != "" {
		playStage(text)
	}
	if dir := os.Getenv(anyoneMark); dir != "" {
		anyone(dir)
	}
	os.Exit(m.Run())
}

// victim runs a command until it is killed, and says who supervises it.
func victim(command string) {
	_, err := Run(victimContext(), Command{
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
	{"stopped", `$LONG & until [ "$(tr '\0' ' ' </proc/$!/cmdline)" = "$LONG " ]; do :; done; kill -STOP $!`},
	{"bare environment", `env -i setsid -f $LONG`},
	{"deep", `bash -c "bash -c 'setsid -f $LONG' & setsid $LONG &" &`},
	{"fork chain", `f() { $LONG & ( f2 ) & }; f2() { $LONG & }; f`},
}

// long is a command line that runs forever and that no other process has.
func long(t *testing.T) string {
	t.Helper()
	seconds := 1_000_000 + os.Getpid()%1000*1000 + int(sequence(t))
	return fmt.Sprintf("sleep %d", seconds)
}

// untilRuns is shell text that waits until a line of long runs. The brackets keep
// grep from finding its own arguments.
func untilRuns(line string) string {
	n := strings.TrimPrefix(line, "sleep ")
	return "until grep -qszxe '[" + n[:1] + "]" + n[1:] + "' /proc/[0-9]*/cmdline; do :; done"
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

func shellCommand(text string) Command {
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
			text := "LONG='" + line + "'\n" + shape.text + "\n" + untilRuns(line)
			o, err := Run(t.Context(), shellCommand(text))
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
				t.Errorf("survivors: %v", describeAll(s))
			}
		})
	}
}

func TestNothingSurvivesTheTimeout(t *testing.T) {
	for i, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			if i%4 != 0 && (testing.Short() || os.Getenv("ANAMNESIS_CI") == "") { // CI sets it: these never skip there
				t.Skip("NOT RUN: heavy; .ci/run runs it, or ANAMNESIS_CI=1")
			}
			t.Parallel()
			line := long(t)
			c := shellCommand("LONG='" + line + "'\ntrap '' TERM\n" + shape.text + "\ncat <> <(:)")
			c.Timeout = time.Second
			o, err := Run(t.Context(), c) // the command does not end by itself
			if err != nil {
				t.Fatal(err)
			}
			if !o.TimedOut || o.Exit < 128 || len(o.Alive) > 0 {
				t.Errorf("outcome = %+v", o)
			}
			if s := survivors(t, line); len(s) > 0 {
				t.Errorf("survivors: %v", describeAll(s))
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
				t.Errorf("survivors: %v", describeAll(s))
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
		t.Errorf("survivors: %v", describeAll(s))
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
		t.Errorf("survivors: %v", describeAll(s))
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

// TestRequestKeepsPaths: the supervisor hides and protects the paths it was given,
// UTF-8 or not.
func TestRequestKeepsPaths(t *testing.T) {
	r := request{
		Path: "/bin/sh", Args: []string{"sh", "a\xff"},
		Confine: &confine.Spec{World: "w\xfe", Hidden: []string{"h\xff", "h"}, Protected: []string{"p\xff"}},
	}
	var sent bytes.Buffer
	if err := gob.NewEncoder(&sent).Encode(r); err != nil {
		t.Fatal(err)
	}
	var got request
	if err := gob.NewDecoder(&sent).Decode(&got); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v; want %+v", got, err, r)
	}
}

// A command reads what Stdin holds, and then its end.
func TestStdin(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		fmt.Fprint(w, "one\ntwo\n")
		w.Close()
	}()
	var out []byte
	o, err := Run(t.Context(),
		Command{Path: "/bin/sh", Args: []string{"sh", "-c", "cat; echo end"}, Dir: "/", Timeout: MaxTimeout, Stdin: r,
			Output: func(_ Stream, p []byte) { out = append(out, p...) }})
	if err != nil || o.Exit != 0 || string(out) != "one\ntwo\nend\n" {
		t.Errorf("%q, %+v, %v", out, o, err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("Run did not close its end")
	}
}
