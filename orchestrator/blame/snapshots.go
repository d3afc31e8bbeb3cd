package blame

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// stream is a task's record.
type stream struct {
	st    *state.State
	r     *opstream.Reader // nil: the record is gone
	said  []Op             // the user's requests
	calls map[int][]call   // of steps
}

// call is a call that may have changed files.
type call struct {
	Op
	edits bool // a file tool, which wrote paths
	paths []string
	args  string
	lines map[string]bool // of its arguments
}

func (f *finder) close() {
	for _, s := range f.streams {
		if s.r != nil {
			s.r.Close()
		}
	}
}

// stream opens a task's record once.
func (f *finder) stream(task string) *stream {
	s := f.streams[task]
	if s == nil {
		s = &stream{calls: map[int][]call{}}
		f.streams[task] = s
		if st, r, err := taskdir.OpenState(f.Home, task); err == nil {
			s.st, s.r = st, r
		}
	}
	return s
}

// name returns the task that saved a snapshot, and what the snapshot is: a step's number, or a word and the
// number of an operation, as in changed-12.
func name(c worldstate.Commit) (task, what string) {
	own := ""
	for _, t := range c.Trailers {
		if t[0] == workspace.TrailerTask {
			own = t[1]
		}
	}
	i := max(slices.IndexFunc(c.Steps, func(s string) bool { return own != "" && strings.HasPrefix(s, own+"@") }), 0)
	if len(c.Steps) > 0 {
		task, what, _ = strings.Cut(c.Steps[i], "@")
	}
	return task, what
}

// seqOf returns the operation that was the last one when a snapshot was saved; 0 if it is not known.
func seqOf(c worldstate.Commit) uint64 {
	_, what := name(c)
	text := what[strings.LastIndexByte(what, '-')+1:]
	for _, t := range c.Trailers {
		if t[0] == workspace.TrailerOp {
			text, _, _ = strings.Cut(t[1], " ")
		}
	}
	seq, _ := strconv.ParseUint(text, 10, 64)
	return seq
}

// stamp returns when a snapshot was saved. Its own time has whole seconds, which do not tell apart two tasks that a
// script ran one after the other.
func (f *finder) stamp(c worldstate.Commit) time.Time {
	task, _ := name(c)
	if s := f.stream(task); s.r != nil {
		if rec, err := s.r.Get(seqOf(c)); err == nil {
			return rec.Time
		}
	}
	return c.Time
}

// readLog reads the snapshots, and finds the parents that they have beside those of their commits: the files before a
// jump or a restore, and the last snapshot of another task that worked between a snapshot and its parent.
func (f *finder) readLog(ctx context.Context) error {
	log, err := f.World.Log(ctx)
	if err != nil {
		return err
	}
	f.commits = make(map[string]worldstate.Commit, len(log))
	tasks := make(map[string]bool)
	for _, c := range log {
		f.commits[string(c.ID)] = c
		task, _ := name(c)
		tasks[task] = true
	}
	stamps := make(map[string]time.Time, len(log))
	if len(tasks) > 1 {
		for _, c := range log {
			stamps[string(c.ID)] = f.stamp(c)
		}
		slices.SortStableFunc(log, func(a, b worldstate.Commit) int { return stamps[string(b.ID)].Compare(stamps[string(a.ID)]) })
	}
	last := make(map[string]string) // the newest snapshot so far of each task
	for _, c := range slices.Backward(log) {
		id := string(c.ID)
		task, what := name(c)
		var parents []string
		for _, p := range c.Parents {
			parents = append(parents, string(p))
		}
		n := len(parents)
		switch b := f.moved(task, what).(type) {
		case *op.JumpIntended:
			parents = append(parents, b.FromCommit)
		case *op.RestoreIntended: // the lines that came back first
			parents = append([]string{b.ToCommit}, parents...)
		}
		other := ""
		for t, o := range last {
			if t != task && (other == "" || stamps[o].After(stamps[other])) {
				other = o
			}
		}
		if other != "" && (n == 0 || stamps[other].After(stamps[parents[0]])) {
			parents = append(parents, other)
		}
		if parents = slices.DeleteFunc(parents, func(p string) bool { return f.commits[p].Missing != "" || f.commits[p].ID == "" }); len(parents) != len(c.Parents) {
			f.parents[id] = parents
		}
		last[task] = id
	}
	f.first = string(f.Tip)
	for f.first != "" {
		parents, ok := f.parents[f.first]
		if !ok {
			for _, p := range f.commits[f.first].Parents {
				parents = append(parents, string(p))
			}
		}
		if len(parents) == 0 {
			break
		}
		f.first = parents[len(parents)-1]
	}
	return nil
}

