package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const askedWords = `turns:
  - calls:
      - {name: Bash, arguments: {command: "touch first"}}
  - reply: I am done.
`

// TestNotifyBell: a question, and the end of the turn, ring the terminal's bell and name themselves there.
func TestNotifyBell(t *testing.T) {
	t.Setenv("VTE_VERSION", "")
	dir := layAsked(t, askedWords)
	if err := os.Mkdir(filepath.Join(dir, ".home"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".home", "config.yaml"), []byte("notify: bell\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := runAsked(t, dir)
	asked := "\a\x1b]9;Anamnesis: asked: May Bash(touch first) run?\x1b\\"
	if before := p.sees("to the agent: "); !strings.Contains(before, asked) {
		p.sees(asked)
	}
	p.types("y")
	p.sees("\a\x1b]9;Anamnesis: done: I am done.\x1b\\")
	if code, rest := p.ends(); code != 0 {
		t.Errorf("exit %d:\n%s", code, rest)
	}
}

// TestNotifyOnScreen: the session that is drawn notifies, too; a notifier that failed is a line at its end.
func TestNotifyOnScreen(t *testing.T) {
	d := onScreen(t, 100, 30, "turns: [{reply: I am done.}]\n")
	if err := os.Mkdir(filepath.Join(d.dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write("home/config.yaml", "notify: ['cat >>../events', 'exit 3']\n")
	d.types("anamnesis --model script:../words.yaml 'Go on.'\n")
	d.sees("I am done.")
	d.awaits("done", "I am done.")
	d.types("/quit\n")
	d.sees("notifier 2 of config.yaml failed: exit status 3")
}

// awaits waits until an event was sent.
func (d *drawn) awaits(event, text string) {
	d.t.Helper()
	d.until("notify "+event, func(string) bool {
		data, err := os.ReadFile(filepath.Join(d.dir, "events"))
		return err == nil && strings.Contains(string(data), `{"event":"`+event+`"`) &&
			strings.Contains(string(data), `"text":"`+text+`"`)
	})
}
