package counterparts

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver

	"anamnesis/opstream"
)

// store appends bodies durably: when append returns, they are on disk.
type store interface {
	append(bodies [][]byte) error
	// last gives the body appended last, as it is read back.
	last() ([]byte, error)
	close() error
}

// maker opens a store in an empty directory.
type maker struct {
	name string
	open func(dir string) (store, error)
}

func makers() []maker {
	return []maker{
		{"opstream", openStream},
		{"sqlite", openSQLite},
		{"bbolt", openBolt},
		{"raft-wal", openRaftWAL},
	}
}

type stream struct{ log *opstream.Log }

func openStream(dir string) (store, error) {
	l, err := opstream.Open(dir, nil)
	return &stream{l}, err
}

func (s *stream) append(bodies [][]byte) error {
	entries := make([]opstream.Entry, len(bodies))
	for i, body := range bodies {
		entries[i] = opstream.Entry{Kind: "tool.returned", Step: 1, Tok: 256, Body: body}
	}
	_, err := s.log.Append(context.Background(), entries...)
	return err
}

func (s *stream) last() ([]byte, error) {
	seq, _ := s.log.Last()
	rec, err := s.log.Get(seq)
	return rec.Body, err
}

func (s *stream) close() error { return s.log.Close() }

type sqlite struct {
	db     *sql.DB
	insert *sql.Stmt
}

func openSQLite(dir string) (store, error) {
	db, err := sql.Open("sqlite",
		"file:"+filepath.Join(dir, "ops.sqlite")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	var mode string
	var level int
	if err := errors.Join(db.QueryRow("PRAGMA journal_mode").Scan(&mode), db.QueryRow("PRAGMA synchronous").Scan(&level)); err != nil {
		return nil, err
	}
	if mode != "wal" || level != 2 {
		return nil, fmt.Errorf("SQLite runs with journal_mode %s, synchronous %d", mode, level)
	}
	if _, err := db.Exec("CREATE TABLE ops (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, step INTEGER, tok INTEGER, body BLOB)"); err != nil {
		return nil, err
	}
	insert, err := db.Prepare("INSERT INTO ops (kind, step, tok, body) VALUES ('tool.returned', 1, 256, ?)")
	return &sqlite{db, insert}, err
}

func (s *sqlite) append(bodies [][]byte) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	insert := tx.Stmt(s.insert)
	for _, body := range bodies {
		if _, err := insert.Exec(body); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (s *sqlite) last() (body []byte, err error) {
	err = s.db.QueryRow("SELECT body FROM ops ORDER BY seq DESC LIMIT 1").Scan(&body)
	return body, err
}

func (s *sqlite) close() error { return errors.Join(s.insert.Close(), s.db.Close()) }

type bbolt struct {
	db  *bolt.DB
	seq uint64
}

func openBolt(dir string) (store, error) {
	db, err := bolt.Open(filepath.Join(dir, "ops.bolt"), 0o600,
		&bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	return &bbolt{db: db}, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("ops"))
		return err
	})
}

func (s *bbolt) append(bodies [][]byte) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("ops"))
		b.FillPercent = 0.9 // keys only grow
		for _, body := range bodies {
			s.seq++
			if err := b.Put(binary.BigEndian.AppendUint64(nil, s.seq), body); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *bbolt) last() (body []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		_, v := tx.Bucket([]byte("ops")).Cursor().Last()
		body = bytes.Clone(v)
		return nil
	})
	return body, err
}

func (s *bbolt) close() error { return s.db.Close() }

type raftWAL struct {
	log *wal.WAL
	seq uint64
}

func openRaftWAL(dir string) (store, error) {
	l, err := wal.Open(dir)
	return &raftWAL{log: l}, err
}

func (s *raftWAL) append(bodies [][]byte) error {
	logs := make([]*raft.Log, len(bodies))
	for i, body := range bodies {
		s.seq++
		logs[i] = &raft.Log{Index: s.seq, Term: 1, Data: body}
	}
	return s.log.StoreLogs(logs)
}

func (s *raftWAL) last() ([]byte, error) {
	seq, err := s.log.LastIndex()
	if err != nil {
		return nil, err
	}
	var l raft.Log
	err = s.log.GetLog(seq, &l)
	return l.Data, err
}

func (s *raftWAL) close() error { return s.log.Close() }

// bare writes a line's bytes and syncs them: no store can do with less.
type bare struct {
	f    *os.File
	line []byte
}

// lineBytes is the size of the line in which opstream keeps benchBody.
const lineBytes = 1207

func openBare(dir string) (*bare, error) {
	f, err := os.Create(filepath.Join(dir, "bare"))
	return &bare{f, bytes.Repeat([]byte{'x'}, lineBytes)}, err
}

func (s *bare) append(bodies [][]byte) error {
	if _, err := s.f.Write(bytes.Repeat(s.line, len(bodies))); err != nil {
		return err
	}
	return unix.Fdatasync(int(s.f.Fd()))
}

func benchBody(n int) []byte {
	return fmt.Appendf(nil, `{"n":%09d,"text":"%s"}`, 100_000_000+n, strings.Repeat("x", 999))
}

// TestStores holds that each store returns what was appended to it: what is
// measured below does its work.
func TestStores(t *testing.T) {
	for _, m := range makers() {
		t.Run(m.name, func(t *testing.T) {
			s, err := m.open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n <= 3; n++ {
				if err := s.append([][]byte{benchBody(0), benchBody(n)}); err != nil {
					t.Fatal(err)
				}
				if got, err := s.last(); err != nil || !bytes.Equal(got, benchBody(n)) {
					t.Errorf("last = %.40s, %v; want %.40s", got, err, benchBody(n))
				}
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
