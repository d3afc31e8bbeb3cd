package blame

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
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

// saved is a snapshot.
type saved struct {
	worldstate.Commit
	task    string
	what    string    // a step's number, or a word and the number of an operation, as in changed-12
	seq     uint64    // the last operation when it was saved; 0: not known
	at      time.Time // when; the commit's own time has whole seconds, which do not order tasks of one script
	parents []string
}

// readLog reads the snapshots, and finds the parents that they have beside those of their commits: the files before a
// jump or a restore, and the last snapshot of another task that worked between a snapshot and its parent.
func (f *finder) readLog(ctx context.Context) error {
	if f.World == nil {
		return nil
	}
	log, err := f.World.Log(ctx)
	if err != nil {
		return err
	}
	var list []*saved
	last := make(map[string]*saved) // the newest snapshot so far of each task
	for _, c := range log {
		s := newSaved(c)
		f.saved[string(c.ID)], last[s.task] = s, s
		list = append(list, s)
	}
	for _, s := range list {
		if r := f.stream(s.task).r; r != nil && len(last) > 1 {
			if rec, err := r.Get(s.seq); err == nil {
				s.at = rec.Time
			}
		}
	}
	clear(last)
	slices.SortStableFunc(list, func(a, b *saved) int { return b.at.Compare(a.at) })
	for _, s := range slices.Backward(list) {
		var before time.Time
		for _, p := range s.Parents {
			if parent := f.saved[string(p)]; parent != nil && parent.Missing == "" {
				s.parents, before = append(s.parents, string(p)), parent.at
			}
		}
		switch b := f.movedBy(s).(type) {
		case *op.JumpIntended:
			s.parents = append(s.parents, b.FromCommit)
		case *op.RestoreIntended: // first the lines that came back
			s.parents = append([]string{b.ToCommit}, s.parents...)
		}
		newest := &saved{at: before}
		for task, other := range last {
			if task != s.task && other.at.After(newest.at) {
				newest = other
			}
		}
		s.parents = append(s.parents, string(newest.ID))
		s.parents = slices.DeleteFunc(s.parents, func(id string) bool { return f.saved[id] == nil })
		last[s.task] = s
	}
	f.first = string(f.Tip)
	for s := f.saved[f.first]; s != nil && len(s.parents) > 0; s = f.saved[f.first] {
		f.first = s.parents[len(s.parents)-1]
	}
	return nil
}

// newSaved returns a snapshot with what its name and its trailers say.
func newSaved(c worldstate.Commit) *saved {
	s := &saved{Commit: c, at: c.Time}
	var own, seq string
	for _, t := range c.Trailers {
		switch t[0] {
		case workspace.TrailerTask:
			own = t[1] + "@"
		case workspace.TrailerOp:
			seq, _, _ = strings.Cut(t[1], " ")
		}
	}
	for _, name := range c.Steps {
		if s.task == "" || own != "" && strings.HasPrefix(name, own) {
			s.task, s.what, _ = strings.Cut(name, "@")
		}
	}
	s.seq, _ = strconv.ParseUint(cmp.Or(seq, s.what[strings.LastIndexByte(s.what, '-')+1:]), 10, 64)
	return s
}

// movedBy returns the intent of the jump or the restore after which a snapshot was saved; nil for another snapshot.
func (f *finder) movedBy(s *saved) op.Body {
	if r := f.stream(s.task).r; r != nil &&
		(strings.HasPrefix(s.what, "jumped-") || strings.HasPrefix(s.what, "restored-")) {
		if o, err := taskdir.ReadOp(r, s.seq); err == nil {
			return o.Body
		}
	}
	return nil
}

// headBefore returns the commit that the user's git was at before the first snapshot; as far as that is
// not recorded, where it is now. It returns "" if there is none.
func (f *finder) headBefore(ctx context.Context) string {
	dir := filepath.Join(f.Dir, filepath.Dir(f.Path))
	if s := f.saved[f.first]; s != nil && s.what == "0" {
		top, _, _ := worldstate.Identity(dir)
		rel, err := filepath.Rel(f.Dir, top)
		if t := f.stream(s.task); err == nil && t.r != nil && len(t.st.Git[rel].Seen) > 0 {
			at, _ := workspace.GitThen(t.r, t.st, rel, 0)
			return at.Commit
		}
	}
	now, _ := worldstate.GitCommand{Top: dir}.Run(ctx, "rev-parse", "--verify", "-q", "HEAD")
	return now
}

