package anamnesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/note"
)

type answers = []func(context.Context, string, string) (consult.Completion, error)

// inPieces is a span of several pieces at an EAS of 4,000, and how many: sixty
// calls that fail, each with an error of its own, and twelve that succeed.
func inPieces(t *testing.T) (Request, int) {
	t.Helper()
	s := newSpan(12, 3)
	for i := range 60 {
		s.bash(fmt.Sprintf("go test ./pkg%d", i), 1, strings.Repeat("noise of the test run\n", 20)+printed(i)+"\n", "")
		if i%5 == 4 {
			s.bash(built(i), 0, "", "")
			s.save(fmt.Sprintf("%040x", i), fmt.Sprintf("pkg%d/a.go", i))
		}
	}
	r := s.request(4000)
	n := pass(t, &scripted{t: t, answers: answers{says(`{"advice":[]}`)}}, r, nil).Pieces
	if n < 4 || n > 7 {
		t.Fatalf("%d pieces, want 4 to 7", n)
	}
	return r, n
}

func printed(i int) string { return fmt.Sprintf("pkg%d/a_test.go:%d: got %d, want %d", i, i, i, i+1) }

func built(i int) string { return fmt.Sprintf("make ./pkg%d/...", i) }

// ending is the last operation of a command.
func ending(r *Request, command string) (seq uint64) {
	for _, rec := range records(r) {
		if rec.kind == recCall && strings.Contains(rec.args, `"`+command+`"`) {
			seq = rec.end
		}
	}
	return seq
}

// TestMergePieces: what several pieces say is one list. The same statement
// stands once, with what both rest on; an error of the one is not the error of
// the other; of the cards the first ones stay, each topic once.
func TestMergePieces(t *testing.T) {
	r, n := inPieces(t)
	a, b, c := ending(&r, "go test ./pkg0"), ending(&r, "go test ./pkg1"), ending(&r, "go test ./pkg2")
	path := func(action string, i int, op uint64) string {
		return fmt.Sprintf(`{"action":%q,"error":%q,"why":"w","confidence":"high","ops":[%d]}`, action, printed(i), op)
	}
	cards := func(topics ...string) string {
		var list []string
		for _, topic := range topics {
			list = append(list, fmt.Sprintf(`{"topic":%q,"issue":["i"],"solution":["s"],"ops":[%d]}`, topic, a))
		}
		return strings.Join(list, ",")
	}
	m := &scripted{t: t, limit: 4000, count: words, answers: answers{
		says(fmt.Sprintf(`{"advice":[{"text":"Read the Makefile","ops":[%d]}],"falsified":[%s,%s],"cards":[%s]}`, b,
			path("Test it", 0, b), path("test again", 1, b), cards("One"))),
		says(fmt.Sprintf(`{"advice":[{"text":"another","ops":[]},{"text":"read the makefile","ops":[%d]}],"falsified":[%s,%s],"cards":[%s]}`, a, path("test it", 0, a), path("test it", 2, c)+","+path("third way", 0, c), cards("one", "Three", "Four"))),
		says(fmt.Sprintf(`{"cards":[%s]}`, cards("TWO"))),
		says(`{"advice":[]}`),
	}}
	res := pass(t, m, r, nil)
	if res.Calls != n || res.Fallback != "" || res.Writer != WriterModel {
		t.Fatalf("%d calls of %d, writer %q, fallback %q", res.Calls, n, res.Writer, res.Fallback)
	}
	if got := res.Notes.Advice; len(got) != 2 || got[0].Text != "Read the Makefile" ||
		!slices.Equal(got[0].Ops, []uint64{a, b}) || got[1].Text != "another" {
		t.Errorf("advice %+v", got)
	}
	var told []string
	for _, f := range res.Notes.Falsified[:min(4, len(res.Notes.Falsified))] {
		told = append(told, fmt.Sprintf("%s|%s|%v", f.Action, f.Error, f.Ops))
	}
	want := []string{
		fmt.Sprintf("Test it|%s|%v", printed(0), []uint64{a, b}), fmt.Sprintf("test again|%s|%v", printed(1),
			[]uint64{b}), fmt.Sprintf("test it|%s|%v", printed(2), []uint64{c}),
		fmt.Sprintf("third way|%s|%v", printed(0), []uint64{c}),
	}
	if !slices.Equal(told, want) {
		t.Errorf("falsified %q, want %q", told, want)
	}
	// Beside these four stand the failed calls that no reply cites.
	if got := len(res.Notes.Falsified); got != 4+57 {
		t.Errorf("%d falsified paths of 60 failed calls, three of them cited by the model", got)
	}
	var topics []string
	for _, c := range res.Cards {
		topics = append(topics, c.Topic)
	}
	if !slices.Equal(topics, []string{"One", "Three"}) {
		t.Errorf("cards %q", topics)
	}
}

