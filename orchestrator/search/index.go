package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// A text's rowid is its task's number, the seq of its operation, and its kind: a query that many texts fit reads no
// other column of theirs. The version is also that of what texts and retrieval.Words make of a stream: raise it when
// one of them changes.
const (
	kindBits = 3
	seqBits  = 32
	version  = 5
	tables   = `
CREATE TABLE tasks(n INTEGER PRIMARY KEY, id TEXT UNIQUE, stamp TEXT, last INTEGER, mark TEXT, dir TEXT, source TEXT,
	repo TEXT, title TEXT, agent TEXT, jumps INTEGER, began INTEGER, changed INTEGER);
CREATE VIRTUAL TABLE texts USING fts5(words, step UNINDEXED, time UNINDEXED, text UNINDEXED,
	content='', contentless_delete=1, contentless_unindexed=1, tokenize="ascii tokenchars '_'");`
)

// row describes a task in the index. last is its last operation, and mark distinguishes that from another stream's.
// source is the directory that a worktree was made of.
type row struct {
	n, last, began, changed                          int64
	id, stamp, mark, dir, source, repo, title, agent string
	jumps                                            bool // it has snapshots of its own
}

const columns = "n, id, stamp, last, mark, dir, source, repo, title, agent, jumps, began, changed"

func (r *row) fields() []any {
	return []any{&r.n, &r.id, &r.stamp, &r.last, &r.mark, &r.dir, &r.source, &r.repo, &r.title, &r.agent, &r.jumps,
		&r.began, &r.changed}
}

// index is an open index.
type index struct {
	home taskdir.Home
	db   *sql.DB
}

func path(h taskdir.Home) string { return filepath.Join(h.State, "search.db") }

