//go:build unix

package term

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// quiet is how long no key must have come before a question takes one: a user who
// types a line when the question appears must not answer it.
const quiet = 250 * time.Millisecond

// What turns the marking of pasted text on and off.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

// Keyboard shares a terminal between lines that steer a task and questions that
// are answered with keys. Between questions the terminal edits lines by itself.
// While a question is open, and until a line that it interrupted is complete, keys
// are read as they come; signals and output stay as the terminal has them. The
// terminal's own modes are put back when Close returns, when the context of
// NewKeyboard ends, and around signals that stop or end the process.
type Keyboard struct {
	in    *os.File
	out   io.Writer
	paste bool // the terminal marks pasted text

	asking sync.Mutex // held by the session that is open

	mu      sync.Mutex
	modes   *unix.Termios // of the terminal, while keys are read
	signals chan os.Signal
	ended   bool
	say     func(string)
	early   []string // lines typed before there was a say
	line    line     // being typed
	session *Session // nil: none is open
}

// NewKeyboard reads a terminal until the process ends: a read cannot be called back.
func NewKeyboard(ctx context.Context, in *os.File, out io.Writer) *Keyboard {
	name := os.Getenv("TERM")
	k := &Keyboard{in: in, out: out, paste: name != "" && name != "dumb"}
	context.AfterFunc(ctx, k.Close)
	go k.read()
	return k
}

func (k *Keyboard) read() {
	buf := make([]byte, 4096)
	held := 0 // bytes of a character that is not complete
	for {
		n, err := k.in.Read(buf[held:])
		n += held
		for held = 0; held < min(n, utf8.UTFMax-1) && !utf8.FullRune(buf[n-held-1:n]); held++ {
		}
		if data := append([]byte(nil), buf[:n-held]...); len(data) > 0 {
			k.take(data)
		}
		copy(buf, buf[n-held:n])
		if err != nil {
			k.Close()
			return
		}
	}
}

// take returns what was read to the session that is open, or to the line.
func (k *Keyboard) take(data []byte) {
	k.mu.Lock()
	s := k.session
	if s == nil {
		k.steerLocked(data, k.modes != nil)
		if k.modes != nil && len(k.line.text) == 0 {
			k.lines()
		}
	}
	k.mu.Unlock()
	if s != nil {
		select {
		case s.typed <- data:
		case <-s.closed:
			k.take(data)
		}
	}
}

// steerLocked adds to the line that is typed, and says it when it is complete.
func (k *Keyboard) steerLocked(data []byte, echo bool) {
	out := io.Discard
	if echo {
		out = k.out
	}
	for _, text := range k.line.add(out, data) {
		switch {
		case text == "":
		case k.say != nil:
			k.say(text)
		default:
			k.early = append(k.early, text)
		}
	}
}

// Steer has lines that answer no question go to say, those typed before included;
// nil: they wait again.
func (k *Keyboard) Steer(say func(string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.say = say; say == nil {
		return
	}
	for _, text := range k.early {
		say(text)
	}
	k.early = nil
}

// Close puts the terminal's modes back. Open questions end without an answer, and
// there are no later ones.
func (k *Keyboard) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return
	}
	k.ended = true
	if k.session != nil {
		k.session.end()
	}
	if k.modes != nil && len(k.line.text) > 0 {
		fmt.Fprintf(k.out, "\n(not sent: %s)\n", Clean(string(k.line.text)))
	}
	k.lines()
}

// keys has keys come as they are typed. The lock is held.
func (k *Keyboard) keys() error {
	if k.modes != nil || k.ended {
		return nil
	}
	modes, err := unix.IoctlGetTermios(int(k.in.Fd()), getTermios)
	if err != nil {
		return err
	}
	raw := *modes
	raw.Lflag &^= unix.ICANON | unix.ECHO
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(k.in.Fd()), setTermios, &raw); err != nil {
		return err
	}
	k.modes = modes
	if k.paste {
		fmt.Fprint(k.out, pasteOn)
	}
	k.signals = make(chan os.Signal, 1)
	signal.Notify(k.signals, syscall.SIGTSTP, syscall.SIGQUIT)
	go k.watch(k.signals)
	return nil
}

// lines puts the terminal's own modes back. The lock is held.
func (k *Keyboard) lines() {
	if k.modes == nil {
		return
	}
	if k.paste {
		fmt.Fprint(k.out, pasteOff)
	}
	_ = unix.IoctlSetTermios(int(k.in.Fd()), setTermios, k.modes) // the terminal may be gone
	k.modes = nil
	signal.Stop(k.signals)
	close(k.signals)
}

// watch puts the modes back before a signal stops or ends the process.
func (k *Keyboard) watch(signals chan os.Signal) {
	sig, ok := <-signals
	if !ok {
		return
	}
	k.mu.Lock()
	k.lines()
	k.mu.Unlock()
	if sig != syscall.SIGTSTP {
		signal.Reset(sig)
		_ = unix.Kill(os.Getpid(), sig.(syscall.Signal))
		return
	}
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	<-goOn
	signal.Stop(goOn)
	k.mu.Lock()
	defer k.mu.Unlock()
	if (k.session != nil || len(k.line.text) > 0) && k.keys() == nil && k.session != nil { // keys starts the next watch
		fmt.Fprint(k.out, "\n"+k.session.shown)
	}
}
