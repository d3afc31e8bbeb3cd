package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"anamnesis/cmd/internal/exit"
)

// layAsked makes a directory with a world and a recording in it.
func layAsked(t *testing.T, words string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "words.yaml"), []byte(words), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runAsked starts a run that asks at a terminal.
func runAsked(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	return atTerminal(t, dir,
		append([]string{"run", "--dir", "w", "--model", "script:words.yaml", "--task", "t"}, append(args, "Go.")...)...)
}

func inWorld(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, "w", name))
	return err == nil
}

// TestAskNetwork: the network is a question of its own, and the word given with
// a no reaches the model.
func TestAskNetwork(t *testing.T) {
	dir := layAsked(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "touch first || curl https://mirror.example.org", network: true}}
  - calls:
      - {name: Bash, arguments: {command: "touch second", network: true}}
  - calls:
      - {name: Bash, arguments: {command: "touch third"}}
  - expect:
      - {on: any, contains: "use the mirror"}
    reply: I saw the word.
`)
	p := runAsked(t, dir, "--no-research-first")
	for _, row := range []struct{ question, answer string }{
		{"  runs touch, curl · asked because approval is ask", "y"},
		{"? Network access of a command", ""},
		{"  it could reach every host · names the host mirror.example.org · asked because approval is ask", "y"},
		{"? Bash", "y"}, {"? Network", "n use the mirror"},
	} {
		if p.sees(row.question); row.answer != "" {
			p.answers(row.answer)
		}
	}
	p.sees("? Bash")
	p.answers("y")
	code, rest := p.ends()
	if code != 0 || !strings.Contains(rest, "I saw the word.") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	if !inWorld(dir, "first") || inWorld(dir, "second") || !inWorld(dir, "third") {
		t.Error("not exactly the approved commands ran")
	}
}

// TestAskOnce: yes is for one call, always for exactly this one. Where a
// script is exchanged between the question and the answer, it does not run; an
// approval of a script ends with its bytes.
func TestAskOnce(t *testing.T) {
	dir := layAsked(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh first"}}
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh second"}}
  - calls:
      - {name: Bash, arguments: {command: "touch between; sh do.sh second"}}
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh second"}}
  - calls:
      - {name: Bash, arguments: {command: "echo 'touch evil' > do.sh"}}
  - calls:
      - {name: Bash, arguments: {command: "sh do.sh second"}}
  - expect:
      - {on: any, contains: "a script that this call runs was changed"}
    reply: That is all.
`)
	script := filepath.Join(dir, "w", "do.sh")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("touch $1")
	p := runAsked(t, dir)
	ask := func(about, answer string) {
		t.Helper()
		p.sees("? Bash")
		if shown := p.answers(answer); !strings.Contains(shown, about) {
			t.Errorf("asked about %q, want %q", shown, about)
		}
	}
	p.sees("? Bash")
	p.sees("to the agent: ")
	write("touch swapped") // while the user looks at it
	p.types("y")
	ask("sh do.sh second", "always")
	ask("touch between", "y")
	// The fourth call is the second again: no user is asked.
	ask("touch evil", "y")
	ask("sh do.sh second", "n no more of that")
	code, rest := p.ends()
	if code != 0 || !strings.Contains(rest, "That is all.") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	if inWorld(dir, "first") || inWorld(dir, "evil") || !inWorld(dir, "swapped") || !inWorld(dir, "between") {
		t.Error("not exactly what was approved ran")
	}
}