// moved returns the intent of the jump or the restore after which a snapshot was saved; nil for another snapshot.
func (f *finder) moved(task, what string) op.Body {
	kind, seq, _ := strings.Cut(what, "-")
	n, err := strconv.ParseUint(seq, 10, 64)
	if s := f.stream(task); err == nil && s.r != nil && (kind == "jumped" || kind == "restored") {
		if o, err := taskdir.ReadOp(s.r, n); err == nil {
			return o.Body
		}
	}
	return nil
}

// headBefore returns the commit that the user's git was at before the first snapshot; as far as that is
// not recorded, where it is now.
func (f *finder) headBefore(ctx context.Context) string {
	dir := filepath.Join(f.Dir, filepath.Dir(f.Path))
	if task, what := name(f.commits[f.first]); what == "0" {
		if s := f.stream(task); s.r != nil {
			top, _, _ := worldstate.Identity(dir)
			if rel, err := filepath.Rel(f.Dir, top); err == nil && len(s.st.Git[rel].Seen) > 0 {
				at, _ := workspace.GitThen(s.r, s.st, rel, 0)
				return at.Commit
			}
		}
	}
	now, err := worldstate.GitCommand{Top: dir}.Run(ctx, "rev-parse", "--verify", "-q", "HEAD")
	if err != nil {
		return ""
	}
	return now
}

// origin returns what a commit is, of the line text in the file at path.
func (f *finder) origin(id, at, text string) Origin {
	o, made := f.made[id]
	c, saved := f.commits[id]
	h := f.heads[id]
	switch {
	case made && o.Kind == Unknown:
		for _, e := range f.edits {
			if e.lines[strings.TrimRight(text, "\r")] && strings.TrimSpace(text) != "" {
				o, o.Kind, o.Why = e.Origin, Unknown, "the call wrote such a line, but the file was changed since by what is not recorded"
			}
		}
	case made:
	case saved:
		o = f.snapshot(c, at, text)
	default:
		o = Origin{Kind: Commit, Commit: id, Author: h.author, Title: h.title, Time: h.time}
	}
	if at != f.Path {
		o.Path = at
	}
	return o
}

// snapshot returns what wrote a line that is new in a snapshot.
func (f *finder) snapshot(c worldstate.Commit, at, text string) Origin {
	task, what := name(c)
	o := Origin{Kind: User, Task: task, Time: c.Time}
	s := f.stream(task)
	step, err := strconv.Atoi(what)
	switch begun := string(c.ID) == f.first && len(f.parents[f.first]) == 0; {
	case begun && (what == "0" || s.r == nil):
		o.Kind = Before
		return o
	case begun:
		o.Kind, o.Why = Unknown, "the snapshots before this one are lost"
	case s.r == nil && task == "cli":
		o.Why = "in a snapshot saved by hand"
		return o
	case s.r == nil:
		o.Kind, o.Step, o.Why = Step, step, "the task's record is gone"
		return o
	case what == "0":
		o.Why = "before the task " + task + " began"
		return o
	}
	first, last := seqOf(c), seqOf(c)+recordedWithin
	if err == nil && step < s.st.Steps.Len() {
		first, last = s.st.Steps.At(step).First-1, s.st.Steps.At(step).Last
	}
	agent := err == nil
	for rec, err := range s.r.Since(first) {
		if err != nil || rec.Seq > last {
			break
		}
		if rec.Kind != string((*op.WorldChanged)(nil).Kind()) {
			continue
		}
		decoded, _ := taskdir.Decode(rec)
		b, ok := decoded.Body.(*op.WorldChanged)
		if !ok || b.To != string(c.ID) || len(b.Only) > 0 && !slices.Contains(b.Only, at) {
			continue
		}
		o.Calls = []Op{{rec.Seq, "the change"}}
		switch agent = b.By == state.ChangedByAgent; {
		case agent:
			step = rec.Step
		case b.By == state.ChangedUnknown:
			o.Kind, o.Why = Unknown, cmp.Or(b.Notice, "changed while a background command or a subagent ran, by it or by the user")
		}
		break
	}
	if !agent {
		return o
	}
	if o.Kind == User {
		o.Kind = Step
	}
	o.Calls = nil
	o.describe(s, step)
	after := uint64(0) // calls that an earlier snapshot of the step has
	if len(c.Parents) > 0 {
		if by, before := name(f.commits[string(c.Parents[0])]); by == task && strings.HasPrefix(before, "changed-") {
			after = seqOf(f.commits[string(c.Parents[0])])
		}
	}
	for _, c := range choose(s.callsOf(step, f.Dir), at, text, after, seqOf(c)) {
		o.Calls = append(o.Calls, c.Op)
	}
	return o
}