// origin returns what a commit is that wrote a line; h is what git says of it.
func (f *finder) origin(id string, h Origin, text string) Origin {
	o, made := f.made[id]
	s := f.saved[id]
	switch {
	case made && o.Kind == Unknown:
		o = f.guess(o, text)
	case made:
	case s != nil:
		key := id + h.Path
		if f.wrote[key] == nil {
			f.wrote[key] = f.snapshot(s, h.Path)
		}
		if o = f.wrote[key].Origin; f.wrote[key].calls != nil {
			o.Calls = choose(f.wrote[key].calls, h.Path, text, s.seq)
		}
	default:
		o = h
		o.Kind, o.Commit = Commit, id
	}
	if o.Path = h.Path; o.Path == f.Path {
		o.Path = ""
	}
	return o
}

// recordedWithin is how many operations after a snapshot its record follows, at most.
const recordedWithin = 50

// written is what wrote the lines of a file that are new in a snapshot. If calls are given, one of them wrote a line.
type written struct {
	Origin
	calls []call
}

// snapshot returns what wrote the lines of a file that are new in a snapshot.
func (f *finder) snapshot(s *saved, at string) *written {
	o := &written{Origin: Origin{Kind: User, Task: s.task, Time: s.at}}
	t := f.stream(s.task)
	step, err := strconv.Atoi(s.what)
	agent := err == nil && step > 0
	switch {
	case len(s.parents) == 0 && (s.what == "0" || t.r == nil):
		o.Origin = Origin{Kind: Before}
		return o
	case t.r == nil && s.task == "cli":
		o.Why = "before a snapshot that was saved by hand"
		return o
	case t.r == nil && !errors.Is(t.err, taskdir.ErrNoTask):
		o.Kind, o.Why = Unknown, fmt.Sprintf("by task %s, whose record cannot be read: %v", s.task, t.err)
		return o
	case t.r == nil:
		o.Kind, o.Why = Unknown, "by task "+s.task+", whose record is gone"
		return o
	case len(s.parents) == 0:
		o.Kind, o.Why = Unknown, "the snapshots before this one are lost"
	case s.what == "0":
		o.Why = "before task " + s.task + " began"
		return o
	}
	for rec, err := range t.r.Since(s.seq) {
		if err != nil || rec.Seq > s.seq+recordedWithin {
			break
		}
		decoded, _ := taskdir.Decode(rec)
		b, ok := decoded.Body.(*op.WorldChanged)
		if !ok || b.To != string(s.ID) || len(b.Only) > 0 && !slices.Contains(b.Only, at) {
			continue
		}
		if agent = b.By == state.ChangedByAgent; agent {
			step = rec.Step
		} else if b.By == state.ChangedUnknown {
			o.Kind, o.Why = Unknown, "a background command, a subagent, another program or you changed it"
		} else {
			o.Why = "outside of the calls of task " + s.task
		}
		o.Calls = []Op{{rec.Seq, "the change"}}
		break
	}
	if !agent {
		return o
	}
	if o.Kind == User {
		o.Kind = Step
	}
	o.describe(t, step)
	ran := t.st.Steps.At(step)
	for _, c := range t.calls {
		if c.Seq <= ran.Last && c.ended >= ran.First { // it ran while the step did, a background command too
			c.lines = linesIn(c.args)
			o.calls = append(o.calls, c)
		}
	}
	return o
}

// choose returns the call that wrote a line, of those before a snapshot: the last file tool that has it among its
// arguments, else the last command that has it; else all that write the file or name it; else all commands of the step.
func choose(calls []call, at, text string, before uint64) (out []Op) {
	text = strings.TrimRight(text, "\r")
	best := 0
	for _, c := range calls {
		score := 1
		is := func(p string) bool { return p == at || strings.HasSuffix(path.Clean("/"+p), "/"+at) }
		switch writes := slices.ContainsFunc(c.paths, is); {
		case c.Seq > before || c.edits && !writes:
			continue
		case c.lines[text] && c.edits:
			score = 4
		case c.lines[text]:
			score = 3
		case writes || strings.Contains(c.args, path.Base(at)):
			score = 2
		case c.job:
			continue
		}
		if score > best || score > 2 && score == best {
			best, out = score, nil
		}
		if score == best {
			out = append(out, c.Op)
		}
	}
	return out
}

