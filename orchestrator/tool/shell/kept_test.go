package shell

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

// recorder is what Env.Keep fills: the texts of operations, the first one 1.
type recorder []string

func (r *recorder) keep(_ int, _ int64, text string) (uint64, error) {
	*r = append(*r, text)
	return uint64(len(*r)), nil
}

// Whatever comes: an output that is shown whole is not kept; of one that is cut
// the parts together are the output, and the place that is named is where what
// is shown ends.
func TestKeptProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes, line := rapid.IntRange(4, 60).Draw(t, "runes"), rapid.IntRange(1, 60).Draw(t, "line")
		pieces := rapid.SliceOf(
			rapid.SliceOf(rapid.SampledFrom([]byte("ab\n\xff\xc3\xa4\xe2\x82\xac")))).Draw(t, "pieces")
		var rec recorder
		o := newOutputs(runes, line, &tool.Env{Keep: rec.keep})
		var all []byte
		for _, p := range pieces {
			all = append(all, p...)
			o.write(guard.Stdout, p)
		}
		res := o.result(guard.Outcome{}, time.Second)
		if (res.Cut > 0) != (len(rec) > 0) || len(res.Kept) != len(rec) {
			t.Fatalf("%d bytes cut, %d parts kept, named %v", res.Cut, len(rec), res.Kept)
		}
		if len(rec) == 0 {
			return
		}
		if got := strings.Join(rec, ""); got != valid(all) {
			t.Fatalf("kept %q of %q", got, all)
		}
		before, after, cut := strings.Cut(res.Text, "[… ")
		if !cut || o.merged.lineEnd >= 0 { // what is shown holds remarks, too
			return
		}
		p := o.kept.head
		if rest := rec[p.op-1][p.from:]; !strings.HasPrefix(valid(all), strings.TrimSuffix(before, "\n")) ||
			len(rest)+len(before) < len(valid(all)) {
			t.Fatalf("shown %q, then cut; recall from %d begins with %q\n%s", before, p.from, rest, after)
		}
	})
}

// Parts end between lines or, where a line is longer than a part, between
// characters; what is beyond the limit is counted and said.
func TestKeptParts(t *testing.T) {
	for name, text := range map[string]string{"lines": "a line of output\n", "one line": "äöü€"} {
		var rec recorder
		o := newOutputs(1000, 100, &tool.Env{Keep: rec.keep})
		piece := []byte(strings.Repeat(text, 3000))
		for n := 0; n <= MaxKeptBytes; n += len(piece) {
			o.write(guard.Stdout, piece)
		}
		res := o.result(guard.Outcome{}, time.Second)
		total := 0
		for i, part := range rec {
			total += len(part)
			if i < len(rec)-1 &&
				(!strings.HasSuffix(part, text[len(text)-1:]) && name == "lines" || !utf8.ValidString(part) ||
					strings.Contains(part, "\uFFFD")) {
				t.Errorf("%s: part %d of %d bytes ends with %q", name, i+1, len(part), part[len(part)-20:])
			}
			if len(part) > keptPartBytes {
				t.Errorf("%s: part %d has %d bytes", name, i+1, len(part))
			}
		}
		if total < MaxKeptBytes-utf8.UTFMax || total > MaxKeptBytes+utf8.UTFMax ||
			!strings.Contains(res.Text, "only the first 16777216 bytes of it are kept") {
			t.Errorf("%s: %d bytes kept; the text says %s", name, total, res.Text[max(0, len(res.Text)-300):])
		}
	}
}

// An output that cannot be kept is shown as far as it can be, and the result says so.
func TestKeptFails(t *testing.T) {
	calls := 0
	env := &tool.Env{Keep: func(int, int64, string) (uint64, error) {
		if calls++; calls > 1 {
			return 0, errors.New("the disk is full")
		}
		return 7, nil
	}}
	o := newOutputs(100, 50, env)
	o.write(guard.Stdout, []byte(strings.Repeat("a line of output\n", 4*keptPartBytes/17)))
	res := o.result(guard.Outcome{}, time.Second)
	if calls != 2 || !strings.Contains(res.Text, "recall with op 7 and from 34 shows it") ||
		!strings.Contains(res.Text, "bytes could not be kept: the disk is full") {
		t.Errorf("%d calls; text %s", calls, res.Text)
	}
}
