package opstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

const (
	// MaxFindings is how many findings a report lists; the rest are counted.
	MaxFindings = 1000
	// verifyCtxEvery is how many lines are read between two checks of ctx.
	verifyCtxEvery = 1024
)

// Severity is what a finding means for the stream.
type Severity string

// The severities.
const (
	// SeverityCorrupt: acknowledged bytes are damaged, and no writer opens the stream; or they
	// are missing, from a line's end on.
	SeverityCorrupt Severity = "corrupt"
	// SeverityTorn: the end is damaged where nothing vouches for it. The next
	// writer sets it aside. It may have been acknowledged in the last moment.
	SeverityTorn Severity = "torn"
	// SeverityNotice: information without damage.
	SeverityNotice Severity = "notice"
)

// Finding is one result of Verify.
type Finding struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Offset   int64    `json:"offset"`
	Seq      uint64   `json:"seq,omitempty"`
	Why      string   `json:"why"`
}

func (f Finding) String() string {
	if f.Seq == 0 {
		return fmt.Sprintf("%s: %s: %s", f.Severity, f.File, f.Why)
	}
	return fmt.Sprintf("%s: %s at byte %d (seq %d): %s", f.Severity, f.File, f.Offset, f.Seq, f.Why)
}

// Report is the result of Verify.
type Report struct {
	Records  uint64 `json:"records"`   // verified lines
	Segments int    `json:"segments"`  // files
	Bytes    int64  `json:"bytes"`     // of verified lines, with newlines
	Blobs    int    `json:"blobs"`     // distinct blobs named by lines
	LastSeq  uint64 `json:"last_seq"`  // of the last verified line
	LastHash string `json:"last_hash"` // of that line, 32 hex digits
	Acked    uint64 `json:"acked"`     // highest seq something vouches for
	Sealed   bool   `json:"sealed"`    // the last line is log.sealed
	// Writer is the process that writes the stream now, 0 for none. The end
	// of a live stream may be a write under way.
	Writer   int       `json:"writer,omitempty"`
	Findings []Finding `json:"findings"`
	Omitted  int       `json:"omitted,omitempty"` // findings beyond MaxFindings
}

// Has reports whether there is a finding of a severity.
func (r *Report) Has(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == s })
}

func (r *Report) add(f Finding) {
	if len(r.Findings) == MaxFindings {
		r.Omitted++
		// Keep the worst visible.
		if f.Severity == SeverityCorrupt && !r.Has(SeverityCorrupt) {
			r.Findings[MaxFindings-1] = f
		}
		return
	}
	r.Findings = append(r.Findings, f)
}

// Verify reads the stream in dir up to its end or its first damaged line: form, checksum, seq,
// chain and ack of every line, the JSON of every body, every blob. The report lists damage; the
// error means that it could not be examined (ErrNotFound if there is no stream). It takes no
// lock and changes nothing.
func Verify(ctx context.Context, dir string) (Report, error) {
	return verify(ctx, durable.OS{}, dir)
}

func verify(ctx context.Context, fsys durable.FS, dir string) (Report, error) {
	for try := 1; ; try++ {
		v := verifier{fs: fsys, dir: dir, blobs: map[string]bool{}}
		if err := v.run(ctx); err != nil {
			return Report{}, err
		}
		// A live writer may have changed the end between two looks.
		if v.report.Writer == 0 || !v.report.Has(SeverityCorrupt) || try == rereadTries {
			return v.report, nil
		}
	}
}

type verifier struct {
	fs     durable.FS
	dir    string
	scan   segments.Scanner
	report Report
	blobs  map[string]bool // hashes of the examined blobs
	seen   uint64
	// lastAck is the ack of the previous line: acks never decrease.
	lastAck uint64
	// snapshot is the snapshot at the beginning of the examination.
	snapshot    *segments.Snapshot
	snapshotErr error
}