// TestAskLines: another line than an answer, typed before the question or at it, is not lost but said to the agent.
func TestAskLines(t *testing.T) {
	dir := layAsked(t, `turns:
  - calls: [{name: Bash, arguments: {command: "touch first"}}]
  - calls: [{name: AskUser, arguments: {question: "Which?"}}]
  - calls: [{name: WriteFile, arguments: {path: third, content: "a\nb\n"}}]
  - expect:
      - {on: all-joined, lacks: "(rejection)"}
      - {on: all-joined, contains: [early words, yes please use tabs, yesterday, the third]}
    reply: I saw the words.
`)
	p := runAsked(t, dir)
	p.keys("early words\n")
	p.sees("? Bash")
	p.answers("")
	for _, typed := range []string{"yes please use tabs", "yesterday"} {
		p.answers(typed)
		p.sees("not an answer")
	}
	p.answers("Y")
	p.sees("? Which?")
	p.types("the third")
	if shown := p.answers("yes"); !strings.Contains(shown, "? WriteFile") || !strings.Contains(shown, "content: a") {
		t.Errorf("asked about %q", shown)
	}
	code, rest := p.ends()
	if code != 0 || !strings.Contains(rest, "I saw the words.") {
		t.Errorf("exit %d:\n%s", code, rest)
	}
	if !inWorld(dir, "first") || !inWorld(dir, "third") {
		t.Error("not exactly what was approved ran")
	}
}

// TestAskInterrupted: however a question ends, the exit code and the last line say so, and the
// terminal has the modes it had.
func TestAskInterrupted(t *testing.T) {
	t.Parallel()
	heavy(t)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // under nohup the program would inherit that it is ignored
	defer signal.Stop(hangups)
	for name, end := range map[string]func(p *terminal){
		"Ctrl-C":  func(p *terminal) { p.keys("\x03") },
		"SIGTERM": func(p *terminal) { _ = p.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":  func(p *terminal) { _ = p.cmd.Process.Signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			p := runAsked(t, layAsked(t, `turns: [{calls: [{name: Bash, arguments: {command: "touch first"}}]}]`))
			p.sees("to the agent: ")
			end(p)
			code, rest := p.ends()
			want, says := exit.Evicted, map[string]string{"SIGTERM": "the program was asked to stop (SIGTERM)",
				"SIGHUP": "the user's terminal was lost"}[name]
			if says == "" {
				want, says = exit.Interrupted, "interrupted"
			}
			if code != want || !strings.Contains(rest, says+"; 'anamnesis resume t' continues it") {
				t.Errorf("exit %d:\n%s", code, rest)
			}
			if p.modes() != p.before {
				t.Error("the terminal has other modes than before")
			}
		})
	}
}

// runBeside runs another task in the directory of a session that waits for its user.
func runBeside(t *testing.T, env []string, world string) {
	t.Helper()
	if out, err := program(t.Context(), env, "jump", "task_1", "0", "--dry-run"); err != nil ||
		!strings.Contains(out, " would jump now: step ") {
		t.Errorf("a jump of an idle session: %v\n%s", err, out)
	}
	words := filepath.Join(filepath.Dir(world), "beside.yaml")
	if err := os.WriteFile(words, []byte("turns: [{reply: Done beside it.}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t.Context(), env, "run", "--dir", world, "--model", "script:"+words, "Look."); err != nil ||
		!strings.Contains(out, "Done beside it.") {
		t.Errorf("a task beside an idle session: %v\n%s", err, out)
	}
}

// TestPassesAlready: a check that passes before anything was done is asked about at a terminal.
func TestPassesAlready(t *testing.T) {
	dir := layAsked(t, "turns:\n  - expect: [{on: any, contains: \"yes, it is\"}]\n    reply: Nothing to do.\n")
	for answer, want := range map[string]struct {
		code int
		text string
	}{
		"yes, it is": {0, "Nothing to do."}, "nice, yes, it is": {0, "Nothing to do."},
		"No.": {6, "stuck: the check passes already, before anything was done"},
		"":    {6, "stuck: the check passes already"},
	} {
		p := atTerminal(t, dir, "run", "--dir", "w", "--model", "script:words.yaml", "--until", "true", "Do nothing.")
		p.sees("the check passes already, before anything was done: 1 of 1 passed")
		p.sees("Is that meant? (no ends the turn)")
		p.types(answer)
		if answer == "" { // it is asked again
			p.sees("your answer (Ctrl-C ends the turn): ") // the first one
			p.sees("your answer (Ctrl-C ends the turn): ")
			p.types("No.")
		}
		if code, text := p.ends(); code != want.code || !strings.Contains(text, want.text) {
			t.Errorf("answer %q: exit %d, want %d:\n%s", answer, code, want.code, text)
		}
	}
}
