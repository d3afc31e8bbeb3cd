package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// flood prints about 5 MB a second.
const flood = "while :; do yes 0123456789 | head -c 250000; sleep 0.05; done"

// BenchmarkKeyToScreen measures the time from a key to its letter on a terminal's other
// end, while a command streams 5 MB a second: in a session, and beside it in bash's own
// line editor, on whose terminal the same stream runs.
func BenchmarkKeyToScreen(b *testing.B) {
	b.Run("session", func(b *testing.B) {
		dir := b.TempDir()
		script := "turns:\n  - calls: [{name: Bash, arguments: {command: \"" + flood + "\", timeout: 600}}]\n"
		if err := os.WriteFile(filepath.Join(dir, "words.yaml"), []byte(script), 0o644); err != nil {
			b.Fatal(err)
		}
		world := filepath.Join(dir, "w")
		if err := os.Mkdir(world, 0o755); err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "--approval", "auto", "--model", "script:../words.yaml", "go on then")
		cmd.Dir = world
		cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "HOME="+dir, "ANAMNESIS_HOME="+filepath.Join(dir, "home"), "TERM=xterm-256color", "ANAMNESIS_THEME=dark")
		p := onTerminal(b, cmd)
		if err := unix.IoctlSetWinsize(int(p.ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
			b.Fatal(err)
		}
		p.sees("0123456789")
		keys(b, p, "\x15")
	})
	b.Run("bash", func(b *testing.B) {
		cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", "PS1=$ ", "LC_ALL=C.UTF-8", "HISTFILE=")
		p := onTerminal(b, cmd)
		p.types("trap 'kill %1' EXIT; (" + flood + ") &")
		p.sees("0123456789\r\n0123456789")
		keys(b, p, "\x15")
	})
}

// keys types letters that nothing else shows, and reports the percentiles of the times
// until each is shown. clear empties the line.
func keys(b *testing.B, p *terminal, clear string) {
	letters := []rune("абвгдежзийклмнопрстуфхцчшщъыьэюя")
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		at := i % len(letters)
		if at == 0 {
			p.keys(clear)
			time.Sleep(200 * time.Millisecond) // a letter that stays where it stood is not drawn again
		}
		begun := time.Now()
		p.keys(string(letters[at]))
		for shown := false; !shown; {
			select {
			case <-p.more:
			case <-time.After(20 * time.Second):
				b.Fatalf("the letter %c was not shown; at last:\n%.2000q", letters[at], p.text)
			}
			p.mu.Lock()
			_, after, ok := strings.Cut(p.text, string(letters[at]))
			if shown = ok; ok {
				p.text = after
			} else {
				p.text = p.text[max(0, len(p.text)-8):]
			}
			p.mu.Unlock()
		}
		took = append(took, time.Since(begun))
		time.Sleep(10 * time.Millisecond) // about as fast as a key that is held down
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(ms(took[len(took)-1]), "max-ms")
}
