package probe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"anamnesis/opstream/durable"
)

// recordVersion changes when equal trials no longer produce equal items.
const recordVersion = 1

// maxRecordLine bounds one line of a record, in bytes.
const maxRecordLine = 64 << 10

// Record writes the outcomes of a run to a file, one JSON line each, so that a
// stopped run continues without asking anything twice. A last line that a crash
// left incomplete is cut off. One process has a record open at
// a time; the nil Record keeps nothing.
type Record struct {
	f        *os.File
	outcomes map[Trial]Outcome
}

// recordHead is a record's first line: what its outcomes are true of.
type recordHead struct {
	Version int    `json:"version"`
	Model   string `json:"model"`
	Seed    uint64 `json:"seed"`
	Reply   int    `json:"reply_tokens"`
}

type recordLine struct {
	Trial
	Outcome
}

var (
	// ErrOtherRun says that a record belongs to another model, seed or limit.
	ErrOtherRun = errors.New("the record is of another run")
	// ErrBusy says that another process has the record open.
	ErrBusy = errors.New("another probe is writing the record")
)

// OpenRecord opens or begins the record of a model's run.
func OpenRecord(path, model string, o *Options) (*Record, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the probe's record: %w", err)
	}
	f, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("record %s: %w", path, ErrBusy)
	}
	if err != nil {
		return nil, fmt.Errorf("open the probe's record: %w", err)
	}
	r := &Record{f: f, outcomes: make(map[Trial]Outcome)}
	if err := r.read(recordHead{recordVersion, model, o.Seed, o.replyTokens()}); err != nil {
		return nil, errors.Join(fmt.Errorf("record %s: %w", path, err), f.Close())
	}
	return r, nil
}

// Len is how many outcomes are known.
func (r *Record) Len() int { return len(r.outcomes) }

// Close closes the file.
func (r *Record) Close() error { return r.f.Close() }

// read takes in what is there, or writes the head of a new record.
func (r *Record) read(want recordHead) error {
	br := bufio.NewReaderSize(r.f, maxRecordLine)
	var whole int64 // bytes of complete lines
	for n := 0; ; n++ {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if n == 0 {
			var head recordHead
			if err := json.Unmarshal(line, &head); err != nil || head != want {
				return fmt.Errorf("%w: it says %.200q", ErrOtherRun, line)
			}
		} else {
			var l recordLine
			if err := json.Unmarshal(line, &l); err != nil {
				return fmt.Errorf("line %d is damaged (%w); remove the file to start over", n+1, err)
			}
			r.outcomes[l.Trial] = l.Outcome
		}
		whole += int64(len(line))
	}
	if err := r.f.Truncate(whole); err != nil {
		return err
	}
	if _, err := r.f.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	if whole == 0 {
		return r.write(want)
	}
	return nil
}

func (r *Record) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.f.Write(append(line, '\n'))
	return err
}

func (r *Record) known(t Trial) (Outcome, bool) {
	if r == nil {
		return Outcome{}, false
	}
	out, ok := r.outcomes[t]
	return out, ok
}

// add keeps an outcome. It is on disk when the system writes it there: what a
// power failure takes is asked again.
func (r *Record) add(t Trial, out Outcome) error {
	if r == nil {
		return nil
	}
	if err := r.write(recordLine{t, out}); err != nil {
		return fmt.Errorf("keep an outcome: %w", err)
	}
	r.outcomes[t] = out
	return nil
}