// recordedWithin is how many operations after a snapshot its record follows, at most.
const recordedWithin = 50

// describe adds what the record says of a step.
func (o *Origin) describe(s *stream, step int) {
	o.Step, o.Parent = step, s.st.Steps.At(step).Parent
	if from := s.st.Opened.Origin; from != nil {
		o.Agent, o.Imported = from.Agent, from.Imported()
	}
	if s.said == nil {
		for rec, err := range s.r.Since(0) {
			if err != nil {
				break
			}
			if b := new(op.UserSaid); rec.Kind == string(b.Kind()) && json.Unmarshal(rec.Body, b) == nil && (b.Source == op.SourceRequest || b.Source == op.SourceSteer) {
				s.said = append(s.said, Op{rec.Seq, b.Text})
			}
		}
	}
	for _, r := range s.said {
		if r.Seq <= s.st.Steps.At(step).First {
			o.Request = &r
		}
	}
	for rec, err := range s.r.Since(s.st.Steps.At(step).First - 1) {
		if err != nil || rec.Step != step {
			break
		}
		if b := new(op.ModelReplied); rec.Kind == string(b.Kind()) && json.Unmarshal(rec.Body, b) == nil {
			o.Reply, o.Time = b.Text, rec.Time
			break
		}
	}
}

// callsOf returns the calls of a step that may have changed files.
func (s *stream) callsOf(step int, dir string) []call {
	if list, ok := s.calls[step]; ok {
		return list
	}
	byID := make(map[string]*call)
	var order []*call
	for rec, err := range s.r.Since(s.st.Steps.At(step).First - 1) {
		if err != nil || rec.Seq > s.st.Steps.At(step).Last {
			break
		}
		o, _ := taskdir.Decode(rec)
		switch b := o.Body.(type) {
		case *op.ToolCalled:
			if b.Changes || op.Acts(b.Name) == op.RunsShell {
				c := &call{Op: Op{rec.Seq, tool.Display(op.Call{ID: b.Call, Name: b.Name, Args: b.Args}, dir)}, edits: op.Acts(b.Name) == op.Edits, args: b.Args, lines: linesIn(b.Args)}
				c.paths = file.Paths(b.Name, json.RawMessage(b.Args))
				byID[b.Call], order = c, append(order, c)
			}
		case *op.ToolReturned:
			if c := byID[b.Call]; c != nil && (b.Refused || b.IsError && c.edits) {
				order = slices.DeleteFunc(order, func(o *call) bool { return o == c })
			} else if c != nil && len(b.Writes) > 0 {
				c.paths = b.Writes
			}
		}
	}
	list := make([]call, 0, len(order))
	for _, c := range order {
		list = append(list, *c)
	}
	s.calls[step] = list
	return list
}

// linesIn returns the lines of all texts in a call's arguments; of a patch without their sign.
func linesIn(args string) map[string]bool {
	lines := make(map[string]bool)
	var add func(value any)
	add = func(value any) {
		switch v := value.(type) {
		case string:
			for line := range strings.Lines(v) {
				line = strings.TrimRight(line, "\r\n")
				lines[line], lines[strings.TrimPrefix(line, "+")] = true, true
			}
		case []any:
			for _, e := range v {
				add(e)
			}
		case map[string]any:
			for _, e := range v {
				add(e)
			}
		}
	}
	var value any
	if json.Unmarshal([]byte(args), &value) == nil {
		add(value)
	}
	return lines
}

// choose returns the call that wrote a line; all that may have where the record does not say. The last file tool that
// has the line among its texts did; else a command that has it; else one that names the file; else any.
func choose(calls []call, at, text string, after, before uint64) []call {
	text = strings.TrimRight(text, "\r")
	var commands, edits []call
	for _, c := range calls {
		switch {
		case c.Seq <= after || c.Seq > before:
		case !c.edits:
			commands = append(commands, c)
		case slices.ContainsFunc(c.paths, func(p string) bool { return p == at || strings.HasSuffix(p, "/"+at) || path.Clean(p) == at }):
			edits = append(edits, c)
		}
	}
	has := func(c call) bool { return c.lines[text] }
	names := func(c call) bool { return strings.Contains(c.args, path.Base(at)) }
	for _, from := range [][]call{edits, commands} {
		for _, c := range slices.Backward(from) {
			if has(c) && strings.TrimSpace(text) != "" {
				return []call{c}
			}
		}
	}
	if len(commands) == 0 {
		return edits[max(len(edits)-1, 0):]
	}
	if slices.ContainsFunc(commands, names) {
		commands = slices.DeleteFunc(commands, func(c call) bool { return !names(c) })
	}
	return commands
}

func (o Op) String() string { return fmt.Sprintf("op %d %s", o.Seq, o.Text) }
