// Package search finds what was said, done and met in all tasks of a home, recorded and imported sessions of other agents
// among them, and says at which step. Full text is looked up in an index beside the tasks (index.go, SQLite's FTS5), which
// holds words only: a search brings it up to date with the streams first, and shows texts from the streams. The index
// can be deleted.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// Query is what is looked for.
type Query struct {
	Words  string    // and phrases in double quotes
	Since  time.Time // zero: whenever
	Here   string    // the top of a repository, or a directory: tasks within it alone; empty: everywhere
	Repo   string    // with Here: also tasks of the repository of this name, if it has a host
	Errors bool      // errors alone
	Most   int       // hits; 0: DefaultMost
}

// DefaultMost is how many hits a query has. maxAlike times as many tasks are looked at: of those that say the same, one
// is shown.
const (
	DefaultMost = 10
	maxAlike    = 4
	mostTexts   = 2_000 // the best ones, which are grouped by task
)

// leastShare is the share of the best score below which nothing is shown: such texts have a common word of the query alone.
const leastShare = 0.3

// Found is what a query found.
type Found struct {
	Hits  []Hit    `json:"hits"`
	Notes []string `json:"notes,omitempty"` // on what was not looked for, and on the index
	// Damaged counts the tasks whose streams cannot be read to the end.
	Damaged int `json:"damaged,omitempty"`
}

// Hit is the best place of one task.
type Hit struct {
	Task    string    `json:"task"`
	Request string    `json:"request"` // the task's first one
	Dir     string    `json:"dir"`
	Agent   string    `json:"agent,omitempty"` // another one, whose session it is
	Step    int       `json:"step"`
	Op      uint64    `json:"op"`
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time"`
	Text    string    `json:"text"`     // the part with the words looked for
	More    int       `json:"more"`     // other places of the task
	Also    int       `json:"also"`     // other tasks that say the same
	CanJump bool      `json:"can_jump"` // the task has snapshots, and is no subagent's
}

// Find brings the index up to date and looks up a query. progress receives how many of the changed tasks were read. Errors:
// ErrNoWords.
func Find(ctx context.Context, h taskdir.Home, q Query, progress func(read, of int)) (*Found, error) {
	t, cut := parse(q.Words)
	if !slices.ContainsFunc(t, func(t term) bool { return !t.pair }) {
		return nil, ErrNoWords
	}
	f := &Found{Hits: []Hit{}}
	if cut {
		f.note("the query is long: its first %d words are looked for", maxTerms)
	}
	x, err := open(ctx, h)
	if err == nil {
		err = f.find(ctx, x, t, q, progress)
	}
	if why := unusable(err); why != "" {
		f.note("the index %s and is built again", why)
		if err = x.discard(); err == nil {
			if x, err = open(ctx, h); err == nil {
				err = f.find(ctx, x, t, q, progress)
			}
		}
	}
	if err != nil && ctx.Err() == nil { // such as a full disk or a home that cannot be written
		if full(err) {
			err = errors.Join(err, x.discard()) // others need the room more
		}
		f.note("the index cannot be kept, so that this search reads all tasks: %v", err)
		if x, err = connect(ctx, h, "file::memory:?", nil); err == nil {
			err = f.find(ctx, x, t, q, progress)
		}
	}
	return f, err
}

func (f *Found) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// find uses an index, and closes it.
func (f *Found) find(ctx context.Context, x *index, t terms, q Query, progress func(read, of int)) (err error) {
	defer func() { err = errors.Join(err, x.db.Close()) }()
	if err := x.update(ctx, progress); err != nil {
		return err
	}
	known, err := x.tasks(ctx)
	if err != nil {
		return err
	}
	f.Damaged = 0
	var here []string
	for _, r := range known {
		if r.damage != "" {
			f.Damaged++
		}
		if rel, err := filepath.Rel(q.Here, r.dir); err == nil && filepath.IsLocal(rel) || strings.Contains(q.Repo, "/") && r.repo == q.Repo {
			here = append(here, fmt.Sprint(r.n))
		}
	}
	where := []string{"true"}
	if q.Errors {
		where = append(where, fmt.Sprintf("rowid & %d = %d", 1<<kindBits-1, Failure))
	}
	if q.Here != "" {
		where = append(where, fmt.Sprintf("rowid >> %d IN (%s)", seqBits+kindBits, strings.Join(here, ", ")))
	}
	if !q.Since.IsZero() {
		where = append(where, fmt.Sprintf("rowid >> %d & %d >= (SELECT min(seq) FROM hours WHERE n = rowid >> %d AND hour >= %d)",
			kindBits, 1<<seqBits-1, seqBits+kindBits, q.Since.Unix()/3600))
	}
	for _, parts := range []bool{false, true} { // an identifier of which no text has the whole is found by its parts
		match := t.match(parts)
		if f.Hits, err = x.look(ctx, match, strings.Join(where, " AND "), cmp.Or(q.Most, DefaultMost), t); err != nil || len(f.Hits) > 0 {
			return err
		}
	}
	return nil
}

// look returns the best text of each task, best task first. Of tasks as good, the latest is first.
func (x *index) look(ctx context.Context, match, where string, most int, t terms) ([]Hit, error) {
	weight := "CASE rowid & 7"
	for k, w := range weights {
		weight += fmt.Sprintf(" WHEN %d THEN %g", k, w)
	}
	rows, err := x.db.QueryContext(ctx, `SELECT round(max(score), 1), at, count(*), `+columns+`
		FROM (SELECT rowid AS at, -bm25(texts) * `+weight+` END AS score FROM texts WHERE texts MATCH ? AND `+where+` ORDER BY score DESC LIMIT ?)
		JOIN tasks ON n = at >> `+fmt.Sprint(seqBits+kindBits)+` GROUP BY n ORDER BY 1 DESC, changed DESC LIMIT ?`, match, mostTexts, most*maxAlike)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	hits, best := []Hit{}, 0.0
	for len(hits) < most && rows.Next() {
		var r row
		var score float64
		var at, count int64
		if err := rows.Scan(append([]any{&score, &at, &count}, r.fields()...)...); err != nil {
			return nil, err
		}
		if best = max(best, score); len(t) > 1 && score < best*leastShare {
			break
		}
		h := x.hit(&r, at, int(count), t)
		if same := slices.IndexFunc(hits, func(o Hit) bool { return h.Text != "" && o.Text == h.Text }); same >= 0 {
			hits[same].Also++ // such as several attempts at one request
			continue
		}
		hits = append(hits, h)
	}
	return hits, rows.Err()
}

// hit reads a text from its task's stream. If that is not to be had, the hit has none.
func (x *index) hit(r *row, at int64, count int, t terms) Hit {
	kind := Kind(at & (1<<kindBits - 1))
	h := Hit{Task: r.id, Request: r.title, Dir: r.dir, Agent: r.agent, Op: uint64(at >> kindBits & (1<<seqBits - 1)), Kind: kind.String(),
		Time: time.Unix(r.began, 0), More: count - 1, CanJump: !r.imported && r.parent == ""}
	rec, err := opstream.Peek(x.home.Task(r.id), h.Op)
	if err != nil {
		return h
	}
	o, err := taskdir.Decode(rec)
	if err != nil {
		return h
	}
	if h.Step = o.Step; !r.imported {
		h.Time = o.Time
	}
	if left, is := o.Body.(*op.JumpIntended); is { // the end of the path that was left
		h.Step = left.From
	}
	for _, found := range texts(o.Body) {
		if found.kind == kind && h.Text == "" {
			h.Text = t.excerpt(found.text)
		}
	}
	return h
}
