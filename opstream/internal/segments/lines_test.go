package segments

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

// TestParseName: a segment's name holds its first seq in all its digits, and no other name does.
func TestParseName(t *testing.T) {
	digits := strings.Repeat("0", Digits-1)
	for name, want := range map[string]uint64{
		digits + "7" + Suffix: 7, strings.Repeat("9", Digits) + Suffix: 9999999999999999,
		"": 0, "7" + Suffix: 0, digits + "7": 0, digits + "7.json": 0, digits + "07" + Suffix: 0,
		digits + "0" + Suffix: 0, digits + "x" + Suffix: 0, digits + "/" + Suffix: 0, digits + ":" + Suffix: 0,
		"+" + digits[1:] + "7" + Suffix: 0,
	} {
		if got, ok := ParseName(name); got != want && ok || ok != (want > 0) {
			t.Errorf("%q: %d, %v", name, got, ok)
		}
	}
	if got, ok := ParseName(filepath.Base(Name(12))); got != 12 || !ok {
		t.Errorf("the name of 12 is read as %d, %v", got, ok)
	}
}

// TestPrecedes: segments come before offsets.
func TestPrecedes(t *testing.T) {
	r := Ref{seg: 5, off: 100}
	for _, tt := range []struct {
		seg  uint64
		off  int64
		want bool
	}{{4, 200, false}, {5, 99, false}, {5, 100, false}, {5, 101, true}, {6, 0, true}} {
		if got := r.Precedes(tt.seg, tt.off); got != tt.want {
			t.Errorf("before %d of segment %d: %v", tt.off, tt.seg, got)
		}
	}
}

// TestRead: a line is the one that its reference names, whole, and where no scan has verified the chain,
// the one after the line that was read before.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	var data []byte
	var refs []Ref
	prev := wire.Hash{9} // of the first line; it is not compared with anything
	for seq := uint64(1); seq <= 4; seq++ {
		if seq == 4 {
			prev[0]++ // it does not follow the line before
		}
		line := wire.AppendLine(nil, &wire.Envelope{
			Seq: seq, TS: wire.AppendTime(nil, time.Unix(0, 0)), Kind: []byte("a"), Body: []byte("{}"), Prev: prev,
		})
		refs = append(refs, Ref{Seq: seq, seg: 1, off: int64(len(data)), size: len(line)})
		prev = wire.HashOf(line)
		data = append(append(data, line...), '\n')
	}
	err := os.Mkdir(filepath.Join(dir, OpsDirName), 0o700)
	if err = errors.Join(err, os.WriteFile(Path(dir, 1), data[:len(data)-1], 0o600)); err != nil {
		t.Fatal(err)
	}
	with := func(ref Ref, change func(*Ref)) Ref { change(&ref); return ref }
	for _, tt := range []struct {
		name    string
		chained uint64
		refs    []Ref
		why     string // of the last one; "" if it is right
	}{
		{"each after the other", 0, refs, ""},
		{"backwards", 4, []Ref{refs[3], refs[2], refs[1], refs[0]}, ""},
		{"the chain", 4, refs[:3], ""},
		{"a broken chain", 4, refs, "prev is not the hash"},
		{"a broken chain behind what is checked", 3, refs, ""},
		{"after another line", 4, []Ref{refs[1], refs[3]}, ""},
		{"the first one", 4, refs[3:], ""},
		{"another seq", 0, []Ref{with(refs[1], func(r *Ref) { r.Seq = 7 })}, "seq is 2, expected 7"},
		{"another place", 0, []Ref{with(refs[1], func(r *Ref) { r.off++ })}, " "},
		{"cut short", 0, []Ref{with(refs[1], func(r *Ref) { r.size-- })}, " "},
		{"beyond the end", 0, []Ref{with(refs[3], func(r *Ref) { r.size += 2 })}, "ends early"},
	} {
		r := Reader{FS: durable.OS{}, Dir: dir, Chained: tt.chained}
		for i, ref := range tt.refs {
			line, e, err := r.Read(ref)
			why := ""
			if i == len(tt.refs)-1 {
				why = tt.why
			}
			var c *wire.CorruptError
			switch {
			case why == "" &&
				(err != nil || e.Seq != ref.Seq || string(line) != string(data[ref.off:ref.off+int64(ref.size)])):
				t.Errorf("%s: line %d: %s, %v", tt.name, i, line, err)
			case why != "" &&
				(!errors.As(err, &c) || c.Seq != ref.Seq || c.Offset != ref.off || !strings.Contains(c.Why, why)):
				t.Errorf("%s: %v, want %q", tt.name, err, why)
			}
		}
		r.Close()
	}
}
