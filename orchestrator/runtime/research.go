package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/research"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// investigateTool is the tool that records research; where a task has no such
// tool nothing is held back for want of it.
const investigateTool = "investigate"

// Limits of what is looked at for research.
const (
	maxLookedBack = 256      // operations before a result, for its call; and before now, for results to cite
	maxCitable    = 5        // results named as such
	maxWorldFiles = 5_000    // files of the world searched for a name
	maxWorldBytes = 64 << 20 // bytes of them
	maxWorldFile  = 1 << 20  // of one: larger ones are passed over
)

// researched splits what a call is about into what was looked up, with the
// records, and what was not.
func (t *Task) researched(c op.Call) (done []string, records []uint64, missing []research.Subject) {
	if t.state.Opened.NoResearch {
		return nil, nil, nil
	}
	if _, ok := t.tools.Spec(investigateTool); !ok {
		return nil, nil, nil
	}
	rules := research.Rules{KnownHost: t.knowsHost, KnownModel: t.knowsModel, Listed: t.lists}
	for _, p := range t.state.Opened.Guarded {
		rules.Patterns = append(rules.Patterns, loop.Pattern{Tool: p.Tool, Command: p.Command})
	}
	now := t.researchNow()
	for _, s := range rules.Subjects(c.Name, c.Args) {
		if seq := now.Record(s); seq > 0 {
			done, records = append(done, s.ID), append(records, seq)
			continue
		}
		missing = append(missing, s)
	}
	return done, records, missing
}

// researchNow is what was looked up so far, by the calls of this reply, too.
func (t *ledger) researchNow() state.Research {
	var r state.Research
	t.journal.Look(func(_ journal.Public, queue []op.Op) {
		r.Done = maps.Clone(t.state.Research.Done)
		for _, o := range queue {
			r.Fold(o)
		}
	})
	return r
}

// knowsHost: the user named it, or the world does.
func (t *place) knowsHost(host string) bool {
	return t.state.Research.Hosts[host] || t.worldNames(host)
}

// knowsModel: the EAS table has it, or the world names it.
func (t *place) knowsModel(name string) bool {
	return name == t.state.Model || t.opts.KnownModel != nil && t.opts.KnownModel(name) || t.worldNames(name)
}

// lists reports whether the world's files list a package: package.json names
// it, or it is installed there.
func (p *place) lists(kind, name string) bool {
	root, err := p.worldRoot()
	if err != nil || kind != "npm" {
		return false
	}
	if _, err := root.Stat("node_modules/.bin/" + name); err == nil {
		return true
	}
	f, err := root.Open("package.json")
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxWorldFile))
	return err == nil && bytes.Contains(data, []byte(`"`+name+`"`))
}

var errFound = errors.New("found")

// worldNames reports whether a file of the world holds a text, in any case. It
// looks at a bounded part of a large world.
func (p *place) worldNames(text string) bool {
	root, err := p.worldRoot()
	if err != nil {
		return false
	}
	want := []byte(strings.ToLower(text))
	files, left := 0, int64(maxWorldBytes)
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read names nothing
		}
		if d.IsDir() && (path == ".git/objects" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if files++; files > maxWorldFiles || left <= 0 {
			return fs.SkipAll
		}
		f, err := root.Open(path)
		if err != nil {
			return nil
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, min(maxWorldFile+1, left)))
		left -= int64(len(data))
		if err == nil && len(data) <= maxWorldFile && bytes.Contains(bytes.ToLower(data), want) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// researchRefusal tells the model what to look up, and how.
func (t *Task) researchRefusal(name string, missing []research.Subject) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s was not run: research first. This call is about something new to this task:", name)
	for _, s := range missing {
		fmt.Fprintf(&sb, "\n- %s", s)
		if s.Look != "" {
			fmt.Fprintf(&sb, " (`%s` only looks)", s.Look)
		}
		fmt.Fprintf(&sb, ": investigate with subject %q", s.ID)
	}
	sb.WriteString("\nLook it up, then call investigate once for each, with what you found and the numbers of the operations that show it; then make this call again.")
	if looks := t.citable(op.Range{First: t.state.Last - min(t.state.Last-1, maxLookedBack), Last: t.state.Last}); len(looks) > 0 {
		fmt.Fprintf(&sb, " Of what you have seen so far you could cite %s.", strings.Join(looks, ", "))
	}
	return sb.String()
}

