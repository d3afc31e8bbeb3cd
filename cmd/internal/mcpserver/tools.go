package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

const width = 120

// ofTask is the argument that every tool about a task has.
type ofTask struct {
	Task string `json:"task,omitempty" jsonschema:"the session; without it the one you are in"`
}

func (s *Server) timeline(_ context.Context, req *mcp.CallToolRequest, in ofTask) (string, error) {
	st, err := s.find(req, in.Task, reading)
	if err != nil {
		return "", err
	}
	b := new(timeline.Builder)
	if err := s.svc.Ops(st.Opened.Task, 0, b.Add); err != nil {
		return "", err
	}
	lines := strings.Split(ansi.Strip(view.Draw(b.Timeline(), width)), "\n")
	head, rows := lines[:min(3, len(lines))], lines[min(3, len(lines)):]
	left, size := 0, 0 // the newest rows fit
	for i := len(rows) - 1; i >= 0; i-- {
		if size += len(rows[i]) + 1; size > maxResultBytes-512 {
			left = i + 1
			break
		}
	}
	if left > 0 {
		head = append(head, fmt.Sprintf("[%d earlier lines left out]", left))
	}
	return strings.Join(append(head, rows[left:]...), "\n"), nil
}

type jumpArgs struct {
	Step    int      `json:"step" jsonschema:"the step whose end to return to"`
	Reason  string   `json:"reason" jsonschema:"what was wrong with the path you leave"`
	Learned string   `json:"learned,omitempty" jsonschema:"one or two sentences for later work; kept as a draft lesson"`
	DryRun  bool     `json:"dry_run,omitempty" jsonschema:"only say what would happen"`
	Paths   []string `json:"paths,omitempty" jsonschema:"restore these paths alone; the session stays where it is"`
	ofTask
}

func (s *Server) jump(ctx context.Context, req *mcp.CallToolRequest, in jumpArgs) (string, error) {
	st, err := s.find(req, in.Task, taskUse(!in.DryRun))
	if err != nil {
		return "", err
	}
	task := st.Opened.Task
	if in.Paths, err = inside(st.Opened.Dir, in.Paths); err != nil {
		return "", err
	}
	j := op.JumpRequested{To: in.Step, Reason: in.Reason, Learned: in.Learned}
	last := st.Last
	switch {
	// A plan needs no reason, and is allowed in plan mode: it changes nothing.
	case in.DryRun && len(in.Paths) > 0:
		plan, err := s.svc.PlanRestore(ctx, task, fmt.Sprint(in.Step), worldstate.PlanOptions{Paths: in.Paths})
		if err != nil {
			return "", err
		}
		return printed(func(p *show.Printer) { p.Plan(plan) }), nil
	case in.DryRun:
		plan, err := s.svc.PlanJump(ctx, task, "", j)
		if err != nil {
			return "", err
		}
		return printed(func(p *show.Printer) { p.JumpPlan(task, plan) }), nil
	case in.Reason == "":
		return "", errors.New("reason is empty: say what was wrong with the path you leave")
	case st.Opened.Origin.Recorded() &&
		(beside.Planning(s.svc.Home, task) || codexTurn(req)["sandbox_mode"] == "read-only"):
		return "", errors.New("the agent is in plan mode or read-only: only dry_run is possible")
	case len(in.Paths) > 0:
		res, warnings, err := beside.Restore(ctx, s.svc, task, fmt.Sprint(in.Step),
			worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{Paths: in.Paths}})
		if err != nil {
			return strings.Join(warnings, "\n"), s.remedy(err, task, in.Step)
		}
		text := fmt.Sprintf("These files are as at the end of step %d, except for those kept. Read them again before "+
			"you edit them.\n", in.Step)
		return text + printed(func(p *show.Printer) {
			p.Moves("wrote", res.Written, "deleted", res.Deleted, res.Kept)
			p.LostAttributes(res.LostAttributes)
			p.Unchanged(res.Unchanged)
			p.Printf("the files before are snapshot %s\n", res.Source)
		}), nil
	}
	res, err := beside.Jump(ctx, s.svc, task, "", j, session.Client{})
	if err != nil {
		return strings.Join(res.Warnings, "\n"), s.remedy(err, task, in.Step)
	}
	if res.Scheduled {
		return fmt.Sprintf("The session is running; it jumps to step %d when its present step is complete.", in.Step),
			nil
	}
	return beside.JumpText(s.svc, task, last)
}

// printed returns what is shown to a user, as plain text.
func printed(write func(*show.Printer)) string {
	var b bytes.Buffer
	write(&show.Printer{Out: &b, Err: &b, Width: width})
	return ansi.Strip(b.String())
}

// remedy adds to a refusal that protects edits what the user can do. The agent has no
// way to overwrite them.
func (s *Server) remedy(err error, task string, step int) error {
	if errors.Is(err, worldstate.ErrRefused) || errors.Is(err, worldstate.ErrStale) {
		return fmt.Errorf("%w; the user can run 'anamnesis jump %s %d --dry-run' to see why, and decide", err, task,
			step)
	}
	return err
}

type checkpointArgs struct {
	Note string `json:"note" jsonschema:"what this state of the files is"`
	ofTask
}

func (s *Server) checkpoint(ctx context.Context, req *mcp.CallToolRequest, in checkpointArgs) (string, error) {
	st, err := s.find(req, in.Task, changing)
	if err != nil {
		return "", err
	}
	if !st.Opened.Origin.Recorded() {
		return "", fmt.Errorf("every step of %s is a checkpoint already; the last one is step %d",
			st.Opened.Task, st.Current)
	}
	step, err := beside.Checkpoint(ctx, s.svc, st.Opened.Task, in.Note)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Saved as step %d.", step), nil
}

