package beside

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/facts"
	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// Limits of what is kept of one result.
const (
	keptHeadBytes = 16 << 10
	keptTailBytes = 48 << 10
)

// noSnapshot says why the steps of an imported session have no checkpoint.
const noSnapshot = "imported"

// ErrChanged is returned if the earlier part of a session is not what was imported.
var ErrChanged = errors.New("the session differs from what was imported of it")

// TaskOf returns the id of the task that a session is, or would be, recorded in.
func TaskOf(agent sessions.Agent, id string) string {
	sum := sha256.Sum256([]byte(id))
	return string(agent) + "_" + hex.EncodeToString(sum[:6])
}

// Imported is the result of importing a session.
type Imported struct {
	Task    string `json:"task"`
	Steps   int    `json:"steps"`   // new ones
	Had     int    `json:"had"`     // that were there before
	Repairs int    `json:"repairs"` // of failed commands
}

// Importer reads sessions into a home. It belongs to one goroutine.
type Importer struct {
	svc   *session.Service
	count map[string]*tokens.Counter // by encoding
}

func NewImporter(svc *session.Service) *Importer {
	return &Importer{svc: svc, count: map[string]*tokens.Counter{}}
}

// New returns how many steps of a session an import would add. A session that was
// recorded while it ran has none.
func (im *Importer) New(s *sessions.Session) (int, error) {
	st, err := taskdir.ReadState(im.svc.Home, TaskOf(s.Agent, s.ID))
	switch {
	case errors.Is(err, taskdir.ErrNoTask):
		return len(s.Steps), nil
	case err != nil:
		return 0, err
	// A second task has what was recorded while the session ran on after its import.
	case !st.Opened.Origin.Imported(), im.svc.Home.HasTask(numbered(s.Agent, s.ID, 2)):
		return 0, nil
	}
	splitGrown(s, st)
	return max(0, len(s.Steps)-st.Steps.CountEnded()), nil
}

// splitGrown makes a step of the calls that were added to a step after it was imported,
// because the file was being written.
func splitGrown(s *sessions.Session, st *state.State) {
	for i := 0; i < min(st.Steps.CountEnded(), len(s.Steps)); i++ {
		had, now := len(st.Steps.At(i+1).Calls), s.Steps[i].Calls
		if len(now) <= had {
			continue
		}
		s.Steps[i].Calls = now[:had]
		s.Steps = slices.Insert(s.Steps, i+1, sessions.Step{Parent: i, Calls: now[had:]})
		// What followed the step follows its second half now.
		for k := i + 2; k < len(s.Steps); k++ {
			if s.Steps[k].Parent >= i {
				s.Steps[k].Parent++
			}
		}
	}
}

// Import adds what is new of a session to its stream, step by step, and records
// its repairs. A second import of the same session adds nothing; an interrupted
// one is continued.
func (im *Importer) Import(ctx context.Context, s *sessions.Session, file string) (done Imported, err error) {
	done.Task = TaskOf(s.Agent, s.ID)
	todo, err := im.New(s)
	if err != nil || todo == 0 {
		done.Had = len(s.Steps)
		return done, err
	}
	w, err := im.open(ctx, s, file)
	if err != nil {
		return done, err
	}
	defer func() { err = session.JoinClose(err, w.journal.Close()) }()
	if done.Had, err = w.check(s); err != nil {
		return done, fmt.Errorf("%s: %w", file, err)
	}
	for i := done.Had; i < len(s.Steps); i++ {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		if err := w.step(ctx, s, i); err != nil {
			return done, err
		}
		done.Steps++
	}
	err = im.learn(ctx, w, &done)
	return done, err
}

// stream is a session's stream, open for writing.
type stream struct {
	journal *journal.Journal
	state   *state.State
}

func (w *stream) fold() error {
	return w.journal.ApplyQueued(w.state, func(o op.Op) error { return state.Fold(w.state, o) })
}

