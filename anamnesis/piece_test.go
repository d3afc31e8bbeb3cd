package anamnesis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestWeight: what a user said and what earlier notes hold comes before failures, these before what the
// agent said, and what only looked comes last.
func TestWeight(t *testing.T) {
	two := 2
	bash := func(change func(r *record)) *record {
		r := &record{kind: recCall, tool: "Bash", args: `{"command":"make"}`}
		change(r)
		return r
	}
	ranks := [][]*record{
		{{kind: recSaid}},
		{{kind: recBlock}},
		{bash(func(r *record) { r.exit = &two }), bash(func(r *record) { r.isError, r.writes = true, []string{"a"} })},
		{bash(func(r *record) { r.unknown, r.isError = true, true }), bash(func(r *record) { r.refused = true })},
		{{kind: recReply}, {kind: recLeft}},
		{{kind: recFault}, bash(func(r *record) { r.writes = []string{"a"} }), {kind: recCall, tool: "WriteFile", writes: []string{"a"}}},
		{bash(func(*record) {}), bash(func(r *record) { r.exit = new(int) })},
		{{kind: recCall, tool: "ReadFile", reads: []string{"a"}}, {kind: recNote}, {kind: recNote, writes: []string{"a"}}, {kind: recNote, tool: "Bash"}},
	}
	before := 10
	for i, rank := range ranks {
		first := rank[0].weight()
		if first >= before {
			t.Errorf("rank %d weighs %d, the one before it %d", i, first, before)
		}
		before = first
		for k, r := range rank {
			if got := r.weight(); got != first {
				t.Errorf("rank %d: record %d weighs %d, the first %d", i, k, got, first)
			}
		}
	}
}

