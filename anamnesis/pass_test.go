package anamnesis

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

var (
	update  = flag.Bool("update", false, "write the golden files anew")
	nightly = flag.Bool("nightly", false, "run with the full counts")
)

// amount picks how much of something a test takes.
func amount(ci, full int) int {
	if *nightly {
		return full
	}
	return ci
}

// golden compares text with testdata/golden/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and read the difference. Got:\n%s", name, got)
	}
}

const goodReply = `Here are the notes:
{"failure_causes":[{"text":"parser_gen.go is generated from parser.y, so edits to it are lost","ops":[19,31]}],
 "falsified":[{"action":"edit parser_gen.go by hand","state":"hand-edited","error":"parser_test.go:31: got 3 nodes, want 4","why":"go generate writes it anew","confidence":"high","ops":[19]},
  {"action":"invented","error":"segmentation fault","why":"?","confidence":"high","ops":[19]},
  {"action":"elsewhere","error":"","why":"?","confidence":"low","ops":[999]}],
 "findings":[{"text":"parser_gen.go says it is generated","ops":[14]},{"text":"cites nothing","ops":[]},{"text":"cites another task","ops":[999]}],
 "verified":[{"text":"go vet passes once yyNewParser exists","ops":[26]},{"text":"the tests pass","ops":[31,33]}],
 "untried":[{"text":"edit parser.y and run go generate","ops":[]}],
 "advice":[{"text":"change the grammar, not its output","ops":[]}],
 "cards":[{"topic":"Edits to a generated Go file are lost","issue":["go generate overwrites parser_gen.go"],"solution":["edit parser.y"],"constraint":["only where a generate directive exists"],"wrong_if":"the edit is still there after go generate","ops":[19,31]},
  {"topic":"Of another task","issue":["x"],"solution":["y"],"wrong_if":"z","ops":[19,999]}]}
Hope that helps.`

func TestPassWithoutModel(t *testing.T) {
	res := pass(t, nil, story().request(16000), nil)
	golden(t, "extractor_block.txt", res.Block+"\n")
	if res.Writer != WriterExtractor || res.Fallback != "" || res.Calls != 0 {
		t.Errorf("writer %q, fallback %q, %d calls", res.Writer, res.Fallback, res.Calls)
	}
}

func TestPassWithModel(t *testing.T) {
	m := &scripted{
		t: t, answers: []func(context.Context, string, string) (consult.Completion, error){says(goodReply)},
		limit: 16000, count: words,
	}
	res := pass(t, m, story().request(16000), nil)
	golden(t, "prompt_system.txt", m.system+"\n")
	golden(t, "prompt_piece.txt", m.asked[0]+"\n")
	golden(t, "model_block.txt", res.Block+"\n")
	golden(t, "model_card.md", string(res.Cards[0].Markdown()))
	if res.Writer != WriterModel || res.Fallback != "" || res.Calls != 1 || res.Pieces != 1 {
		t.Errorf("writer %q, fallback %q, %d calls, %d pieces", res.Writer, res.Fallback, res.Calls, res.Pieces)
	}
	// The invented error, the three with a foreign op, the finding without an op,
	// and the verified fact that cites a failed call.
	if res.Dropped != 6 || len(res.Cards) != 1 {
		t.Errorf("%d statements dropped, want 6; %d cards, want 1", res.Dropped, len(res.Cards))
	}
	if res.Usage != (op.Usage{Prompt: 100, Completion: 20}) {
		t.Errorf("usage %+v", res.Usage)
	}
	if strings.Contains(res.Block, "segmentation") || strings.Contains(res.Block, "elsewhere") {
		t.Errorf("ungrounded statements are in the block:\n%s", res.Block)
	}
}