// TestOnlyACard: a reply whose notes are empty says something all the same.
func TestOnlyACard(t *testing.T) {
	m := &scripted{t: t,
		answers: answers{says(`{"cards":[{"topic":"Lost edits","issue":["i"],"solution":["s"],"ops":[19]}]}`)}}
	res := pass(t, m, story().request(16000), nil)
	if res.Writer != WriterModel || res.Fallback != "" || len(res.Cards) != 1 || res.Cards[0].Topic != "Lost edits" {
		t.Errorf("writer %q, fallback %q, cards %+v", res.Writer, res.Fallback, res.Cards)
	}
}

// TestUnheardPieces: of the pieces the model was asked about in vain the
// extractor says what succeeded, of the others it does not, and why is said.
func TestUnheardPieces(t *testing.T) {
	r, n := inPieces(t)
	heard := says(`{"advice":[{"text":"read the Makefile","ops":[]}]}`)
	invented := says(`{"findings":[{"text":"x","ops":[1]}]}`)
	rejected := "grounding rejected all 1 statements of a reply"
	for _, tt := range []struct {
		name    string
		answers answers
		unheard []int // pieces, from 0
		says    string
	}{
		{"all heard", answers{heard}, nil, ""},
		{"one fails", answers{heard, fails(errors.New("503")), heard}, []int{1}, fmt.Sprintf("part 2 of %d: the request failed: 503", n)},
		{"two fail", answers{heard, fails(errors.New("503")), fails(errors.New("504")), heard}, []int{1, 2},
			fmt.Sprintf("part 2 of %d: the request failed: 503; part 3 of %d: the request failed: 504", n, n)},
		{"one invents", answers{heard, invented, heard}, []int{1}, rejected},
		{"one invents, one fails", answers{heard, invented, fails(errors.New("503")), heard}, []int{1, 2}, fmt.Sprintf("%s; part 3 of %d: the request failed: 503", rejected, n)},
	} {
		m := &scripted{t: t, limit: 4000, count: words, answers: tt.answers}
		res := pass(t, m, r, nil)
		if res.Writer != WriterModel || res.Fallback != tt.says || len(res.Notes.Falsified) != 60 {
			t.Errorf("%s: writer %q, %d falsified paths, fallback %q, want %q", tt.name, res.Writer,
				len(res.Notes.Falsified), res.Fallback, tt.says)
		}
		for i := 4; i < 60; i += 5 {
			unheard := slices.ContainsFunc(tt.unheard,
				func(part int) bool { return strings.Contains(m.asked[part], built(i)) })
			if told := slices.ContainsFunc(res.Notes.Verified, func(s note.Statement) bool { return strings.Contains(s.Text, built(i)) }); told != unheard {
				t.Errorf("%s: the extractor tells of %q: %v", tt.name, built(i), told)
			}
		}
	}
}

// TestRepairPrompt holds what a model is told whose reply cannot be used.
func TestRepairPrompt(t *testing.T) {
	m := &scripted{
		t: t, answers: answers{says("{" + strings.Repeat("not an object ", 60)), says(goodReply)}, limit: 16000,
		count: words,
	}
	if res := pass(t, m, story().request(16000), nil); res.Calls != 2 || res.Writer != WriterModel ||
		res.Fallback != "" {
		t.Fatalf("%d calls, writer %q, fallback %q", res.Calls, res.Writer, res.Fallback)
	}
	rest, ok := strings.CutPrefix(m.asked[1], m.asked[0])
	if !ok {
		t.Errorf("the repair does not ask the question again:\n%s", m.asked[1])
	}
	golden(t, "prompt_repair.txt", rest+"\n")
}

// TestLeftOutIsSaid: the last question names the operations no piece had room
// for, and no other does.
func TestLeftOutIsSaid(t *testing.T) {
	r := manyFailures(500).request(4000)
	m := &scripted{t: t, limit: 4000, count: words, answers: answers{says(`{"advice":[{"text":"x","ops":[]}]}`)}}
	res := pass(t, m, r, nil)
	line := strings.TrimSpace(omittedLine(res.Omitted))
	for i, q := range m.asked {
		if last := i == len(m.asked)-1; len(res.Omitted) == 0 || strings.Contains(q, line) != last {
			t.Errorf("question %d of %d, %d operations left out, %q:\n%s", i+1, len(m.asked), len(res.Omitted), line, q)
		}
	}
}