// TestSupports: every quotation that is long enough to mean something occurs in the record.
func TestSupports(t *testing.T) {
	e := &evidence{text: "no rule to make lex.c"}
	for text, want := range map[string]bool{
		"": true, "no quotation": true, "`no rule`": true, "`no  rule`": true, "\"lex.c\" and `make`": true,
		"`xy`": true, "`xyz`": false, "`äöü`": false, "`äö`": true, "`no rule` and `xyz`": false,
	} {
		if got := e.supports(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestPack: records fill pieces in their order, each with room for one token more than its text takes; what has no room
// is left out. One record with text from outside taints its piece.
func TestPack(t *testing.T) {
	made := func(seq uint64, tokens int, tainted bool) (*record, rendered) {
		return &record{seq: seq, end: seq, tainted: tainted}, rendered{fmt.Sprint("r", seq, " "), tokens}
	}
	for _, tt := range []struct {
		name    string
		tokens  []int // of each record; negative: not shown
		tainted string
		room    int
		most    int
		want    string // the pieces, ! after a tainted one
		omitted []uint64
	}{
		{"fits exactly", []int{4, 4}, "", 10, 9, "r1 r2 ", nil},
		{"one token too many", []int{4, 5}, "", 10, 9, "r1 |r2 ", nil},
		{"as large as a piece", []int{9, 9}, "", 10, 9, "r1 |r2 ", nil},
		{"larger than a piece", []int{10, 9}, "", 10, 9, "r2 ", []uint64{1}},
		{"not shown", []int{-1, 4, -1}, "", 10, 9, "r2 ", nil},
		{"more than the pieces hold", []int{9, 9, 9, 1}, "", 10, 2, "r1 |r2 ", []uint64{3, 4}},
		{"room in the last piece", []int{9, 5, 9, 3}, "", 10, 2, "r1 |r2 r4 ", []uint64{3}},
		{"tainted first", []int{1, 1, 8}, "1", 10, 9, "r1 r2 !|r3 ", nil},
		{"tainted last", []int{1, 1, 8}, "2", 10, 9, "r1 r2 !|r3 ", nil},
		{"tainted alone", []int{1, 1, 8}, "3", 10, 9, "r1 r2 |r3 !", nil},
		{"tainted and left out", []int{1, 10}, "2", 10, 9, "r1 ", []uint64{2}},
		{"nothing", nil, "", 10, 9, "", nil},
	} {
		var recs []*record
		shown := make(map[*record]rendered)
		for i, n := range tt.tokens {
			rec, r := made(uint64(i+1), n, strings.Contains(tt.tainted, fmt.Sprint(i+1)))
			if recs = append(recs, rec); n >= 0 {
				shown[rec] = r
			}
		}
		out, omitted := pack(recs, shown, tt.room, tt.most, nil)
		var got []string
		for _, p := range out {
			text := p.text
			for _, rec := range p.recs {
				text = strings.Replace(text, fmt.Sprint("r", rec.seq, " "), fmt.Sprint("R", rec.seq, " "), 1)
			}
			if text = strings.ToLower(text); strings.Count(text, "r") != len(p.recs) {
				text += "?"
			}
			if p.tainted {
				text += "!"
			}
			got = append(got, text)
		}
		if strings.Join(got, "|") != tt.want || !slices.Equal(omitted, tt.omitted) {
			t.Errorf("%s: %q without %v, want %q without %v", tt.name, got, omitted, tt.want, tt.omitted)
		}
	}
}

// TestPathList: the first paths are named on one line, a long one by its end.
func TestPathList(t *testing.T) {
	long := strings.Repeat("d/", maxPathBytes/2)
	for _, tt := range []struct {
		paths []string
		n     int
		want  string
	}{
		{nil, 2, ""}, {[]string{"a"}, 2, "a"}, {[]string{"a", "b", "c"}, 2, "a, b"}, {[]string{"a\nb"}, 2, "a b"},
		{[]string{long}, 1, long}, {[]string{"x" + long}, 1, "…" + long}, {[]string{"ä" + long[1:]}, 1, "…ä" + long[1:]},
	} {
		if got := pathList(tt.paths, tt.n); got != tt.want {
			t.Errorf("%q, %d: %q, want %q", tt.paths, tt.n, got, tt.want)
		}
	}
}

// TestDropUnimportant: the most important records are kept as far as the budget goes, to its last token.
func TestDropUnimportant(t *testing.T) {
	said, reply, note := &record{kind: recSaid, seq: 1, end: 1}, &record{kind: recReply, seq: 2, end: 2},
		&record{kind: recNote, seq: 3, end: 3}
	texts := map[*record]rendered{said: {"s", 5}, reply: {"r", 4}, note: {"n", 3}}
	for budget, want := range map[int][]uint64{12: nil, 11: {3}, 9: {3}, 8: {2}, 7: {2, 3}, 5: {2, 3}, 4: {1, 3},
		2: {1, 2, 3}} {
		kept, omitted := dropUnimportant([]*record{note, reply, said}, texts, budget)
		if !slices.Equal(omitted, want) || len(kept)+len(omitted) != 3 {
			t.Errorf("%d tokens: %d kept, %d left out, want %d", budget, len(kept), omitted, want)
		}
	}
	call := &record{kind: recCall, seq: 4, end: 6}
	if _, omitted := dropUnimportant([]*record{call}, map[*record]rendered{call: {"c", 2}}, 1); !slices.Equal(omitted,
		[]uint64{4, 6}) {
		t.Errorf("of a call %d are left out", omitted)
	}
}

// TestRenderAll: rendering stops with the first record beyond the budget.
func TestRenderAll(t *testing.T) {
	recs := []*record{{kind: recReply, text: "one"}, {kind: recReply, text: "two"}, {kind: recReply, text: "three"}}
	each := words(recs[0].render(40, words))
	for budget, want := range map[int]int{3 * each: 3, 3*each - 1: 3, 2 * each: 3, 2*each - 1: 2} {
		if texts, fits := renderAll(recs, 40, budget, words); len(texts) != want || fits != (budget == 3*each) {
			t.Errorf("%d tokens: %d texts, all fit %v", budget, len(texts), fits)
		}
	}
}

// TestSmallestPieces: where not even the smallest texts fit, each record has its text in a piece or is left out.
func TestSmallestPieces(t *testing.T) {
	var recs []*record
	for i := range 40 {
		recs = append(recs, &record{kind: recReply, seq: uint64(i + 1), end: uint64(i + 1),
			text: strings.Repeat("a word ", 90)})
	}
	for _, tokens := range []int{90, 200, 1000} {
		parts, omitted := pieces(recs, tokens, 1, words)
		n := 0
		for _, p := range parts {
			if n += len(p.recs); strings.Count(p.text, "the agent said") != len(p.recs) {
				t.Errorf("%d records, but the piece says\n%s", len(p.recs), p.text)
			}
		}
		if n == 0 || len(omitted) == 0 || n+len(omitted) != len(recs) {
			t.Errorf("pieces of %d tokens: %d records, %d left out", tokens, n, len(omitted))
		}
	}
	if parts, omitted := pieces(recs[:3], 1000, 1, words); len(parts) != 1 || len(omitted) > 0 ||
		strings.Count(parts[0].text, "a word") < 200 {
		t.Errorf("what fits is shortened: %d left out, %+v", len(omitted), parts)
	}
}