// citable names results of a range that can be cited, the last ones.
func (t *Task) citable(r op.Range) []string {
	ops, err := t.ops(r)
	if err != nil {
		return nil // the list is a help and not a promise
	}
	var out []string
	for i, o := range ops {
		if b, ok := o.Body.(*op.ToolReturned); ok {
			if args, why := t.look(b, ops[:i]); why == "" {
				out = append(out, fmt.Sprintf("op %d (%s)", o.Seq, notice.OneLine(tool.Display(op.Call{Name: b.Name, Args: args}, t.Dir), notice.MaxDelivered)))
			}
		}
	}
	return out[max(0, len(out)-maxCitable):]
}

// look returns the arguments of a call that succeeded and only looked, or says
// why it did not. before are the operations before its result.
func (t *toolset) look(b *op.ToolReturned, before []op.Op) (args, why string) {
	spec, _ := t.tools.Spec(b.Name)
	switch {
	case b.Refused:
		return "", "was refused"
	case b.Unknown:
		return "", "has an unknown outcome"
	case b.Exit != nil && *b.Exit != 0:
		return "", fmt.Sprintf("failed (exit %d)", *b.Exit)
	case b.IsError:
		return "", "failed"
	case spec.Silent:
		return "", "shows nothing that was there before"
	}
	for _, o := range slices.Backward(before) {
		if c, ok := o.Body.(*op.ToolCalled); ok && c.Call == b.Call {
			args = c.Args
			break
		}
	}
	if spec.ReadOnly || spec.Command != "" && research.Looks(args) {
		return args, ""
	}
	return "", "may have done more than look"
}

// taskEvidence is what the tool investigate sees of the task.
type taskEvidence struct{ t *Task }

// Cite finds the first of some operations that is a look.
func (e taskEvidence) Cite(cites []uint64) (uint64, error) {
	t := e.t
	last, _ := t.journal.Log().Last()
	var faults []string
	for _, seq := range cites {
		if seq == 0 || seq > last {
			faults = append(faults, fmt.Sprintf("op %d does not exist", seq))
			continue
		}
		ops, err := t.ops(op.Range{First: seq - min(seq-1, maxLookedBack), Last: seq})
		if err != nil {
			return 0, fmt.Errorf("op %d cannot be read: %w", seq, err)
		}
		cited := ops[len(ops)-1]
		b, ok := cited.Body.(*op.ToolReturned)
		if !ok {
			faults = append(faults, fmt.Sprintf("op %d is a %s and no result", seq, cited.Kind()))
			continue
		}
		_, why := t.look(b, ops[:len(ops)-1])
		if why == "" {
			return seq, nil
		}
		faults = append(faults, fmt.Sprintf("op %d (%s) %s", seq, b.Name, why))
	}
	text := "at least one cited operation must be the result of a successful call that only looked: " + notice.List(faults, len(faults)) + "."
	if looks := t.citable(op.Range{First: last - min(last-1, maxLookedBack), Last: last}); len(looks) > 0 {
		return 0, fmt.Errorf("%s You can cite %s", text, strings.Join(looks, ", "))
	}
	return 0, fmt.Errorf("%s There is none yet: look first", text)
}

// citeLine tells the model the numbers of a step's looks while something is to
// be looked up.
func (t *Task) citeLine(id int) string {
	st := t.state.Steps.At(id)
	if len(t.state.Research.Wanted) == 0 || st.First == 0 {
		return ""
	}
	looks := t.citable(op.Range{First: st.First, Last: st.Last})
	if len(looks) == 0 {
		return ""
	}
	return "\n(to cite: " + strings.Join(looks, ", ") + ")"
}
