package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/cmd/internal/exit"
)

// terminal is a program at a terminal of its own, with somebody who answers.
type terminal struct {
	t    testing.TB
	cmd  *exec.Cmd
	ours *os.File

	before unix.Termios // the modes it was given

	mu   sync.Mutex
	text string // what it showed since it was looked at last
	more chan struct{}
	done chan struct{}
}

// atTerminal starts the program at a terminal in a state home and a directory of
// its own.
func atTerminal(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+filepath.Join(dir, ".home"),
		"TERM=dumb", "NO_COLOR=1")
	return onTerminal(t, cmd)
}

// onTerminal starts a command at a terminal of its own.
func onTerminal(t testing.TB, cmd *exec.Cmd) *terminal {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("open a terminal: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	p := &terminal{t: t, ours: ours, more: make(chan struct{}, 1), done: make(chan struct{})}
	p.before = p.modes()
	p.cmd = cmd
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, theirs, theirs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		ours.Close()
		<-p.done
	})
	return p
}

func (p *terminal) read() {
	defer close(p.done)
	buf := make([]byte, 4096)
	for {
		n, err := p.ours.Read(buf)
		p.mu.Lock()
		p.text += string(buf[:n])
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return // the last one who had the terminal open has gone
		}
	}
}

// sees waits until the program has shown a text, and gives everything up to it.
func (p *terminal) sees(want string) string {
	p.t.Helper()
	limit := time.NewTimer(waitLimit)
	defer limit.Stop()
	for {
		p.mu.Lock()
		before, after, ok := strings.Cut(p.text, want)
		if ok {
			p.text = after
		}
		shown := p.text
		p.mu.Unlock()
		if ok {
			return before
		}
		select {
		case <-p.more:
		case <-p.done:
			p.mu.Lock()
			ended := !strings.Contains(p.text, want)
			p.mu.Unlock()
			if ended {
				p.t.Fatalf("ended before it showed %q:\n%s", want, shown)
			}
		case <-limit.C:
			p.t.Fatalf("did not show %q within %v:\n%s", want, waitLimit, shown)
		}
	}
}

// types enters a line.
func (p *terminal) types(line string) { p.t.Helper(); p.keys(line + "\n") }

// keys sends characters at once.
func (p *terminal) keys(text string) {
	p.t.Helper()
	if _, err := p.ours.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// answers waits for the prompt of an approval and answers it. It gives what was
// shown before the prompt.
func (p *terminal) answers(line string) string {
	p.t.Helper()
	before := p.sees("to the agent: ")
	p.types(line)
	return before
}

// modes are the terminal's.
func (p *terminal) modes() unix.Termios {
	p.t.Helper()
	modes, err := unix.IoctlGetTermios(int(p.ours.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *modes
}

// ends waits for the program's end and returns its exit code and the rest of what
// it showed.
func (p *terminal) ends() (int, string) {
	p.t.Helper()
	_ = p.cmd.Wait()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.ProcessState.ExitCode(), p.text
}

// TestOfferOllama: without a model's name, what Ollama has is offered before anything is typed; the
// choice is written to config.yaml, and the session begins.
func TestOfferOllama(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(map[string]string{
			"/api/tags":  `{"models":[{"name":"m1"},{"name":"m2"}]}`,
			"/v1/models": `{"data":[{"id":"m1"},{"id":"m2"}]}`,
		}[r.URL.Path]))
	}))
	defer srv.Close()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(),
		func(v string) bool { return strings.Contains(v, "_API_KEY=") || strings.HasPrefix(v, "OPENAI_") }),
		"ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+filepath.Join(dir, "home"), "TERM=xterm-256color", "ANAMNESIS_THEME=dark", "OLLAMA_HOST="+srv.URL)
	p := onTerminal(t, cmd)
	if shown := p.sees("Use which, 1 to "); !strings.Contains(shown, "2  Ollama at "+srv.URL+": m2") {
		t.Errorf("offered:\n%s", shown)
	}
	p.types("2")
	p.sees("Type a request.")
	data, err := os.ReadFile(filepath.Join(dir, "home", "config.yaml"))
	if want := "model: m2\nbase_url: " + srv.URL + "/v1\n"; err != nil || string(data) != want {
		t.Errorf("config.yaml: %q (%v), want %q", data, err, want)
	}
	p.keys("\x03")
	p.sees("again to leave")
	p.keys("\x03")
	if code, text := p.ends(); code != 0 {
		t.Errorf("exit %d:\n%s", code, text)
	}
}

// TestSessionEvicted: a session that was asked to stop within a turn ends with the code that says so.
func TestSessionEvicted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "words.yaml")
	if err := os.WriteFile(script, []byte(`turns: [{calls: [{name: Bash, arguments: {command: "echo begun; exec sleep 100"}}]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "Do it.", "--model", "script:"+script, "--approval", "auto", "--sandbox", "off",
		"--grace", "10ms")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+filepath.Join(dir, "home"),
		"TERM=xterm-256color", "ANAMNESIS_THEME=dark")
	p := onTerminal(t, cmd)
	p.sees("begun")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, text := p.ends(); code != exit.Evicted ||
		!strings.Contains(text, "the program was asked to stop (SIGTERM)") {
		t.Errorf("exit %d:\n%s", code, text)
	}
}