// linesIn returns the lines of all texts in a call's arguments, but blank ones; of a patch without their sign, too, and
// of a command what is quoted.
func linesIn(args string) map[string]bool {
	lines := make(map[string]bool)
	var value any
	_ = json.Unmarshal([]byte(args), &value) // what is no JSON has none
	for queue := []any{value}; len(queue) > 0; queue = queue[1:] {
		switch v := queue[0].(type) {
		case string:
			for _, line := range strings.FieldsFunc(v, func(r rune) bool { return r == '\n' || r == '\r' }) {
				lines[line], lines[strings.TrimPrefix(line, "+")] = true, true
			}
			for quoted := range strings.SplitSeq(v, "'") {
				lines[quoted] = true
			}
		case []any:
			queue = append(queue, v...)
		case map[string]any:
			queue = append(queue, slices.Collect(maps.Values(v))...)
		}
	}
	maps.DeleteFunc(lines, func(line string, _ bool) bool { return strings.TrimSpace(line) == "" })
	return lines
}

// stream is a task's record.
type stream struct {
	st      *state.State
	r       *opstream.Reader // nil: err says why
	err     error
	said    []Op // the user's requests
	calls   []call
	replies map[int]opstream.Record // what the model said last in each step
}

// call is a call that may have changed files.
type call struct {
	Op
	step  int
	edits bool // a file tool, which wrote paths
	job   bool // in the background
	ended uint64
	paths []string
	args  string
	lines map[string]bool // of args
}

// stream opens a task's record once.
func (f *finder) stream(task string) *stream {
	if f.streams[task] == nil {
		s := new(stream)
		s.st, s.r, s.err = taskdir.OpenState(f.Home, task)
		f.streams[task] = s
	}
	return f.streams[task]
}

func (f *finder) close() {
	for _, s := range f.streams {
		if s.r != nil {
			s.r.Close()
		}
	}
}

// describe adds what the record says of a step.
func (o *Origin) describe(s *stream, step int) {
	at := s.st.Steps.At(step)
	o.Step, o.Parent = step, at.Parent
	if from := s.st.Opened.Origin; from != nil {
		o.Agent, o.ReadOnly = from.Agent, from.Imported()
	}
	o.ReadOnly = o.ReadOnly || s.st.Opened.Parent != nil
	s.readOnce()
	for _, r := range s.said {
		if r.Seq <= max(at.First, s.replies[step].Seq) {
			o.Request = &r
		}
	}
	var b op.ModelReplied
	if rec := s.replies[step]; json.Unmarshal(rec.Body, &b) == nil {
		o.Reply, o.Time = b.Text, rec.Time
	}
}

func (s *stream) readOnce() {
	if s.replies != nil {
		return
	}
	s.replies = make(map[int]opstream.Record)
	ids := make(map[string]int)
	for rec, err := range s.r.Since(0) {
		if err != nil {
			break
		}
		switch op.Kind(rec.Kind) {
		case (*op.ModelReplied)(nil).Kind():
			s.replies[rec.Step] = rec
			continue
		case (*op.UserSaid)(nil).Kind(), (*op.ToolCalled)(nil).Kind(), (*op.ToolReturned)(nil).Kind(),
			(*op.JobStarted)(nil).Kind(), (*op.JobEnded)(nil).Kind():
		default:
			continue
		}
		o, _ := taskdir.Decode(rec)
		switch b := o.Body.(type) {
		case *op.UserSaid:
			if b.Source != op.SourceRejection {
				s.said = append(s.said, Op{rec.Seq, b.Text})
			}
		case *op.ToolCalled:
			if act := op.Acts(b.Name); b.Changes || act == op.Edits || act == op.RunsShell {
				ids[b.Call] = len(s.calls)
				text := tool.Display(op.Call{Name: b.Name, Args: b.Args}, s.st.Opened.Dir)
				s.calls = append(s.calls, call{Op: Op{rec.Seq, text}, step: rec.Step, edits: act == op.Edits,
					ended: rec.Seq, paths: file.Paths(b.Name, json.RawMessage(b.Args)), args: b.Args})
			}
		case *op.ToolReturned:
			if i, ok := ids[b.Call]; ok && (b.Refused || b.IsError && s.calls[i].edits) {
				s.calls[i].ended = 0 // it changed nothing
			}
		case *op.JobStarted:
			ids[b.Job] = len(s.calls)
			s.calls = append(s.calls, call{Op: Op{rec.Seq, "in the background: " + b.Command}, job: true,
				args: string(rec.Body), ended: math.MaxUint64})
		case *op.JobEnded:
			if i, ok := ids[b.Job]; ok {
				s.calls[i].ended = rec.Seq
			}
		}
	}
}

func (o Op) String() string { return fmt.Sprintf("%s (op %d)", o.Text, o.Seq) }
