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

// flood prints about 5 MB a second, for some minutes at most and while it is read.
const flood = "i=0; while [ $i -lt 6000 ] && yes 0123456789 | head -c 250000; do i=$((i+1)); sleep 0.05; done"

// BenchmarkKeyToScreen measures the time from a key to its letter on a terminal's other
// end, while a command streams 5 MB a second: in a session, and beside it in bash's own
// line editor, on whose terminal the same stream runs. With ANAMNESIS_AGENTS, the folder of
// their programs, it also measures Claude Code and Codex, offline: the same stream runs as a
// command of the user's (!).
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
		cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "HOME="+dir,
			"ANAMNESIS_HOME="+filepath.Join(dir, "home"), "TERM=xterm-256color", "ANAMNESIS_THEME=dark")
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
	agents := os.Getenv("ANAMNESIS_AGENTS")
	if agents == "" {
		return
	}
	for _, o := range []struct {
		name, program, ready string
		files                map[string]string // in the home, whose w is the directory
		env                  []string
	}{
		{name: "claude-code", program: "claude", ready: "❯", env: []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://127.0.0.1:9", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
			files: map[string]string{
				".claude.json": `{"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": {"approved": ["k"]}, "projects": {"HOME/w": {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}}`,
			}},
		{name: "codex", program: "codex", ready: "›", env: []string{"MOCK_KEY=k"},
			files: map[string]string{".codex/config.toml": "model = \"m1\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"http://127.0.0.1:9/v1\"\n" +
				"wire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n[projects.\"HOME/w\"]\ntrust_level = \"trusted\"\n"}},
	} {
		b.Run(o.name, func(b *testing.B) {
			home := b.TempDir()
			for name, text := range o.files {
				path := filepath.Join(home, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOME", home)), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			cmd := exec.Command(filepath.Join(agents, o.program))
			cmd.Dir = filepath.Join(home, "w")
			if err := os.Mkdir(cmd.Dir, 0o755); err != nil {
				b.Fatal(err)
			}
			cmd.Env = append([]string{"HOME=" + home, "TERM=xterm-256color", "LC_ALL=C.UTF-8",
				"PATH=" + os.Getenv("PATH")}, o.env...)
			p := onTerminal(b, cmd)
			if err := unix.IoctlSetWinsize(int(p.ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
				b.Fatal(err)
			}
			if o.name == "codex" { // it asks the terminal where its cursor is
				p.sees("\x1b[6n")
				p.keys("\x1b[1;1R")
			}
			p.sees(o.ready)
			p.keys("ё") // shown once its start has ended
			p.sees("ё")
			for _, text := range []string{"\x15", "!", flood, "\r"} {
				p.keys(text)
				time.Sleep(time.Second) // a key that follows at once is part of a paste
			}
			keys(b, p, "\x15")
		})
	}
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
