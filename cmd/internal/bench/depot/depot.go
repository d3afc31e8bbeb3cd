package depot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files of a project. The licence server's is outside its directory.
const (
	configFile  = "build.conf" // one line a choice: name=option
	stagesDir   = "stages"     // one file a finished stage: DECISION-N
	undoingFile = "undoing"    // exists while a choice is being undone by hand
	licenceFile = "licence-server"
)

// undoStages is how many stages one `undo` removes.
const undoStages = 3

// Again may follow any of the project's commands and changes nothing.
const Again = " --again"

// exits of the project's commands.
const (
	exitOK    = 0
	exitDead  = 1 // a dead end
	exitWrong = 2 // not a command for this moment
)

// Project is a puzzle in a directory.
type Project struct {
	*Puzzle
	Dir     string
	Outside string // of effects that no rollback reaches
}

// position is the state of a project.
type position struct {
	pz      *Puzzle
	choices []string
	done    int // finished stages of the last choice
	undoing bool
	locked  bool
	failed  bool // the command just run ended in a dead end
	active  int  // activations made
}

func (pz *Puzzle) position(choices []string, done int) position {
	return position{pz: pz, choices: choices, done: done}
}

// prefix is the choices as a puzzle's map has them.
func (p *position) prefix() string { return strings.Join(p.choices, ",") }

// depth is how many stages the last choice has.
func (p *position) depth() int {
	k := len(p.choices)
	if k == 0 {
		return 0
	}
	return p.pz.Decisions[k-1].Depth[p.prefix()]
}

// open is the index of the decision that is to be made now, -1 for none.
func (p *position) open() int {
	k := len(p.choices)
	if k < len(p.pz.Decisions) && p.done >= p.depth() && !p.undoing {
		return k
	}
	return -1
}

// needsLicence reports whether the next stage is the one that asks for it.
func (p *position) needsLicence() bool {
	return p.pz.Licence && len(p.choices) == 1 && p.done == 1 && p.depth() > 2
}

// State is the choices as every output shows them.
func (pz *Puzzle) State(choices []string) string {
	parts := make([]string, len(choices))
	for i, o := range choices {
		parts[i] = pz.Decisions[i].Name + "=" + o
	}
	if len(parts) == 0 {
		return FreshTree
	}
	return strings.Join(parts, ",")
}

// next is the last two lines of every output: the state and what can come next.
func (p *position) next() string {
	line := func(format string, args ...any) string {
		return "state: " + p.pz.State(p.choices) + "\nnext: " + fmt.Sprintf(format, args...)
	}
	k := len(p.choices)
	switch {
	case p.locked:
		return line("nothing: the licence server is locked")
	case p.failed:
		return line("dead end")
	case p.undoing:
		return line("npm test undo")
	case p.open() >= 0:
		d := p.pz.Decisions[p.open()]
		return line("decision %s: one of %s", d.Name, strings.Join(d.Options, " "))
	case p.done >= p.depth():
		return line("npm test check")
	case p.needsLicence():
		return line("%s (once for all is enough), then npm test stage %s %d", Activate, p.pz.Decisions[k-1].Name, p.done+1)
	}
	return line("npm test stage %s %d", p.pz.Decisions[k-1].Name, p.done+1)
}

// Activate is the command with an effect outside the directory.
const Activate = "curl -X POST https://licence.example/activate"

// Run executes one command line and returns what it prints and its exit code.
// The error is that of a file.
func (w *Project) Run(command string) (out string, exit int, err error) {
	command = strings.TrimSuffix(command, Again)
	pos, err := w.look()
	if err != nil {
		return "", 0, err
	}
	body := w.noise(&pos, command)
	says := func(first string, exit int) (string, int, error) {
		return first + "\n" + body + pos.next() + "\n", exit, nil
	}
	refuse := func(why string) (string, int, error) { return why + "\n" + pos.next() + "\n", exitWrong, nil }
	if command == Activate {
		if pos.active++; pos.active > w.Activations {
			pos.locked = true
		}
		if err := os.WriteFile(filepath.Join(w.Outside, licenceFile), []byte(strconv.Itoa(pos.active)), 0o600); err != nil {
			return "", 0, err
		}
		if pos.locked {
			return says("error[L001]: licence server locked: too many activations", exitDead)
		}
		return fmt.Sprintf("licence activated: %d of %d in use\n%s\n", pos.active, w.Activations, pos.next()), exitOK, nil
	}
	words := strings.Fields(command)
	if len(words) < 3 || words[0] != "npm" || words[1] != "test" {
		return refuse("unknown command")
	}
	args := words[3:]
	switch verb := words[2]; {
	case verb == "status":
		return pos.next() + "\n", exitOK, nil
	case pos.locked:
		return says("error[L001]: licence server locked: too many activations", exitDead)
	case verb == "undo":
		return w.undo(&pos, says)
	case verb == "choose" && pos.open() >= 0 && len(args) == 2 && args[0] == w.Decisions[pos.open()].Name && slices.Contains(w.Decisions[pos.open()].Options, args[1]):
		return w.choose(&pos, args[1], says)
	case verb == "stage" && len(args) == 2 && len(pos.choices) > 0 && pos.done < pos.depth() && args[0] == w.Decisions[len(pos.choices)-1].Name && args[1] == strconv.Itoa(pos.done+1):
		return w.stage(&pos, body, says)
	case verb == "check" && len(pos.choices) == len(w.Decisions) && pos.done >= pos.depth():
		return says("check passed: project "+w.Project+" is repaired", exitOK)
	}
	return refuse("not now")
}

type sayer func(first string, exit int) (string, int, error)