func (v *verifier) run(ctx context.Context) error {
	segs, others, err := segments.List(v.fs, v.dir)
	if err != nil {
		return notFound(v.dir, err)
	}
	v.report.Findings = []Finding{}
	v.report.Segments = len(segs)
	v.report.Writer = durable.Writer(filepath.Join(v.dir, LockName))
	// Before the lines: what a running writer adds meanwhile is not a lost end.
	v.snapshot, v.snapshotErr = segments.ReadSnapshot(v.fs, v.dir)
	for _, name := range others {
		v.note(filepath.Join(v.dir, segments.OpsDirName, name), "no segment; left alone")
	}
	v.scan = segments.Scanner{FS: v.fs, Dir: v.dir, Visit: func(e *wire.Envelope, off int64, size int) error {
		if v.seen++; v.seen%verifyCtxEvery == 0 && ctx.Err() != nil {
			return fmt.Errorf("verify %s: %w", v.dir, ctx.Err())
		}
		return v.line(e, off, size)
	}}
	if err := v.cannotRead(v.lines()); err != nil {
		return err
	}
	cur := &v.scan.Cur
	v.report.LastSeq = cur.Seq
	v.report.LastHash = fmt.Sprintf("%x", cur.Hash[:])
	v.report.Acked = cur.Ack
	v.report.Sealed = cur.Kind == kindSealed
	v.checkSnapshot()
	return v.setAside()
}

// lines verifies up to the end or the first damage.
func (v *verifier) lines() error {
	st, err := v.scan.Advance()
	// A write of the live writer may have been seen half done.
	for try := 1; err == nil && st != nil && v.report.Writer != 0 && try < rereadTries; try++ {
		st, err = v.scan.Advance()
	}
	if err != nil || st == nil {
		return err
	}
	vouched, err := v.scan.Vouched(st)
	if err != nil {
		return err
	}
	f := Finding{Severity: SeverityTorn, File: segments.Path(v.dir, st.Seg), Offset: st.Off, Seq: st.Seq, Why: st.Why}
	if vouched < st.Seq {
		if v.report.Writer != 0 {
			f.Severity = SeverityNotice
			f.Why += fmt.Sprintf("; process %d is writing", v.report.Writer)
		}
	} else {
		f.Severity, f.Why = SeverityCorrupt, v.scan.Corrupt(st, vouched).Why
	}
	v.report.add(f)
	return nil
}

// cannotRead makes a finding of an error about unreadable bytes, and returns any other.
func (v *verifier) cannotRead(err error) error {
	if err == nil || !durable.Unreadable(err) {
		return err
	}
	// The first segment begins with line 1. It is named as well if not even its first line could be read.
	v.report.add(Finding{
		Severity: SeverityCorrupt, File: segments.Path(v.dir, max(v.scan.Cur.Seg(), 1)),
		Offset: v.scan.Cur.Off, Seq: v.scan.Cur.Seq + 1, Why: err.Error(),
	})
	return nil
}

// line examines the content of a verified line.
func (v *verifier) line(e *wire.Envelope, off int64, size int) error {
	v.report.Records++
	v.report.Bytes += int64(size) + 1
	bad := Finding{Severity: SeverityCorrupt, File: segments.Path(v.dir, v.scan.Cur.Seg()), Offset: off, Seq: e.Seq}
	add := func(why string) { bad.Why = why; v.report.add(bad) }
	if e.Ack < v.lastAck {
		add(fmt.Sprintf("ack went back from %d to %d", v.lastAck, e.Ack))
	}
	v.lastAck = e.Ack
	ref, isBlob, err := segments.ParseBlobRef(e.Body)
	switch {
	case err != nil:
		add(err.Error())
		return nil
	case !isBlob:
		// The checksum covers the body's bytes, but not that its writer made JSON of them.
		if !json.Valid(e.Body) {
			add("the body is not JSON")
		}
		return nil
	case v.blobs[ref.Blob.SHA256]:
		return nil
	}
	v.blobs[ref.Blob.SHA256] = true
	v.report.Blobs++
	_, err = segments.ResolveBody(v.fs, v.dir, e.Seq, e.Body)
	if damage, ok := errors.AsType[*wire.CorruptError](err); ok {
		bad.File, bad.Offset = damage.File, 0
		add(damage.Why)
		return nil
	}
	return err
}

// setAside reports torn tails that were set aside.
func (v *verifier) setAside() error {
	names, err := v.fs.ReadDir(v.dir)
	if err != nil {
		return fmt.Errorf("verify %s: %w", v.dir, err)
	}
	slices.Sort(names)
	for _, name := range names {
		if r, ok := parseTornName(name); ok {
			v.note(filepath.Join(v.dir, name), fmt.Sprintf("torn bytes set aside from %s at byte %d", r.File, r.Offset))
		}
	}
	return nil
}

func (v *verifier) note(file, why string) {
	v.report.add(Finding{Severity: SeverityNotice, File: file, Why: why})
}