// Remove removes the index, which the next search builds again: without the texts of tasks that were deleted.
func Remove(h taskdir.Home) (err error) {
	// The journal goes first: SQLite would apply one that is left alone to the next index of this name.
	for _, ending := range []string{"-journal", ""} {
		if failed := os.Remove(path(h) + ending); !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func open(ctx context.Context, h taskdir.Home) (*index, error) {
	// SQLite would create the file with mode 0644.
	f, err := os.OpenFile(path(h), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	f.Close()
	return connect(ctx, h, "file:"+(&url.URL{Path: path(h)}).EscapedPath()+"?")
}

// connect opens a database. Several processes may search and build at once: each waits for the transaction of another
// one. What is deleted is overwritten.
func connect(ctx context.Context, h taskdir.Home, name string) (*index, error) {
	db, err := sql.Open("sqlite", name+"_pragma=busy_timeout(60000)&_pragma=secure_delete(on)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection to a database in memory would have one of its own
	x := &index{h, db}
	err = x.change(ctx, func(tx *sql.Tx) (err error) {
		var v int
		if err = tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err == nil && v == 0 {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("%s\nPRAGMA user_version = %d", tables, version))
		} else if err == nil && v != version {
			err = errOther
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return x, nil
}

// errOther: another version of the program wrote the index.
var errOther = errors.New("of another version")

func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}

func (x *index) change(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// update adds what tasks have recorded since, and removes what is gone, a task a transaction. progress receives how
// many of the changed tasks were read.
func (x *index) update(ctx context.Context, progress func(read, of int)) error {
	ids, err := x.home.Tasks()
	if err != nil {
		return err
	}
	tasks, err := x.tasks(ctx)
	if err != nil {
		return err
	}
	known, todo := map[string]row{}, []string{}
	for _, r := range tasks {
		known[r.id] = r
		if _, found := slices.BinarySearch(ids, r.id); !found {
			todo = append(todo, r.id)
		}
	}
	for _, id := range ids {
		if stamp := stampOf(x.home, id); stamp != "" && stamp != known[id].stamp {
			todo = append(todo, id)
		}
	}
	for i, id := range todo {
		progress(i, len(todo))
		if err := x.change(ctx, func(tx *sql.Tx) error { return x.read(ctx, tx, id) }); err != nil {
			return err
		}
	}
	progress(len(todo), len(todo))
	return nil
}

func (x *index) tasks(ctx context.Context) (all []row, err error) {
	rows, err := x.db.QueryContext(ctx, "SELECT "+columns+" FROM tasks")
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var r row
		if err := rows.Scan(r.fields()...); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		all = append(all, r)
	}
	return all, errors.Join(rows.Err(), rows.Close())
}

// stampOf returns what changes whenever a task's stream does; empty without a stream.
func stampOf(h taskdir.Home, id string) string {
	entries, err := os.ReadDir(filepath.Join(h.Task(id), "ops"))
	if err != nil || len(entries) == 0 {
		return ""
	}
	info, err := entries[len(entries)-1].Info()
	if err != nil {
		return ""
	}
	return fmt.Sprint(len(entries), info.Name(), info.Size(), info.ModTime().UnixNano())
}

// read adds the operations of a task that the index lacks, as far as its stream can be read.
func (x *index) read(ctx context.Context, tx *sql.Tx, id string) error {
	r := row{id: id}
	err := tx.QueryRowContext(ctx, "SELECT "+columns+" FROM tasks WHERE id = ?", id).Scan(r.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, "SELECT coalesce(max(n), 0) + 1 FROM tasks").Scan(&r.n)
	}
	if err != nil {
		return err
	}
	stamp := stampOf(x.home, id) // before the stream is read: what is written meanwhile is read by the next search
	stream, damage := taskdir.OpenStream(x.home, id)
	if errors.Is(damage, taskdir.ErrNoTask) {
		return deleteTask(ctx, tx, r.n)
	}
	if damage == nil {
		defer stream.Close()
		last, damage := stream.Get(uint64(r.last))
		if mark := fmt.Sprintf("%x %v", last.Prev, last.Time); r.last > 0 && (damage != nil || mark != r.mark) {
			// Another stream has the task's name now, or this one was repaired.
			if err := deleteTask(ctx, tx, r.n); err != nil {
				return err
			}
			r = row{n: r.n, id: id}
		}
		for rec, damage := range stream.Since(uint64(r.last)) {
			o, undecoded := taskdir.Decode(rec)
			if damage != nil || undecoded != nil {
				break // it is read again when it changes; doctor names the damage
			}
			r.note(&o)
			r.last, r.mark = int64(o.Seq), fmt.Sprintf("%x %v", rec.Prev, rec.Time)
			when, step := o.Time.Unix(), o.Step
			if r.began > 0 {
				when = r.began
			}
			if left, is := o.Body.(*op.JumpIntended); is { // the end of the path that was left
				step = left.From
			}
			for _, t := range texts(o.Body) {
				at := (r.n<<seqBits|r.last)<<kindBits | int64(t.kind)
				const insert = "INSERT INTO texts(rowid, words, step, time, text) VALUES(?, ?, ?, ?, ?)"
				if _, err := tx.ExecContext(ctx, insert, at, words(t.text), step, when, t.text); err != nil {
					return err
				}
			}
		}
	}
	r.stamp = stamp
	values := strings.Repeat(", ?", strings.Count(columns, ","))
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO tasks("+columns+") VALUES(?"+values+")", r.fields()...)
	return err
}

// note adds what an operation says of the task.
func (r *row) note(o *op.Op) {
	r.changed = o.Time.Unix()
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		r.dir, r.source, r.repo, r.jumps = b.Dir, b.WorktreeOf(), b.Repo, b.Parent == nil && !b.Origin.Imported()
		if b.Origin != nil {
			r.agent = b.Origin.Agent
		}
		if b.Origin.Imported() { // all its operations were written by the import
			r.began = b.Origin.Began.Unix()
		}
	case *op.TaskResumed:
		r.dir = cmp.Or(b.Dir, r.dir)
	case *op.UserSaid:
		r.title = cmp.Or(r.title, taskdir.Title(b.Text))
	}
	if r.began > 0 {
		r.changed = r.began
	}
}

// words returns a text as the words of the index, in their order.
func words(s string) string {
	var out strings.Builder
	retrieval.Words(s, func(w string) { out.WriteString(w + " ") })
	return out.String()
}

// deleteTask deletes a task, and overwrites its bytes in the file.
func deleteTask(ctx context.Context, tx *sql.Tx, n int64) error {
	// Without 'optimize', segments still have the words of deleted rows.
	_, err := tx.ExecContext(ctx, fmt.Sprintf(`DELETE FROM texts WHERE rowid >> %d = %d; DELETE FROM tasks WHERE n = %d;
		INSERT INTO texts(texts) VALUES('optimize')`, seqBits+kindBits, n, n))
	return err
}