func (w *Project) choose(pos *position, option string, says sayer) (string, int, error) {
	pos.choices, pos.done = append(pos.choices, option), 0
	if err := w.WriteConfig(pos.choices); err != nil {
		return "", 0, err
	}
	return says(w.Decisions[len(pos.choices)-1].Name+" set to "+option, exitOK)
}

// stage makes the next stage. The last stage of a wrong option fails: that is
// the dead end.
func (w *Project) stage(pos *position, body string, says sayer) (string, int, error) {
	k := len(pos.choices) - 1
	d := w.Decisions[k]
	n := pos.done + 1
	if pos.needsLicence() && pos.active == 0 {
		return says("error[L002]: no licence is active", exitWrong)
	}
	if n == pos.depth() && !w.LeadsOn(pos.prefix()) {
		pos.failed = true
		state := w.State(pos.choices[:k])
		if w.Bare {
			state = ""
		}
		return body + fmt.Sprintf("error[%s]: %s in project %s\n%s\n", d.Code, Refusal(d.Name, pos.choices[k], state), w.Project, pos.next()), exitDead, nil
	}
	file := filepath.Join(w.Dir, stagesDir, fmt.Sprintf("%s-%d", d.Name, n))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(file, []byte(body[:min(len(body), 200)]), 0o644); err != nil {
		return "", 0, err
	}
	pos.done = n
	return says(fmt.Sprintf("stage %d of %s done", n, d.Name), exitOK)
}

// undo removes stages of the last choice by hand, and at the end the choice.
func (w *Project) undo(pos *position, says sayer) (string, int, error) {
	if len(pos.choices) == 0 {
		return says("nothing to undo", exitWrong)
	}
	k := len(pos.choices) - 1
	for n := pos.done; n > max(pos.done-undoStages, 0); n-- {
		if err := os.Remove(filepath.Join(w.Dir, stagesDir, fmt.Sprintf("%s-%d", w.Decisions[k].Name, n))); err != nil {
			return "", 0, err
		}
	}
	undoing := filepath.Join(w.Dir, undoingFile)
	if pos.done = max(pos.done-undoStages, 0); pos.done > 0 {
		pos.undoing = true
		if err := os.WriteFile(undoing, []byte("undoing\n"), 0o644); err != nil {
			return "", 0, err
		}
		return says("undone in part", exitOK)
	}
	was := pos.choices[k]
	pos.choices, pos.undoing = pos.choices[:k], false
	if k > 0 {
		pos.done = pos.depth()
	}
	if err := os.Remove(undoing); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", 0, err
	}
	if err := w.WriteConfig(pos.choices); err != nil {
		return "", 0, err
	}
	return says(w.Decisions[k].Name+" "+was+" undone", exitOK)
}

func (w *Project) WriteConfig(choices []string) error {
	var b strings.Builder
	for i, o := range choices {
		fmt.Fprintf(&b, "%s=%s\n", w.Decisions[i].Name, o)
	}
	return os.WriteFile(filepath.Join(w.Dir, configFile), []byte(b.String()), 0o644)
}

// look reads the project's position from its files.
func (w *Project) look() (position, error) {
	pos := position{pz: w.Puzzle}
	data, err := os.ReadFile(filepath.Join(w.Dir, configFile))
	if err != nil {
		return pos, err
	}
	for line := range strings.Lines(string(data)) {
		if _, option, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			pos.choices = append(pos.choices, option)
		}
	}
	if k := len(pos.choices); k > 0 {
		for ; ; pos.done++ {
			if _, err := os.Stat(filepath.Join(w.Dir, stagesDir, fmt.Sprintf("%s-%d", w.Decisions[k-1].Name, pos.done+1))); err != nil {
				break
			}
		}
	}
	_, err = os.Stat(filepath.Join(w.Dir, undoingFile))
	pos.undoing = err == nil
	data, err = os.ReadFile(filepath.Join(w.Outside, licenceFile))
	if err == nil {
		pos.active, err = strconv.Atoi(string(data))
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	pos.locked = pos.active > w.Activations
	return pos, err
}

// noise is the output around what matters: log lines, the same for the same
// command in the same state, with the hint among them where it belongs.
func (w *Project) noise(pos *position, command string) string {
	r := Source{w.Seed}.At(w.State(pos.choices)+"|"+command, 0).Rand()
	var lines []string
	for size := (w.Output[0] + r.IntN(w.Output[1]-w.Output[0]+1)) * BytesPerToken; size > 0; {
		line := noiseLine(r.IntN)
		lines = append(lines, line)
		size -= len(line) + 1
	}
	if w.Hint != "" && len(pos.choices) == 1 && pos.choices[0] == w.HintAt && command == fmt.Sprintf("npm test stage %s %d", w.Decisions[0].Name, w.HintStage) {
		lines = slices.Insert(lines, r.IntN(len(lines)+1), w.Hint)
	}
	return strings.Join(lines, "\n") + "\n"
}

// BytesPerToken is the rule of thumb that model.EstimateUsage counts by.
const BytesPerToken = 4

// noiseLine is one line of a build log that says nothing.
func noiseLine(intN func(int) int) string {
	verbs := []string{"resolving", "linking", "loading", "writing", "reading", "compiling", "packing", "scanning", "merging", "sorting"}
	nouns := []string{"module", "index", "table", "manifest", "segment", "driver", "schema", "header", "bundle", "record"}
	tails := []string{"took", "used", "kept", "moved", "held"}
	return fmt.Sprintf("%s %s %s/%s-%d.js %s %d units", verbs[intN(len(verbs))], nouns[intN(len(nouns))],
		nouns[intN(len(nouns))], nouns[intN(len(nouns))], intN(1000), tails[intN(len(tails))], intN(5000))
}
