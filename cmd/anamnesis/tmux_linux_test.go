package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// drawn is the program on a screen that tmux holds.
type drawn struct {
	t      *testing.T
	socket string
	dir    string // holds words.yaml, the world w and the home
}

// onScreen starts a shell on a screen of its own, in a world beside a recording.
func onScreen(t *testing.T, cols, rows int, words string) *drawn {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatal("this needs tmux, and CI must have it")
		}
		t.Skip("SKIPPED: tmux is not installed, so the interactive terminal is not tested")
	}
	dir, err := os.MkdirTemp("", "seat") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &drawn{t, filepath.Join(dir, "s"), dir}
	if err := os.Mkdir(filepath.Join(dir, "w"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.write("words.yaml", words)
	// A name for the program, which is this test's binary.
	d.write("anamnesis", "#!/bin/sh\nANAMNESIS_TEST_MAIN=1 exec "+os.Args[0]+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(dir, "anamnesis"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.open(cols, rows)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", d.socket, "kill-server").Run() })
	return d
}

// open makes the screen, with a shell.
func (d *drawn) open(cols, rows int) {
	d.t.Helper()
	cmd := exec.Command("tmux", "-S", d.socket, "-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(cols), "-y",
		fmt.Sprint(rows), "sh")
	cmd.Dir = filepath.Join(d.dir, "w")
	cmd.Env = d.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("tmux: %v\n%s", err, out)
	}
	d.until("show a prompt", func(screen string) bool { return strings.TrimSpace(screen) != "" })
}

// env is the environment of the screen's shell.
func (d *drawn) env() []string {
	return append(os.Environ(), "HOME="+d.dir, "ANAMNESIS_HOME="+filepath.Join(d.dir, "home"), "PS1=$ ", "ENV=",
		"LC_ALL=C.UTF-8", "ANAMNESIS_THEME=dark",
		"PATH="+d.dir+":"+os.Getenv("PATH"), "SHELL=/bin/sh", "TMPDIR="+d.dir, "TMUX=", "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
}

// lose ends the screen as a terminal ends that is closed.
func (d *drawn) lose() {
	d.t.Helper()
	server := "/proc/" + strings.TrimSpace(d.tmux("display-message", "-p", "#{pid}"))
	d.tmux("kill-server")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if stat, err := os.ReadFile(server + "/stat"); err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	d.t.Fatal("tmux did not end")
}

func (d *drawn) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *drawn) tmux(args ...string) string {
	d.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", d.socket}, args...)...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// types sends a text, and presses keys by their names.
func (d *drawn) types(text string) {
	d.t.Helper()
	text, enter := strings.CutSuffix(text, "\n")
	d.tmux("send-keys", "-l", text)
	if enter {
		d.press("Enter")
	}
}

func (d *drawn) press(keys ...string) {
	d.t.Helper()
	d.tmux(append([]string{"send-keys"}, keys...)...)
}

// pastes sends a text as a terminal pastes it.
func (d *drawn) pastes(text string) {
	d.t.Helper()
	d.write("paste", text)
	d.tmux("load-buffer", filepath.Join(d.dir, "paste"))
	d.tmux("paste-buffer", "-p")
}

// sees waits until the screen shows each of some texts, and returns it.
func (d *drawn) sees(texts ...string) string {
	d.t.Helper()
	return d.until(fmt.Sprintf("show %q", texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// gone waits until the screen does not show a text any more.
func (d *drawn) gone(text string) {
	d.t.Helper()
	d.until("stop showing "+text, func(screen string) bool { return !strings.Contains(screen, text) })
}

// answered waits until the screen shows each of some texts and nothing runs any more: the
// last text of a turn is on the screen before the turn has ended.
func (d *drawn) answered(texts ...string) {
	d.t.Helper()
	d.until(fmt.Sprintf("show %q and come to rest", texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return !strings.Contains(screen, " · Esc interrupts")
	})
}

// prompted waits until the last row is the shell's prompt: a program that is ending reads the keys that come before.
func (d *drawn) prompted() {
	d.t.Helper()
	d.until("return to the shell", func(screen string) bool { return strings.HasSuffix(strings.TrimSpace(screen), "\n$") })
}

func (d *drawn) until(what string, ok func(screen string) bool) string {
	d.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var screen string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if screen = d.tmux("capture-pane", "-p"); ok(screen) {
			return screen
		}
	}
	d.t.Fatalf("the screen did not %s:\n%s", what, screen)
	return ""
}

// What differs from run to run on a screen.
var fleeting = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`), "*"},
	{regexp.MustCompile(`  \d+ s`), "  N s"},
	{regexp.MustCompile(` · [\d.]+ s\b`), ""},
	{regexp.MustCompile(`  [\d.]+ s$`), ""},
	{regexp.MustCompile(` · \d+s\b`), ""},
	{regexp.MustCompile(`[\d.]+k? of ([\d.]+k?) EAS`), "N of $1 EAS"},
	{regexp.MustCompile(`[\d.]+k? tokens`), "N tokens"},
}

// steady is what a screen shows without what differs from run to run.
func steady(screen string) string {
	var lines []string
	for l := range strings.SplitSeq(strings.TrimRight(screen, "\n"), "\n") {
		for _, f := range fleeting {
			l = f.what.ReplaceAllString(l, f.with)
		}
		lines = append(lines, strings.TrimRight(l, " "))
	}
	lines = lines[max(0, len(lines)-steadyLines):] // how far it has scrolled differs, too
	return strings.TrimLeft(strings.Join(lines, "\n"), "\n") + "\n"
}

// steadyLines is how much of a screen is compared, from its end.
const steadyLines = 14

// golden waits until the screen is the one that is kept. UPDATE_GOLDEN=1 keeps the one
// that comes to rest.
func (d *drawn) golden(name string) {
	d.t.Helper()
	path := filepath.Join("testdata", "screen", name+".txt")
	if os.Getenv("UPDATE_GOLDEN") == "" {
		want, err := os.ReadFile(path)
		if err != nil {
			d.t.Fatal(err)
		}
		d.until("become "+path+":\n"+string(want)+"\nbut was",
			func(screen string) bool { return steady(screen) == string(want) })
		return
	}
	same, last := 0, ""
	d.until("come to rest", func(screen string) bool {
		if now := steady(screen); now != last {
			same, last = 0, now
		}
		same++
		return same > 25
	})
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(last), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

const (
	keysOffered = "? help"                                    // from when on they are answers
	holdOn      = "until [ -e ../w/go ]; do sleep 0.02; done" // a test makes the file
)

// numbered is a text of n lines.
func numbered(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("line %d\n", i+1)
	}
	return text
}

// TestSeat plays a session: a request, an approval with a diff, words while the agent
// works, a refusal with words, a jump by the list, another task while it waits, and another
// process that continues.
func TestSeat(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 80, 30, `turns:
  - reply: "I shall write **parse.go**.\n\n1. write\n2. test\n"
    calls: [{name: WriteFile, arguments: {path: parse.go, content: "package main\n\nfunc parse() int {\n\treturn 1\n}\n"}}]
  - calls:
      - {name: Bash, arguments: {command: "printf 'a\\rb\\nbegun\\n..'; `+holdOn+`; seq 40; exit 3"}}
      - {name: Bash, arguments: {command: "cd ."}}
  - expect: [{on: last, contains: mind the tests please}]
    calls: [{name: StrReplaceFile, arguments: {path: parse.go, old: return 1, new: return 2}}]
  - expect: [{on: any, contains: leave it at one}]
    calls: [{name: Bash, arguments: {command: "ls *.go | grep parse"}}]
  - calls: [{name: Bash, arguments: {command: "grep -c return parse.go && ls"}}]
  - reply: "It stays at **1**."
  - expect: [{on: any, contains: go on then}]
    reply: "I went on."
  - calls: [{name: WriteFile, arguments: {path: long.txt, content: "`+strings.ReplaceAll(numbered(50), "\n", `\n`)+`"}}]
  - reply: "That was long."
`)
	d.types("anamnesis --no-final-pass --model script:../words.yaml\n")
	d.sees("/help · @file")
	d.types("fix the parser\n")
	d.sees("? WriteFile", keysOffered)
	d.golden("approve")
	d.types("y")
	d.sees("? Bash", keysOffered)
	d.golden("command")
	d.types("y")
	d.sees("│ b\n", "│ begun", "│ ..")
	d.types("mind the tests\n")
	d.sees("queued: mind the tests")
	d.golden("queued")
	d.press("Up")
	d.gone("queued:")
	d.types(" please\n")
	d.sees("queued: mind the tests please")
	d.types("/diff\n") // what only reads does not wait
	d.sees("/diff\ndiff --git", "return 1\n+}", "│ begun")
	d.write("w/go", "")
	d.sees("exit 3", "$ cd .", "1 message queued", keysOffered)
	d.types("y")
	d.sees("> mind the tests please", "? StrReplaceFile", keysOffered)
	d.types("n")
	d.sees("the reason, for the model")
	d.types("leave it at one\n")
	d.sees("? Bash", "p ls *, grep *", keysOffered)
	d.golden("pattern")
	d.types("p") // and the command that fits it is not asked about
	d.sees("It stays at 1.", "── 2 files changed: go, parse.go", "\n>")
	d.golden("refused")
	runBeside(t, d.env(), filepath.Join(d.dir, "w"))
	d.sees("! another process works in this directory now;")
	d.press("Escape")
	d.sees("Esc again to jump back")
	d.press("Escape")
	d.sees("Jump to the end of a step")
	d.golden("steps")
	d.press("End")
	d.sees("❯ ● 0")
	d.press("Enter")
	d.sees("Jump to step 0?")
	d.golden("plan")
	d.press("Enter")
	d.sees("jump from step 6 to step 0: 1 file changed", "1 jump")
	d.golden("jumped")
	if inWorld(d.dir, "parse.go") {
		t.Error("the file stands after the jump")
	}
	d.types("/compact\n")
	d.sees("nothing to compact: a block would be longer")
	d.types("half a line")
	d.sees("> half a line")
	d.press("C-c")
	d.sees("cleared; ↑ brings it back")
	d.press("C-c")
	d.sees("Ctrl-C again to leave")
	d.press("C-c")
	d.sees("'anamnesis -c' continues it", "\n$")
	d.tmux("send-keys", "-R")
	d.tmux("clear-history")
	d.types("clear; anamnesis -c 'go on then'\n")
	d.sees("I went on.", "\n>")
	d.golden("continued")
	d.types("/undo\n")
	d.sees("! /undo: no step on this path changed a file; /jump")
	d.write("w/mine", "")
	d.types("write it\n")
	d.sees("the user changed 1 file: mine", "? WriteFile", "v view all · "+keysOffered)
	d.types("v")
	d.sees("+ line 50\n  asked because approval is ask\n─")
	d.types("y")
	d.sees("That was long.", "── 1 file changed: long.txt", "\n>") // not the user's
	if all := d.tmux("capture-pane", "-p", "-S", "-"); strings.Count(all, "line 50\n") != 1 || strings.Count(all, "? WriteFile\n") != 1 || !strings.Contains(all, "+50 -0\n"+regexp.MustCompile(`(?m)^line (\d+)$`).ReplaceAllStringFunc(numbered(50), func(l string) string {
		return fmt.Sprintf("  %2s + %s", strings.TrimPrefix(l, "line "), l)
	})) {
		t.Errorf("the text is not above the question once, and in order:\n%s", all)
	}
	d.types("!anamnesis tasks\n")
	d.sees("│ task_1_fix_the_parser        open ", "│ fix the parser\n") // its first request
	d.types("/quit\n")
	d.sees("continues it\n$")
}

// TestSeatNarrow: 40 columns, a paste that stays one piece, another size, an interrupt
// while a command runs, after which -c waits, and a line that leaving does not lose.
func TestSeatNarrow(t *testing.T) {
	t.Parallel()
	heavy(t)
	d := onScreen(t, 40, 20, `turns:
  - calls: [{name: Bash, arguments: {command: "echo begun; `+holdOn+`"}}]
  - expect: [{on: last, contains: "and then more!"}]
    reply: Never said.
`)
	d.types("anamnesis --approval auto --model script:../words.yaml\n")
	d.sees("/help · @file")
	d.types("say: ")
	d.pastes(strings.Repeat("a pasted line\n", 9) + "end")
	d.sees("[paste 1: 10 lines]")
	d.golden("paste")
	d.press("Enter")
	d.sees("  a pasted line\n  … 3 lines, 134 B in all\n  a pasted line\n  end\n", "│ begun")
	d.types("and then")
	d.tmux("resize-window", "-x", "60", "-y", "20")
	d.until("use the new width", func(screen string) bool {
		return strings.Contains(screen, "\n"+strings.Repeat("─", 60)+"\n> and then")
	})
	d.tmux("resize-window", "-x", "30", "-y", "20")
	d.until("draw one rule above the line", func(screen string) bool {
		return strings.Contains(screen, "\n"+strings.Repeat("─", 30)+"\n> and then") &&
			!strings.Contains(screen, "─\n─")
	})
	d.tmux("resize-window", "-x", "60", "-y", "20")
	d.sees("\n" + strings.Repeat("─", 60) + "\n> and then")
	d.press("C-c")
	// Not the rows above: when a screen that is not full becomes narrower, tmux moves its first rows
	// into the history, those of a running call, too, and back later. A program cannot change them there.
	line := "\n" + strings.Repeat("─", 60) + "\n"
	d.sees("\n  │ begun\n  │ You interrupted it while it ran: it may have taken\n  │ effect in part.\ninterrupted · everything so far is recorded; type to\ncontinue\n",
		line+"> and then"+line+"auto · ", " EAS · step 1\n")
	d.gone("again to leave")
	d.press("C-z")
	d.sees("\n$")
	d.types("fg\n")
	d.until("go on", func(screen string) bool {
		_, after, ok := strings.Cut(screen, "$ fg")
		return ok && strings.Contains(after, "> and then")
	})
	d.types(" more")
	d.press("C-c")
	d.sees("cleared")
	d.press("C-c", "C-c")
	d.sees("continues it\n$")
	d.types("clear; anamnesis -c\n") // the user ended the turn, so nothing runs
	d.sees("  a pasted line\n  end", "│ begun", "interrupted ·", "\n>")
	d.press("Up")
	d.sees("> and then more")
	d.write("w/mine", "")
	d.types("!")
	d.press("Enter") // a request: it does not begin with the mark
	d.sees("the user changed 1 file: mine", "Never said.")
	if screen := d.sees(" tokens\n"); strings.Contains(screen, "file changed: ") {
		t.Errorf("the user's file counts to the turn:\n%s", screen)
	}
	d.types("kept")
	d.sees("> kept")
	d.press("C-c", "C-c", "C-c")
	d.sees("continues it\n$")
	d.types("clear; anamnesis -c\n") // it was answered, so nothing runs
	d.sees("Never said.", "auto · ")
	d.press("Up")
	d.sees("> kept")
}

// TestSeatLost: a terminal that is lost finishes the call that runs and begins no other;
// what was typed is kept, and -c goes on.
func TestSeatLost(t *testing.T) {
	t.Parallel()
	heavy(t)
	d := onScreen(t, 80, 24, `turns:
  - calls:
      - {name: Bash, arguments: {command: "echo begun; `+holdOn+`; sleep 0.5; echo whole > whole"}}
      - {name: Bash, arguments: {command: "touch second"}}
  - expect: [{on: result, contains: "Not run: the user's terminal was lost."}]
    reply: It is done.
`)
	d.types("anamnesis --no-final-pass --approval auto --model script:../words.yaml 'do it'\n")
	d.sees("│ begun")
	d.types("half a line")
	d.sees("> half a line")
	d.lose()
	d.write("w/go", "")
	d.open(80, 24)
	d.types("until anamnesis tasks | grep interrupted; do sleep 0.1; done\n")
	d.sees("interrupted   ")
	if !inWorld(d.dir, "whole") || inWorld(d.dir, "second") {
		t.Error("the call that ran was not finished, or another was begun")
	}
	d.types("clear; anamnesis -c\n")
	d.sees("continues at step 1", "It is done.", "── 1 file changed: whole", "\n>") // those before, too
	d.press("Up")
	d.sees("> half a line")
}

// TestSeatCommand: a project's command is offered while it is typed, shown to the user before it is used for the
// first time, and then becomes the request.
func TestSeatCommand(t *testing.T) {
	t.Parallel()
	heavy(t)
	d := onScreen(t, 100, 40, `turns:
  - expect: [{contains: "Mend issue 12 in the parser."}]
    reply: Mended.
  - expect: [{contains: "Mend issue 13 in ."}]
    reply: Mended again.
`)
	if err := os.MkdirAll(filepath.Join(d.dir, "w/.claude/commands"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.write("w/.claude/commands/fix.md",
		"---\ndescription: Mends an issue\nargument-hint: [issue] [where]\n---\nMend issue $1 in $2.\n")
	d.types("anamnesis --model script:../words.yaml\n")
	d.sees("\n>")
	d.types("/fi")
	d.sees("/fix        [issue] [where] Mends an issue")
	d.types("x 12 'the parser'\n")
	d.sees("Mend issue $1 in $2.\n", "Use them, as they and the files beside them are now?", "y approve · n not")
	d.types("y")
	d.answered("Mended.")
	d.types("/fix 13\n")
	d.answered("Mended again.")
	d.types("/fx\n")
	d.sees("! /fx is not a command")
}

// TestSeatUndo: /compact replaces a long step by a block, /why lists the block, and /undo
// takes back the last change to files, not the answer after it. A user's file that a jump keeps is
// not counted to the turn.
func TestSeatUndo(t *testing.T) {
	t.Parallel()
	heavy(t)
	d := onScreen(t, 100, 40, `turns:
  - calls: [{name: Bash, arguments: {command: "seq 3000"}}]
  - calls: [{name: Bash, arguments: {command: "echo second"}}]
  - calls: [{name: WriteFile, arguments: {path: notes.md, content: "one\n"}}]
  - calls: [{name: WriteFile, arguments: {path: later.md, content: "two\n"}}]
  - reply: Both are written.
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: start over}}]
  - calls: [{name: WriteFile, arguments: {path: again.md, content: "three\n"}}]
  - reply: It is written again.
passes:
  - reply: |
      {"failure_causes": [], "falsified": [], "findings": [{"text": "seq counts", "ops": [8]}], "verified": [], "untried": [], "advice": [], "cards": []}
`)
	d.types("anamnesis --no-final-pass --approval auto --model script:../words.yaml 'write both'\n")
	d.sees("Both are written.", "── 2 files changed: later.md, notes.md", "\n>")
	d.sees("in all: /out 1\n")
	d.types("/model\n")
	d.sees("model script:words.yaml · /model NAME changes it")
	d.types("/out 3\n")
	d.sees("! /out 3: the step ran no command; these steps did: 1-2")
	d.types("/out 1\n")
	d.sees("\n2980\n", "\n3000\nexit 0")
	d.types("/compact\n")
	screen := d.sees("the context has ", "/why lists it")
	if strings.Contains(screen, "nothing to compact") {
		t.Errorf("nothing was compacted:\n%s", screen)
	}
	d.types("/why\n")
	d.sees("ANAMNESIS_BLOCK")
	d.types("/context\n")
	d.sees("/context\n", "ANAMNESIS_BLOCK")
	d.types("/blame notes.md:1\n")
	d.sees("1  task_1_write_both@3  one\n", "\nstep 3 of ", "you      \"write both\" (op 2)",
		"call     WriteFile(notes.md) (op ", "undo     anamnesis jump ")
	d.types("/blame none.md\n")
	d.sees("none.md: no such file or directory")
	d.types("/search second\n")
	d.sees("step 2 · ", "Bash echo second", "\n  /jump 2\n")
	d.types("/search nowhere\n")
	d.sees("nothing found; sessions of other agents")
	d.types("/search *\n")
	d.sees("/search: no word to look for")
	d.types("/undo\n")
	d.sees("would jump now: step 5 to step 3", `delete  "later.md"`, "Jump to step 3?")
	d.press("Enter")
	d.sees("jump from step 5 to step 3: 1 file changed", "1 jump")
	if inWorld(d.dir, "later.md") || !inWorld(d.dir, "notes.md") {
		t.Error("the last change was not taken back, or more than it")
	}
	d.write("w/mine", "")
	d.types("again\n")
	d.sees("  why:     start over – tried: Bash(seq 3000)\n", "It is written again.", "── 1 file changed: again.md", "\n>") // the user's file is not the turn's
	d.types("/quit\n")
	d.sees("continues it\n$")
	d.tmux("send-keys", "-R")
	d.types("clear; anamnesis -c\n")
	d.sees("● WriteFile again.md", "It is written again.", "\n>")
	d.types("/quit\n")
	d.sees("continues it\n$")
}

// TestSeatWorktree: a second session works beside one that waits, in a worktree of its directory; what it changed comes
// back after a look, while both are open. A session without a request leaves no worktree.
func TestSeatWorktree(t *testing.T) {
	d := onScreen(t, 100, 40, `turns:
  - calls: [{name: WriteFile, arguments: {path: new.txt, content: "new\n"}}]
  - reply: Worked.
`)
	d.types("git init -q && git -c user.name=n -c user.email=n@x commit -q --allow-empty -m one && echo commit''ted\n")
	d.sees("committed")
	d.types("anamnesis --worktree fix --model script:../words.yaml --approval auto --task one\n")
	d.sees("w-forks/fix: a git worktree of", "Type a request")
	d.types("Please work.\n")
	d.answered("Worked.")
	d.tmux("split-window", "-c", filepath.Join(d.dir, "w"), "sh")
	d.types("clear; anamnesis apply one\n")
	d.sees("+new", "apply these changes to", "[y/N]")
	d.types("y\n")
	d.sees("1 written, 0 deleted", "to go back: anamnesis world restore", "to remove the worktree: git -C")
	d.types("clear; cat new.txt; exit\n")
	d.sees("script:words.yaml · auto") // the first pane, once the shell of the second has ended
	d.types("/quit\n")
	d.sees("'anamnesis resume one' continues it", "'anamnesis apply one' shows its changes")
	d.prompted()
	d.types("clear; anamnesis --worktree --model script:../words.yaml\n")
	d.sees("w-forks/1", "Type a request")
	d.types("/quit\n")
	d.prompted()
	d.types("clear; ls ../w-forks; git worktree list | wc -l; echo lis''ted\n")
	if screen := d.sees("listed"); !strings.Contains(screen, "fix\n2\n") {
		t.Errorf("an unused worktree is left:\n%s", screen)
	}
}

// TestSeatOutput: a failed test's long output is folded around the failure, thoughts are one line, the todo list is a
// list, Ctrl-R finds an earlier message, and a line that is no command is sent as text at the second Enter.
func TestSeatOutput(t *testing.T) {
	d := onScreen(t, 90, 45, `turns:
  - reasoning: "The tests say more.\nSo I run them.\nThen I see."
    calls:
      - {name: Bash, arguments: {command: "cat tests; exit 1"}}
      - {name: SetTodoList, arguments: {todos: [{title: read it, status: done}, {title: mend it, status: in_progress}, {title: test it, status: pending}]}}
  - reply: Parse is wrong.
  - expect: [{on: any, contains: /nothing here}]
    reply: It is text.
  - reply: Again.
`)
	var tests strings.Builder
	for i := range 60 {
		fmt.Fprintf(&tests, "=== RUN   TestPass%d\n--- PASS: TestPass%d (0.00s)\n", i, i)
		if i == 30 {
			tests.WriteString(
				"=== RUN   TestParse\n    parse_test.go:12: Parse(1) = 2, want 3\n--- FAIL: TestParse (0.00s)\n")
		}
	}
	d.write("w/tests", tests.String()+"FAIL\nFAIL\texample.com/parse\t0.004s\nFAIL\n")
	d.types("anamnesis --model script:../words.yaml --approval auto --no-final-pass\n")
	d.sees("Type a request")
	d.types("What fails?\n")
	d.answered("∴ The tests say more. So I run them. Then I see.", "3 lines: /thoughts", "│ === RUN   TestPass0\n",
		" lines\n", "│     parse_test.go:12: Parse(1) = 2, want 3\n",
		"│ --- FAIL: TestParse", " in all: /out 1", "│ FAIL    example.com/parse    0.004s", "☑ read it", "▸ mend it", "☐ test it", "Parse is wrong.")
	d.types("/thoughts\n")
	d.sees("∴ step 1", "\nSo I run them.\n")
	d.types("/nothing here\n")
	d.sees("/nothing is not a command · Enter again sends it as text", "\n> /nothing here")
	d.press("Enter")
	d.answered("It is text.")
	d.press("C-r")
	d.types("FAILS")
	d.sees("\n> What fails?", "search: FAILS")
	d.press("C-r")
	d.sees("no earlier message has: FAILS")
	d.press("C-c")
	d.gone("no earlier message")
	d.press("C-r")
	d.types("what\n")
	d.answered("Again.")
}