func (w *stream) post(ctx context.Context, bodies ...op.Body) error {
	if err := w.journal.Post(ctx, bodies...); err != nil {
		return err
	}
	return w.fold()
}

func (im *Importer) open(ctx context.Context, s *sessions.Session, file string) (*stream, error) {
	h, task := im.svc.Home, TaskOf(s.Agent, s.ID)
	row, err := im.svc.EAS(s.Dir, cmp.Or(s.Model, "unknown"))
	if err != nil {
		return nil, err
	}
	counter := im.count[row.Encoding]
	if counter == nil {
		if counter, err = tokens.ForEncoding(row.Encoding); err != nil {
			return nil, err
		}
		im.count[row.Encoding] = counter
	}
	j, err := journal.Open(h.Task(task), h.Vault(task), journal.Options{
		Stream: opstream.Options{Snapshot: state.FoldVersion, Now: time.Now}, Count: counter.Count,
		Secrets: im.svc.Secrets(nil), Learned: new(redact.Learned), Dir: s.Dir,
	})
	if err != nil {
		return nil, err
	}
	w := &stream{journal: j, state: state.FromSnapshot(j.Log())}
	err = taskdir.EachDecoded(j.Log().Since(w.state.Last), func(o op.Op) error { return state.Fold(w.state, o) })
	if err == nil {
		err = w.fold()
	}
	if err == nil && w.state.Last == 0 {
		err = w.begin(ctx, s, &op.TaskOpened{
			Task: task, Dir: s.Dir, Repo: repoOf(s.Dir), Store: keptStore(h, task), KB: h.KnowledgeBase(),
			Model: s.Model, EAS: row.EAS, EASFrom: row.Source, Window: row.Advertised, Encoding: row.Encoding,
			Program: im.svc.Program(),
			Origin:  &op.Origin{Agent: string(s.Agent), Session: s.ID, File: file, Version: s.Version, Began: s.Start},
		})
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return w, nil
}

// keptStore is the store of an imported task. It is empty, except that earlier versions of this
// program saved the file versions that some agents keep in it.
func keptStore(h taskdir.Home, task string) string {
	return h.Store(filepath.Join(h.Task(task), "kept"))
}

// repoOf names the project of a directory, which may be gone.
func repoOf(dir string) string {
	if dir == "" {
		return ""
	}
	return cmp.Or(worldstate.RepositoryName(dir), filepath.Base(dir))
}

// begin records the session's beginning: step 0.
func (w *stream) begin(ctx context.Context, s *sessions.Session, opened *op.TaskOpened) error {
	said := strings.Join(s.Steps[0].Said, "\n\n")
	saved := &op.WorldSaved{Error: noSnapshot, Mark: "[step 0]"}
	return w.post(context.WithoutCancel(ctx), opened,
		&op.UserSaid{Text: cmp.Or(said, "(the session names no request)"), Source: op.SourceRequest}, saved)
}

// check compares the session with what was imported of it, and returns how many of
// its steps there are.
func (w *stream) check(s *sessions.Session) (int, error) {
	had := w.state.Steps.CountEnded()
	if had > len(s.Steps) {
		return 0, fmt.Errorf("%w: %d steps, of which it holds %d now; what was imported stays", ErrChanged,
			had, len(s.Steps))
	}
	for i := range had {
		var now []string
		for _, c := range s.Steps[i].Calls {
			now = append(now, c.Tool)
		}
		if was := w.state.Steps.At(i + 1).Calls; !slices.Equal(was, now) {
			return 0, fmt.Errorf("%w: step %d has the calls %v, and had %v; what was imported stays", ErrChanged,
				i+1, now, was)
		}
	}
	return had, nil
}

// step records one step in one write. Step i of the session is step i+1 of the task.
func (w *stream) step(ctx context.Context, s *sessions.Session, i int) error {
	st := &s.Steps[i]
	var bodies []op.Body
	if i > 0 {
		for _, text := range st.Said {
			bodies = append(bodies, &op.UserSaid{Text: text, Source: op.SourceRequest})
		}
	}
	usage := op.Usage{Prompt: st.Usage.Prompt, Completion: st.Usage.Completion}
	reply := &op.ModelReplied{Text: st.Text, Finish: "stop", Model: s.Model, Usage: usage}
	var results []op.Body
	for n, c := range st.Calls {
		id := cmp.Or(c.ID, fmt.Sprintf("call_%d", n))
		// A result names its call by the id, which must therefore be unique in the reply.
		if slices.ContainsFunc(reply.Calls, func(o op.Call) bool { return o.ID == id }) {
			id = fmt.Sprintf("%s_%d", id, n)
		}
		reply.Finish = "tool_calls"
		reply.Calls = append(reply.Calls, op.Call{ID: id, Name: c.Tool, Args: c.Args})
		results = append(results, called(id, &c), returned(id, &c))
	}
	bodies = append(bodies, &op.ModelAsked{LastSeq: w.state.Last + uint64(len(bodies)), Tokens: st.Usage.Prompt}, reply)
	bodies = append(bodies, results...)
	saved := &op.WorldSaved{Parent: st.Parent + 1, Error: noSnapshot, Mark: fmt.Sprintf("[step %d]", i+1)}
	return w.post(ctx, append(bodies, saved)...)
}

func called(id string, c *sessions.Call) *op.ToolCalled {
	changes := len(c.Writes) > 0 || op.Acts(c.Tool) == op.RunsShell
	return &op.ToolCalled{Call: id, Name: c.Tool, Args: c.Args, Changes: changes}
}

func returned(id string, c *sessions.Call) *op.ToolReturned {
	b := &op.ToolReturned{
		Call: id, Name: c.Tool, IsError: c.Failed && c.Exit == nil, Refused: c.Refused, Unknown: c.Unreported(),
		Exit: c.Exit, Reads: c.Reads, Writes: c.Writes, Network: c.Network,
	}
	b.Text, b.Cut = clip(c.Text)
	if b.Unknown && b.Text == "" {
		b.Text = runtime.NotReported
	}
	return b
}

// clip keeps the head and the tail of a long result, and returns how much it left
// out.
func clip(text string) (string, int64) {
	cut := len(text) - keptHeadBytes - keptTailBytes
	if cut <= 0 {
		return strings.ToValidUTF8(text, "�"), 0
	}
	kept := fmt.Sprintf("%s\n[%d bytes left out]\n%s", text[:keptHeadBytes], cut, text[len(text)-keptTailBytes:])
	return strings.ToValidUTF8(kept, "�"), int64(cut)
}

// learn records the commands of the session that failed and later succeeded, and ends the turn.
func (im *Importer) learn(ctx context.Context, w *stream, done *Imported) (err error) {
	opened, last := &w.state.Opened, w.state.Last
	found := &op.RepairsFound{Range: op.Range{First: 1, Last: last}, Cards: []string{}}
	var ops []op.Op
	var shown facts.Record
	err = taskdir.EachDecoded(w.journal.Log().Since(0), func(o op.Op) error {
		ops = append(ops, o)
		shown.Add(&o)
		return nil
	})
	if err == nil && opened.Dir != "" {
		err = memory.AddFacts(im.svc.Home, opened.Dir, &shown)
	}
	if err != nil {
		return err
	}
	pairs := anamnesis.PairCards(anamnesis.Pairs(&anamnesis.Request{
		Task: opened.Task, JumpSeq: last, WorldDir: opened.Dir, Repo: opened.Repo, EAS: opened.EAS,
		Ops: ops, Ranges: []op.Range{found.Range}, Count: w.journal.Count, Now: time.Now(), ModelName: opened.Model,
	}, w.state.Steps.PathSet(w.state.Current)))
	found.Pairs, done.Repairs = len(pairs), len(pairs)
	if err := memory.RecordPairs(im.svc.Home, opened.Task, pairs); err != nil {
		found.NotWritten = append(found.NotWritten, err.Error())
	}
	return w.post(ctx, found, &op.TurnEnded{Reason: "done"})
}
