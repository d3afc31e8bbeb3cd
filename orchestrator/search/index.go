package search

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// version is that of the tables and of what texts and retrieval.Words make of a stream: raise it when one of them changes.
const version = 1

// A text's rowid is its task's number, the seq of its operation, and its kind, so that its row needs no other column.
const (
	kindBits = 3
	seqBits  = 32
)

const tables = `
CREATE TABLE tasks(n INTEGER PRIMARY KEY, id TEXT UNIQUE, stamp TEXT, last INTEGER, mark TEXT, dir TEXT, repo TEXT, title TEXT,
	agent TEXT, parent TEXT, imported INTEGER, began INTEGER, changed INTEGER, damage TEXT);
CREATE TABLE hours(n INTEGER, hour INTEGER, seq INTEGER, PRIMARY KEY(n, hour)) WITHOUT ROWID;
CREATE VIRTUAL TABLE texts USING fts5(words, content='', contentless_delete=1, tokenize="ascii tokenchars '_'");`

// index is the file of the index, open.
type index struct {
	home taskdir.Home
	db   *sql.DB
	file os.FileInfo // nil: it is kept in memory
}

func path(h taskdir.Home) string { return filepath.Join(h.State, "search.db") }

// Remove removes the index, which the next search builds again: without the texts of tasks that were deleted.
func Remove(h taskdir.Home) error {
	var errs []error
	for _, ending := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(path(h) + ending); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// open opens the index, and creates it if there is none.
func open(ctx context.Context, h taskdir.Home) (*index, error) {
	f, err := os.OpenFile(path(h), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return connect(ctx, h, "file:"+(&url.URL{Path: path(h)}).EscapedPath()+"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&", info)
}

// connect opens a database; what cannot be used is returned with the error. Several processes may search and build at once: each waits for the transaction of another one.
// What is deleted is overwritten.
func connect(ctx context.Context, h taskdir.Home, name string, info os.FileInfo) (*index, error) {
	db, err := sql.Open("sqlite", name+"_pragma=busy_timeout(60000)&_pragma=secure_delete(on)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	x := &index{h, db, info}
	err = x.change(ctx, func(tx *sql.Tx) error {
		var v int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err != nil || v == version {
			return err
		}
		if v != 0 {
			return errOther
		}
		_, err := tx.ExecContext(ctx, tables+fmt.Sprintf("PRAGMA user_version = %d", version))
		return err
	})
	if err != nil {
		return x, errors.Join(err, db.Close())
	}
	return x, nil
}

// errOther: another version of the program wrote the index.
var errOther = errors.New("is of another version")

// unusable reports why an index has to be built again; empty: not because of its content.
func unusable(err error) string {
	var e *sqlite.Error
	switch {
	case errors.Is(err, errOther):
		return errOther.Error()
	case errors.As(err, &e) && slices.Contains([]int{sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}, e.Code()&0xff):
		return "is damaged"
	}
	return ""
}

// full reports whether there was no room to write.
func full(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_FULL
}

// discard removes the file of an unusable index, unless another process has done so.
func (x *index) discard() error {
	lock, err := durable.Lock(path(x.home) + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if now, err := os.Stat(path(x.home)); err != nil || !os.SameFile(now, x.file) {
		return nil
	}
	return Remove(x.home)
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

// row is what the index knows of a task.
type row struct {
	n, last, began, changed                          int64
	id, stamp, mark, dir, repo, title, agent, parent string
	damage                                           string // why the stream could not be read to its end
	imported                                         bool
}

const columns = "n, id, stamp, last, mark, dir, repo, title, agent, parent, imported, began, changed, damage"

func (r *row) fields() []any {
	return []any{&r.n, &r.id, &r.stamp, &r.last, &r.mark, &r.dir, &r.repo, &r.title, &r.agent, &r.parent, &r.imported, &r.began, &r.changed, &r.damage}
}

// update adds what tasks have recorded since, and removes what is gone. progress receives how many of the changed tasks
// were read.
func (x *index) update(ctx context.Context, progress func(read, of int)) error {
	ids, err := x.home.Tasks()
	if err != nil {
		return err
	}
	known, err := x.tasks(ctx)
	if err != nil {
		return err
	}
	var todo []string
	for _, id := range ids {
		if stamp := stampOf(x.home, id); stamp != "" && stamp != known[id].stamp {
			todo = append(todo, id)
		}
	}
	for id, r := range known {
		if _, found := slices.BinarySearch(ids, id); !found {
			if err := x.change(ctx, func(tx *sql.Tx) error { return forget(ctx, tx, r.n) }); err != nil {
				return err
			}
		}
	}
	for i, id := range todo {
		progress(i, len(todo))
		for more := true; more; {
			if err := x.change(ctx, func(tx *sql.Tx) (err error) { more, err = x.read(ctx, tx, id); return err }); err != nil {
				return err
			}
		}
	}
	progress(len(todo), len(todo))
	return nil
}

// tasks returns what the index knows of each task.
func (x *index) tasks(ctx context.Context) (map[string]row, error) {
	rows, err := x.db.QueryContext(ctx, "SELECT "+columns+" FROM tasks")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[string]row{}
	for rows.Next() {
		var r row
		if err := rows.Scan(r.fields()...); err != nil {
			return nil, err
		}
		known[r.id] = r
	}
	return known, rows.Err()
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

// maxTransactionTexts bounds what one transaction adds, so that others need not wait long for it.
const maxTransactionTexts = 5_000

// read adds operations of a task that the index lacks, and reports whether there are more of them.
func (x *index) read(ctx context.Context, tx *sql.Tx, id string) (more bool, err error) {
	r := row{id: id}
	err = tx.QueryRowContext(ctx, "SELECT "+columns+" FROM tasks WHERE id = ?", id).Scan(r.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, "SELECT coalesce(max(n), 0) + 1 FROM tasks").Scan(&r.n)
	}
	if err != nil {
		return false, err
	}
	stamp := stampOf(x.home, id) // before the stream is read: what is written meanwhile is read by the next search
	more, damage, err := x.add(ctx, tx, &r)
	if err != nil {
		return false, err
	}
	if r.damage = ""; damage != nil {
		r.damage = damage.Error()
	}
	if !more { // a damaged stream is read again when it changes
		r.stamp = stamp
	}
	values := strings.Repeat(", ?", strings.Count(columns, ","))
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO tasks("+columns+") VALUES(?"+values+")", r.fields()...)
	return more, err
}

// add adds what follows the last operation of a row. damage says why the stream cannot be read to its end.
func (x *index) add(ctx context.Context, tx *sql.Tx, r *row) (more bool, damage, err error) {
	stream, damage := taskdir.OpenStream(x.home, r.id)
	if damage != nil {
		return false, damage, nil
	}
	defer stream.Close()
	if last, err := stream.Get(uint64(r.last)); r.last > 0 && (err != nil || markOf(last) != r.mark) {
		// Another stream has the task's name now, or this one was repaired.
		if err := forget(ctx, tx, r.n); err != nil {
			return false, nil, err
		}
		*r = row{n: r.n, id: r.id}
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO texts(rowid, words) VALUES(?, ?)")
	if err != nil {
		return false, nil, err
	}
	defer insert.Close()
	added := 0
	for rec, damage := range stream.Since(uint64(r.last)) {
		if damage != nil {
			return false, damage, nil
		}
		o, damage := taskdir.Decode(rec)
		if damage != nil || added >= maxTransactionTexts {
			return damage == nil, damage, nil
		}
		for _, t := range texts(o.Body) {
			if _, err := insert.ExecContext(ctx, (r.n<<seqBits|int64(o.Seq))<<kindBits|int64(t.kind), words(t.text)); err != nil {
				return false, nil, err
			}
			added++
		}
		r.note(&o)
		r.last, r.mark = int64(o.Seq), markOf(rec)
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO hours VALUES(?, ?, ?)", r.n, r.changed/3600, o.Seq); err != nil {
			return false, nil, err
		}
	}
	return false, nil, nil
}

// note keeps of an operation what describes the task.
func (r *row) note(o *op.Op) {
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		r.dir, r.repo, r.parent, r.imported = b.Dir, b.Repo, b.ParentTask(), b.Origin.Imported()
		if b.Origin != nil {
			r.agent = b.Origin.Agent
		}
		if r.began = o.Time.Unix(); r.imported && !b.Origin.Began.IsZero() {
			r.began = b.Origin.Began.Unix()
		}
	case *op.TaskResumed:
		if b.Dir != "" {
			r.dir = b.Dir
		}
	case *op.UserSaid:
		if r.title == "" {
			r.title = taskdir.Title(b.Text)
		}
	}
	if r.changed = o.Time.Unix(); r.imported { // all its operations were written by the import
		r.changed = r.began
	}
}

// markOf tells a record from the one of the same seq in another stream.
func markOf(rec opstream.Record) string {
	return hex.EncodeToString(rec.Prev[:]) + rec.Time.Format("150405.000000")
}

// words returns a text as the words of the index, in their order.
func words(s string) string {
	var out strings.Builder
	retrieval.Words(s, func(w string) { out.WriteString(w); out.WriteByte(' ') })
	return out.String()
}

// forget removes a task, from the bytes of the file, too.
func forget(ctx context.Context, tx *sql.Tx, n int64) error {
	for table, id := range map[string]string{"texts": fmt.Sprintf("rowid >> %d", seqBits+kindBits), "hours": "n", "tasks": "n"} {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE "+id+" = ?", n); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO texts(texts) VALUES('optimize')") // segments still have the words of deleted rows
	return err
}
