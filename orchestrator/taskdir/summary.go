package taskdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream"
	"anamnesis/orchestrator/state"
)

// Summary describes one task, for a list of tasks.
type Summary struct {
	ID    string `json:"id"`
	Dir   string `json:"dir"`
	State string `json:"state"` // running | open | interrupted | unreadable | how the last turn ended
	PID   int    `json:"pid,omitempty"`
	Steps int    `json:"steps"`
	Ops   uint64 `json:"ops"`
	Jumps int    `json:"jumps"`
	// USD is the task's cost, including its subagents; Unpriced are the tokens that it does
	// not cover, because no price was known.
	USD      float64   `json:"usd"`
	Unpriced int       `json:"unpriced_tokens"`
	Changed  time.Time `json:"changed"`
	Request  string    `json:"request"`          // the last one
	First    string    `json:"first_request"`    // names the task in lists
	Parent   string    `json:"parent,omitempty"` // of a subagent: the task whose agent began it
	// Agent is another agent whose session the task was recorded from; Imported reports that
	// it was read from a session file.
	Agent    string `json:"agent,omitempty"`
	Imported bool   `json:"imported,omitempty"`
	// Repo is the name of Dir's repository. WorktreeOf is the directory that Dir was made of for the task, if it was.
	Repo       string `json:"repo,omitempty"`
	WorktreeOf string `json:"worktree_of,omitempty"`
	// Waits describes the wait for a provider that fails; empty if there is none.
	Waits string `json:"waits,omitempty"`
	// Asks is the open question to a user; nil if there is none.
	Asks  *state.Question `json:"asks,omitempty"`
	Error string          `json:"error,omitempty"` // why it is unreadable
}

// Title returns the first paragraph of a request. What a user ran beside it follows in others.
func Title(request string) string {
	title, _, _ := strings.Cut(strings.TrimSpace(request), "\n\n")
	return title
}

// Title returns the first paragraph of the task's first request.
func (s Summary) Title() string { return Title(s.First) }

// Summaries reads every task, the one written last at the end. A task that cannot be read is
// listed as such. One without any operation is omitted: its process was killed before the first.
func Summaries(h Home) ([]Summary, error) {
	ids, err := h.Tasks()
	if err != nil {
		return nil, err
	}
	list := make([]Summary, 0, len(ids))
	for _, id := range ids {
		st, err := ReadState(h, id)
		if errors.Is(err, errEmpty) || err != nil && reserved(h.Task(id)) {
			continue
		}
		if err != nil {
			list = append(list, Summary{ID: id, State: "unreadable", Changed: changed(h, id), Error: err.Error()})
			continue
		}
		list = append(list, Summarize(h, id, st))
	}
	slices.SortStableFunc(list, func(x, y Summary) int { return x.Changed.Compare(y.Changed) })
	return list, nil
}

// DeadlineName is the file, beside the stream, with the deadline of a task's commands.
const DeadlineName = "deadline"

// reserved reports whether a task's folder holds nothing but what is made before the stream is
// created. A folder that lost its stream still has the vault, and is listed.
func reserved(dir string) bool {
	entries, err := os.ReadDir(dir)
	before := []string{opstream.LockName, RemoteName, DeadlineName}
	more := func(e fs.DirEntry) bool { return !slices.Contains(before, e.Name()) }
	return err == nil && !slices.ContainsFunc(entries, more)
}

// Unreserve removes the folder of a task that was not begun. No other process may be beginning it.
func Unreserve(h Home, id string) {
	_, err := ReadState(h, id)
	if dir := h.Task(id); reserved(dir) || errors.Is(err, errEmpty) && Live(h, id) == 0 {
		_ = os.RemoveAll(dir)
	}
}

// Summarize describes a task whose state was read.
func Summarize(h Home, id string, st *state.State) Summary {
	pid := Live(h, id)
	origin, last := st.Opened.Origin, changed(h, id)
	agent := ""
	if origin != nil {
		agent = origin.Agent
		if !origin.Began.IsZero() { // imported later
			last = origin.Began
		}
	}
	waits, now := "", time.Now()
	if o := st.Outage; o != nil && (pid != 0 || o.Until.After(now)) {
		waits = o.Text(now)
	}
	return Summary{
		ID: id, Dir: st.Opened.Dir, Repo: st.Opened.Repo, WorktreeOf: st.Opened.WorktreeOf(),
		State: h.Stands(id, st, pid != 0), PID: pid, Waits: waits, Asks: st.Questions.Open(),
		Steps: st.Steps.CountEnded(), Ops: st.Last, Jumps: st.Totals.Jumps,
		USD: st.Totals.Usage.USD, Unpriced: st.Totals.Usage.Unpriced(),
		Changed: last, First: st.Said.First, Request: st.Said.Request,
		Parent: st.Opened.ParentTask(), Agent: agent, Imported: origin.Imported(),
	}
}

// Stands says how a task stands: running, open, interrupted or how its last turn ended; of one in a bucket what the
// bucket shows.
func (h Home) Stands(task string, st *state.State, live bool) string {
	if h.Standing != nil && !live {
		return h.Standing(task, st)
	}
	return st.Standing(live)
}

// changed returns when a task's stream was last written; without a stream, when its folder
// was.
func changed(h Home, id string) time.Time {
	var last time.Time
	dir := filepath.Join(h.Task(id), "ops")
	files, err := fs.Glob(os.DirFS(dir), "*.jsonl") // the folder's path may have a bracket
	if err != nil {
		return last
	}
	for _, f := range files {
		if info, err := os.Stat(filepath.Join(dir, f)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	if info, err := os.Stat(h.Task(id)); err == nil && last.IsZero() {
		last = info.ModTime()
	}
	return last.UTC()
}