// TestFallback: whatever the model does, the memory is there.
func TestFallback(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers answers
		calls   int
		writer  string
		say     string // in Fallback
	}{
		{"down", answers{fails(errors.New("503 service unavailable"))}, 1, WriterExtractor, "503 service unavailable"},
		{"refuses", answers{says("I'm sorry, I can't help with that.")}, 2, WriterExtractor, "no JSON object"},
		{"prose twice", answers{says("The tests failed {because} of it."), says("Again: it failed.")}, 2, WriterExtractor, "after one repair"},
		{"half an object", answers{says(goodReply[:len(goodReply)/2])}, 2, WriterExtractor, "not the JSON object"},
		{"empty", answers{says("")}, 2, WriterExtractor, "no JSON object"},
		{"repaired", answers{says("{"), says(goodReply)}, 2, WriterModel, ""},
		{"other object", answers{says(`{"answer": 42}`)}, 2, WriterExtractor, "none of the schema's fields"},
		{"wrong types", answers{says(`{"findings": "all fine"}`)}, 2, WriterExtractor, "not the JSON object"},
		{"copies the block", answers{says(quote.BlockBegin + "\nTask x\n" + quote.BlockEnd)}, 2, WriterExtractor, "no JSON object"},
		{"nothing to say", answers{says(`{"findings": []}`)}, 1, WriterExtractor, "nothing to say"},
		{"all invented", answers{says(`{"findings": [{"text": "x", "ops": [1]}], "cards": [{"topic": "x", "issue": ["y"], "solution": [], "ops": [999]}]}`)}, 1, WriterExtractor, "grounding rejected all 2 statements"},
		{"too long", answers{says(strings.Repeat("x", note.MaxReplyBytes+1))}, 2, WriterExtractor, "at most"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &scripted{t: t, answers: tt.answers, limit: 16000, count: words}
			res := pass(t, m, story().request(16000), nil)
			if res.Calls != tt.calls || res.Writer != tt.writer || !strings.Contains(res.Fallback, tt.say) ||
				(tt.say == "") != (res.Fallback == "") {
				t.Errorf("%d calls, writer %q, fallback %q; want %d, %q, %q", res.Calls, res.Writer, res.Fallback,
					tt.calls, tt.writer, tt.say)
			}
			if !strings.Contains(res.Block, "parser_test.go:31: got 3 nodes, want 4") {
				t.Errorf("the failure is not remembered:\n%s", res.Block)
			}
			if words := tt.writer == WriterModel; words != (len(res.Cards) > 0) {
				t.Errorf("%d cards, %q", len(res.Cards), res.NoCards)
			}
			if len(m.asked) == 2 {
				if n := strings.Count(m.asked[1], "Your reply to this could not be used"); n != 1 {
					t.Errorf("the second question is not a repair:\n%s", m.asked[1])
				}
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scripted{t: t, answers: []func(context.Context, string, string) (consult.Completion, error){hangs}}
		start := time.Now()
		res := pass(t, m, story().request(16000), nil)
		if took := time.Since(start); took != CallTimeout || !strings.Contains(res.Fallback, "deadline") {
			t.Errorf("took %v, fallback %q", took, res.Fallback)
		}
		start = time.Now()
		r := manyFailures(400).request(4000)
		res = pass(t, m, r, &Options{Timeout: 3 * time.Minute})
		if took := time.Since(start); took != 3*time.Minute || res.Calls != 2 || res.Pieces < 3 {
			t.Errorf("took %v, %d calls, %d pieces", took, res.Calls, res.Pieces)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &scripted{t: t, answers: []func(context.Context, string, string) (consult.Completion, error){says(goodReply)}}
	res, err := Pass(ctx, m, story().request(16000), nil)
	if err != nil || res.Calls != 0 || res.Block == "" || !strings.Contains(res.Fallback, "canceled") {
		t.Errorf("an ended context: %v, %d calls, fallback %q", err, res.Calls, res.Fallback)
	}
}

func TestLimits(t *testing.T) {
	r := manyFailures(amount(500, 2000)).request(4000)
	for _, tt := range []struct {
		name  string
		reply string
		o     *Options
		calls int
		say   string
	}{
		{"good replies", `{"advice": [{"text": "x", "ops": []}]}`, nil, MaxPieces, ""},
		{"bad replies", "prose", nil, MaxPieces, "no call was left for a repair"},
		{"no more than the limit", "prose", &Options{MaxCalls: 99}, MaxPieces, "no call was left"},
		{"fewer calls", "prose", &Options{MaxCalls: 3}, 3, "no call was left"},
		{"a limit before the last piece", `{"advice": [{"text": "x", "ops": []}]}`, &Options{MaxCalls: 2}, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &scripted{
				t: t, answers: []func(context.Context, string, string) (consult.Completion, error){says(tt.reply)},
				limit: 4000, count: words,
			}
			res := pass(t, m, r, tt.o)
			if res.Calls != tt.calls || len(m.asked) != tt.calls || !strings.Contains(res.Fallback, tt.say) {
				t.Errorf("%d calls, fallback %q; want %d, %q", res.Calls, res.Fallback, tt.calls, tt.say)
			}
			if len(res.Omitted) == 0 || !strings.Contains(res.Block, "more: ops") {
				t.Errorf("%d omitted; the block does not say what it leaves out:\n%s", len(res.Omitted), res.Block)
			}
		})
	}
}

// TestPiecesCost: shortening a long span costs what its pieces hold and one
// walk over the records, not one for each size that is tried.
func TestPiecesCost(t *testing.T) {
	r := manyFailures(2000).request(4000)
	recs := records(&r)
	counted := 0
	parts, omitted := pieces(recs, 2000, MaxPieces, func(text string) int {
		counted += len(text)
		return words(text)
	})
	if len(parts) != MaxPieces || len(omitted) == 0 {
		t.Fatalf("%d pieces, %d operations left out", len(parts), len(omitted))
	}
	smallest := 0
	for _, rec := range recs {
		rec.render(minRecordTokens, func(text string) int {
			smallest += len(text)
			return words(text)
		})
	}
	if counted > 5*smallest {
		t.Errorf("%d bytes were counted, rendering each record once at its smallest counts %d", counted, smallest)
	}
}

// TestSmallSpan: an EAS with no room for a question is not asked to read one, and a question fits the smallest that
// is.
func TestSmallSpan(t *testing.T) {
	for eas := 500; ; eas += 20 {
		m := &scripted{t: t, answers: answers{says(goodReply)}, limit: eas, count: words}
		res := pass(t, m, story().request(eas), nil)
		if res.Calls > 0 {
			if res.Fallback != "" {
				t.Errorf("an EAS of %d has no room, but %d calls were made", eas, res.Calls)
			}
			break
		}
		if want := fmt.Sprintf("EAS of %d tokens", eas); !strings.Contains(res.Fallback, want) || eas > 4000 {
			t.Fatalf("%d calls, fallback %q", res.Calls, res.Fallback)
		}
	}
}

// TestFallbackWords: why the model's words are not used is said once, with the part that it is about.
func TestFallbackWords(t *testing.T) {
	invented := `{"findings": [{"text": "x", "ops": [1]}], "falsified": [{"action": "x", "ops": [999]}]}`
	for _, tt := range []struct {
		answers answers
		o       *Options
		calls   int
		want    string // ends with
	}{
		{answers{fails(errors.New("503"))}, nil, 1, "part 1 of 1: the request failed: 503"},
		{answers{says("no"), says("no")}, nil, 2,
			"part 1 of 1: not usable after one repair: the reply holds no JSON object: \"no\""},
		{answers{says("no")}, &Options{MaxCalls: 1}, 1,
			"part 1 of 1: the reply holds no JSON object: \"no\"; no call was left for a repair"},
		{answers{says("no"), fails(errors.New("503"))}, nil, 2,
			"part 1 of 1: the reply holds no JSON object: \"no\"; the repair: the request failed: 503"},
		{answers{says(invented)}, nil, 1, "grounding rejected all 2 statements of a reply"},
		{answers{says(`{"advice": []}`)}, nil, 1, "the model had nothing to say"},
	} {
		res := pass(t, &scripted{t: t, answers: tt.answers, limit: 16000, count: words}, story().request(16000), tt.o)
		if res.Fallback != tt.want || res.Calls != tt.calls {
			t.Errorf("%d calls, fallback %q, want %q", res.Calls, res.Fallback, tt.want)
		}
	}
}

func TestBrokenRequests(t *testing.T) {
	for name, breakIt := range map[string]func(*Request){
		"no task":        func(r *Request) { r.Task = "" },
		"EAS of zero":    func(r *Request) { r.EAS = 0 },
		"no counter":     func(r *Request) { r.Count = nil },
		"no operations":  func(r *Request) { r.Ops = nil },
		"no ranges":      func(r *Request) { r.Ranges = nil },
		"inverted range": func(r *Request) { r.Ranges = []op.Range{{First: 50, Last: 12}} },
		"overlapping": func(r *Request) {
			r.Ranges = []op.Range{{First: 12, Last: 20},
				{First: 20, Last: 99}}
		},
		"outside a range": func(r *Request) { r.Ranges = []op.Range{{First: 13, Last: 99}} },
		"out of order":    func(r *Request) { r.Ops = []op.Op{r.Ops[1], r.Ops[0]} },
		"twice the same":  func(r *Request) { r.Ops = []op.Op{r.Ops[0], r.Ops[0]} },
		"between ranges": func(r *Request) {
			r.Ranges = []op.Range{{First: 12, Last: 13},
				{First: 15, Last: 99}}
		},
		"negative EAS":           func(r *Request) { r.EAS = -1 },
		"pairs before the end":   func(r *Request) { r.Ops, r.Pairs = nil, []Pair{{}} },
		"the end without a pair": func(r *Request) { r.Ops, r.Over = nil, true },
		"a later range inverted": func(r *Request) {
			r.Starts, r.Ranges = nil,
				append(r.Ranges, op.Range{First: 120, Last: 110})
		},
		"a later range overlaps": func(r *Request) {
			r.Starts, r.Ranges = nil, append(r.Ranges, op.Range{First: r.Ranges[0].Last, Last: 120})
		},
		"beyond the range": func(r *Request) { r.Ranges = []op.Range{{First: 12, Last: 14}} },
	} {
		r := story().request(16000)
		breakIt(&r)
		if _, err := Pass(t.Context(), nil, r, nil); !errors.Is(err, ErrBadRequest) {
			t.Errorf("%s: %v, want ErrBadRequest", name, err)
		}
	}
}

// TestOrderFault: the operation that does not follow is named with the one before it.
func TestOrderFault(t *testing.T) {
	r := story().request(16000)
	r.Ops = []op.Op{r.Ops[1], r.Ops[0]}
	if _, err := Pass(t.Context(), nil, r, nil); err == nil ||
		!strings.HasSuffix(err.Error(), "operation 12 does not follow 13") {
		t.Errorf("%v", err)
	}
}

// TestSameInputSameBytes also guards the ids: a repeated pass writes the same
// cards.
func TestSameInputSameBytes(t *testing.T) {
	worded := func(r Request) Result {
		return pass(t, &scripted{t: t, answers: answers{says(goodReply)}, limit: 16000, count: words}, r, nil)
	}
	for range 5 {
		a, b := worded(story().request(4000)), worded(story().request(4000))
		if a.Block != b.Block {
			t.Fatalf("two blocks of one span:\n%s\n%s", a.Block, b.Block)
		}
		if string(a.Cards[0].Markdown()) != string(b.Cards[0].Markdown()) {
			t.Fatalf("two cards of one span")
		}
	}
	other := story().request(4000)
	other.JumpSeq++
	if worded(other).Cards[0].ID == worded(story().request(4000)).Cards[0].ID {
		t.Error("two jumps share a card id")
	}
}

// TestEarlierBlockIsCarried: a block that is itself discarded hands on what it
// had falsified.
func TestEarlierBlockIsCarried(t *testing.T) {
	first := pass(t, nil, story().request(16000), nil)
	s := newSpan(60, 8)
	s.add(&op.PassDone{Block: first.Block})
	s.bash("make", 2, "", "make: *** No rule to make target 'all'.  Stop.\n")
	res := pass(t, nil, s.request(16000), nil)
	if !strings.Contains(res.Block, "parser_test.go:31: got 3 nodes, want 4") {
		t.Errorf("the earlier block's failure is gone:\n%s", res.Block)
	}
	if !strings.Contains(res.Block, "No rule to make target") {
		t.Errorf("the new failure is not there:\n%s", res.Block)
	}
	parsed := note.ParseFalsified(first.Block)
	if len(parsed) != len(first.Notes.Falsified) {
		t.Fatalf("parsed %d falsified paths, the block has %d", len(parsed), len(first.Notes.Falsified))
	}
	for i, f := range parsed {
		if w := first.Notes.Falsified[i]; f.Action != w.Action || f.State != w.State || f.Error != w.Error ||
			f.Why != w.Why || f.Confidence != w.Confidence {
			t.Errorf("parsed %+v, rendered %+v", f, w)
		}
	}
}

// manyFailures is a span far larger than a small EAS.
func manyFailures(n int) *span {
	s := newSpan(12, 3)
	for i := range n {
		s.bash(fmt.Sprintf("go test ./pkg%d", i), 1, strings.Repeat("noise of the test run\n", 20)+
			fmt.Sprintf("pkg%d/a_test.go:%d: got %d, want %d\n", i, i, i, i+1), "")
		if i%5 == 4 {
			s.save(fmt.Sprintf("%040x", i), fmt.Sprintf("pkg%d/a.go", i))
		}
	}
	return s
}

// TestStandingPass holds what is asked and written where steps leave the
// context to make room: nothing of it says that their work was undone.
func TestStandingPass(t *testing.T) {
	r := story().request(16000)
	r.Standing, r.Left, r.From, r.To, r.Reason = true, "3-4", 1, 9, ""
	m := &scripted{
		t:       t,
		answers: []func(context.Context, string, string) (consult.Completion, error){says(`{"advice":[]}`), says("no")},
		limit:   16000, count: words,
	}
	res := pass(t, m, r, nil)
	golden(t, "standing_system.txt", m.system+"\n")
	golden(t, "standing_piece.txt", m.asked[0]+"\n")
	golden(t, "standing_block.txt", res.Block+"\n")
	if strings.Contains(res.Block, "discarded") || strings.Contains(res.Block, "back at step") {
		t.Errorf("the block says that work was undone:\n%s", res.Block)
	}
}
