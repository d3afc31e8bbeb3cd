// Package search finds what was said, done and met in all tasks of a home, recorded and imported sessions of other
// agents among them, and says at which step. Full text is looked up in an index beside the tasks (index.go, SQLite's
// FTS5), which a search brings up to date with the streams first. The index can be deleted.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"anamnesis/orchestrator/taskdir"
)

// Query is what is looked for.
type Query struct {
	Words  string    // and phrases in double quotes
	Since  time.Time // tasks that went on since then; zero: all
	Here   string    // a directory: tasks of its repository alone; empty: all
	Errors bool      // alone
	Most   int       // hits; 0: DefaultMost
}

// DefaultMost is how many hits a query has.
const DefaultMost = 10

const (
	mostTexts  = 2_000 // the best ones, which are grouped by task
	maxAlike   = 4     // times as many tasks are looked at as shown: of those that say the same, one is
	leastShare = 0.3   // of the best score: what is below has a common word of the query alone
)

// Found is what a query found.
type Found struct {
	Hits  []Hit    `json:"hits"`
	Notes []string `json:"notes,omitempty"` // on what was not looked for, and on the index
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

// Find brings the index up to date and looks up a query. progress receives how many of the changed tasks were read.
// Errors: ErrNoWords.
func Find(ctx context.Context, h taskdir.Home, q Query, progress func(read, of int)) (*Found, error) {
	t, cut := parse(q.Words)
	if !slices.ContainsFunc(t, func(t term) bool { return !t.pair }) {
		return nil, ErrNoWords
	}
	f := &Found{Hits: []Hit{}}
	note := func(format string, args ...any) { f.Notes = append(f.Notes, fmt.Sprintf(format, args...)) }
	if cut {
		note("the query is long: its first %d words are looked for", maxTerms)
	}
	find := func(x *index, err error) error {
		if err != nil {
			return err
		}
		if err = x.update(ctx, progress); err == nil {
			err = f.find(ctx, x, t, q)
		}
		return errors.Join(err, x.db.Close())
	}
	err := find(open(ctx, h))
	if code := codeOf(err); errors.Is(err, errOther) || code == sqlite3.SQLITE_CORRUPT ||
		code == sqlite3.SQLITE_NOTADB {
		note("the index is damaged or of another version, and is built again")
		if err = Remove(h); err == nil {
			err = find(open(ctx, h))
		}
	}
	if err != nil && ctx.Err() == nil {
		why := err.Error()
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			why = "the program's folder is read-only"
		}
		note("the index cannot be written, so that this search reads all tasks: %s", why)
		if codeOf(err) == sqlite3.SQLITE_FULL {
			_ = Remove(h) // others need the room more
		}
		err = find(connect(ctx, h, "file::memory:?"))
	}
	return f, err
}

func (f *Found) find(ctx context.Context, x *index, t terms, q Query) error {
	where := "true"
	if q.Errors {
		where += fmt.Sprintf(" AND rowid & %d = %d", 1<<kindBits-1, Failure)
	}
	if q.Here != "" {
		here, err := taskdir.ProjectAt(q.Here)
		if err != nil {
			return err
		}
		tasks, err := x.tasks(ctx)
		if err != nil {
			return err
		}
		var within []string
		for _, r := range tasks {
			if here.Has(r.repo, r.dir, r.source) {
				within = append(within, fmt.Sprint(r.n))
			}
		}
		where += fmt.Sprintf(" AND rowid >> %d IN (%s)", seqBits+kindBits, strings.Join(within, ", "))
	}
	if !q.Since.IsZero() {
		where += fmt.Sprintf(" AND rowid >> %d IN (SELECT n FROM tasks WHERE changed >= %d)", seqBits+kindBits,
			q.Since.Unix())
	}
	for _, parts := range []bool{false, true} { // an identifier of which no text has the whole is found by its parts
		var err error
		f.Hits, err = x.rank(ctx, t.match(parts), where, cmp.Or(q.Most, DefaultMost), t)
		if err != nil || len(f.Hits) > 0 {
			return err
		}
	}
	return nil
}

// rank returns the best text of each task, best task first. Of tasks as good, the latest is first.
func (x *index) rank(ctx context.Context, match, where string, most int, t terms) ([]Hit, error) {
	weight := "CASE rowid & 7"
	for k, w := range weights {
		weight += fmt.Sprintf(" WHEN %d THEN %g", k, w)
	}
	rows, err := x.db.QueryContext(ctx, `SELECT best, at, places, step, time, text, `+columns+`
		FROM (SELECT round(max(score), 1) AS best, at, count(*) AS places, `+columns+`
		FROM (SELECT rowid AS at, -bm25(texts) * `+weight+` END AS score
		FROM texts WHERE texts MATCH ? AND `+where+` ORDER BY score DESC LIMIT ?)
		JOIN tasks ON n = at >> `+fmt.Sprint(seqBits+kindBits)+` GROUP BY n ORDER BY 1 DESC, changed DESC LIMIT ?)
		JOIN texts ON texts.rowid = at ORDER BY best DESC, changed DESC`, match, mostTexts, most*maxAlike)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	hits, best := []Hit{}, 0.0
	for len(hits) < most && rows.Next() {
		var r row
		var score float64
		var at, when int64
		var count, step int
		var text string
		if err := rows.Scan(append([]any{&score, &at, &count, &step, &when, &text}, r.fields()...)...); err != nil {
			return nil, err
		}
		if best = max(best, score); len(t) > 1 && score < best*leastShare {
			break
		}
		h := Hit{
			Task: r.id, Request: r.title, Dir: r.dir, Agent: r.agent, Step: step,
			Op: uint64(at >> kindBits & (1<<seqBits - 1)), Kind: Kind(at & (1<<kindBits - 1)).String(),
			Time: time.Unix(when, 0).UTC(), Text: t.excerpt(text), More: count - 1, CanJump: r.jumps,
		}
		if same := slices.IndexFunc(hits, func(o Hit) bool { return o.Text == h.Text }); same >= 0 {
			hits[same].Also++ // such as several attempts at one request
			continue
		}
		hits = append(hits, h)
	}
	return hits, rows.Err()
}