type diffArgs struct {
	From  int      `json:"from" jsonschema:"a step"`
	To    int      `json:"to" jsonschema:"a later or earlier step"`
	Paths []string `json:"paths,omitempty" jsonschema:"only these files and folders"`
	ofTask
}

func (s *Server) diff(ctx context.Context, req *mcp.CallToolRequest, in diffArgs) (string, error) {
	st, err := s.find(req, in.Task, reading)
	if err != nil {
		return "", err
	}
	if in.Paths, err = inside(st.Opened.Dir, in.Paths); err != nil {
		return "", err
	}
	w, ends, _, err := s.svc.StepWorlds(st.Opened.Task, in.From, in.To)
	if err != nil {
		return "", err
	}
	defer w.Close()
	changes, err := session.Changes(ctx, w, ends[0], ends[1], in.Paths)
	if err != nil {
		return "", err
	}
	if len(changes) == 0 {
		return "nothing changed", nil
	}
	var b bytes.Buffer
	err = w.Patch(ctx, &b, changes)
	return b.String(), err
}

// inside returns paths relative to a session's directory. Agents name them in both ways.
func inside(dir string, paths []string) (out []string, err error) {
	for _, p := range paths {
		rel := filepath.Clean(p)
		if filepath.IsAbs(rel) {
			rel, _ = filepath.Rel(dir, rel) // of two absolute paths
		}
		if !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("path %q is outside the session's directory %s", p, dir)
		}
		out = append(out, rel)
	}
	return out, nil
}

type recallArgs struct {
	Query string `json:"query" jsonschema:"an error message or a question"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many lessons at most; 3 without it"`
	ofTask
}

// How many lessons recall shows.
const (
	defaultRecall = 3
	maxRecall     = 10
)

func (s *Server) recall(ctx context.Context, req *mcp.CallToolRequest, in recallArgs) (string, error) {
	dir, task := s.dir, ""
	if st, err := s.find(req, in.Task, reading); err == nil {
		dir, task = st.Opened.Dir, st.Opened.Task
	} else if in.Task != "" {
		return "", err
	}
	if strings.TrimSpace(in.Query) == "" {
		return "", errors.New("query is empty")
	}
	text, err := beside.Recall(ctx, s.svc, dir, task, knowledgebase.Query{Text: in.Query,
		K: min(cmp.Or(max(in.Limit, 0), defaultRecall), maxRecall)}, maxResultBytes)
	if err == nil && task == "" { // without a session no recorder shows the agent these facts
		s.facts.Do(func() { text = strings.TrimSpace(beside.Facts(s.svc, dir) + "\n\n" + text) })
	}
	return text, err
}

type rememberArgs struct {
	Lesson   string `json:"lesson" jsonschema:"what to do, in one or two sentences"`
	Evidence string `json:"evidence" jsonschema:"the command and its error, or the operation numbers that show it"`
	ofTask
}

func (s *Server) remember(ctx context.Context, req *mcp.CallToolRequest, in rememberArgs) (string, error) {
	if strings.TrimSpace(in.Lesson) == "" || strings.TrimSpace(in.Evidence) == "" {
		return "", errors.New("lesson and evidence must not be empty")
	}
	c := &card.Card{
		Topic: quote.OneLine(in.Lesson, 120), State: card.Draft, SourceTask: "mcp",
		Issue: []string{quote.OneLine(in.Evidence, 500)}, Solution: []string{quote.OneLine(in.Lesson, 500)},
		Provenance: card.Provenance{Model: "agent", Tainted: true}, Tags: []string{"remembered"},
	}
	dir := s.dir
	if st, err := s.find(req, in.Task, reading); err == nil {
		dir, c.SourceTask, c.Provenance.Task, c.Scope.Repo = st.Opened.Dir, st.Opened.Task,
			st.Opened.Task, st.Opened.Repo
	} else if in.Task != "" {
		return "", err
	}
	c.Scope.Repo = cmp.Or(c.Scope.Repo, worldstate.RepositoryName(dir))
	c.ID = card.NewID("remember", c.Scope.Repo, in.Lesson, in.Evidence)
	if err := beside.Remember(ctx, s.svc, c); err != nil {
		return "", err
	}
	return fmt.Sprintf("Draft card %s was written. No session is shown it before the user has reviewed it "+
		"('anamnesis kb review').", c.ID), nil
}

type showArgs struct {
	Seq    uint64 `json:"seq" jsonschema:"number of the operation"`
	Offset int    `json:"offset,omitempty" jsonschema:"byte to begin with"`
	ofTask
}

func (s *Server) show(_ context.Context, req *mcp.CallToolRequest, in showArgs) (string, error) {
	st, err := s.find(req, in.Task, reading)
	if err != nil {
		return "", err
	}
	o, err := inspect.Op(s.svc.Home, st.Opened.Task, in.Seq)
	if err != nil {
		return "", err
	}
	body := state.OpText(o)
	from := quote.RuneStart(body, max(in.Offset, 0))
	end := quote.RuneStart(body, from+maxResultBytes-512)
	text := fmt.Sprintf("op %d (%s, step %d), as it was recorded, quoted:\n%s", o.Seq, o.Kind(), o.Step, body[from:end])
	if end < len(body) {
		text += fmt.Sprintf("\n[bytes %d to %d of %d; continue with offset %d]", from, end, len(body), end)
	}
	return text, nil
}
