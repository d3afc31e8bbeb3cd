package anamnesis

import (
	"testing"

	"anamnesis/anamnesis/note"
)

// TestObserved: a card says only what the record holds if each issue and solution occurs, word for word, in
// the calls that it cites.
func TestObserved(t *testing.T) {
	s := newSpan(7, 1)
	s.say("use the other key")
	said := s.seq
	cited := s.bash("cat key", 1, "", "cat: key: No such file or directory\nhint: vim\n")
	other := s.bash("make", 2, "", "make: no rule to make it\n")
	r := s.request(4000)
	ev := newEvidence(&r, records(&r))
	for name, tt := range map[string]struct {
		card note.Card
		want bool
	}{
		"quotes":                {note.Card{Issue: []string{"cat: key:  No such file"}, Solution: []string{"cat key"}, Ops: []uint64{cited}}, true},
		"other words":           {note.Card{Issue: []string{"cat finds no key"}, Ops: []uint64{cited}}, false},
		"a solution of its own": {note.Card{Issue: []string{"cat: key: No such file"}, Solution: []string{"touch key"}, Ops: []uint64{cited}}, false},
		"of another call":       {note.Card{Issue: []string{"no rule to make it"}, Ops: []uint64{cited}}, false},
		"of two calls":          {note.Card{Issue: []string{"no rule to make it", "No such file"}, Ops: []uint64{cited, other}}, true},
		"of the agent":          {note.Card{Issue: []string{"use the other key"}, Ops: []uint64{said}}, false},
		"as short as can be":    {note.Card{Issue: []string{"vim"}, Ops: []uint64{cited}}, true},
		"too short":             {note.Card{Issue: []string{"vi"}, Ops: []uint64{cited}}, false},
		"nowhere":               {note.Card{Issue: []string{"cat: key"}, Ops: []uint64{999}}, false},
	} {
		if got := ev.observed(tt.card); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestGroundPaths: a falsified path keeps a quote of three characters, and may rest on what the agent said,
// but not only on calls that hold no lesson.
func TestGroundPaths(t *testing.T) {
	s := newSpan(7, 1)
	s.say("the door is shut")
	said := s.seq
	quiet := s.bash("grep -n door main.go", 1, "", "")
	failed := s.bash("make", 2, "", "E42\n")
	r := s.request(4000)
	ev := newEvidence(&r, records(&r))
	for name, tt := range map[string]struct {
		path note.Falsified
		want int
	}{
		"a short error":        {note.Falsified{Action: "make", Error: "E42", Ops: []uint64{failed}}, 0},
		"a shorter one":        {note.Falsified{Action: "make", Error: "E4", Ops: []uint64{failed}}, 1},
		"an invented one":      {note.Falsified{Action: "make", Error: "E43", Ops: []uint64{failed}}, 1},
		"the agent's words":    {note.Falsified{Action: "open the door", Ops: []uint64{said}}, 0},
		"no lesson":            {note.Falsified{Action: "look for the door", Ops: []uint64{quiet}}, 1},
		"no lesson, and words": {note.Falsified{Action: "look for the door", Ops: []uint64{quiet, said}}, 1},
		"one of two":           {note.Falsified{Action: "make", Ops: []uint64{quiet, failed}}, 0},
		"nothing":              {note.Falsified{Action: "make"}, 1},
		"outside the span":     {note.Falsified{Action: "make", Ops: []uint64{999}}, 1},
	} {
		reply := note.Reply{Notes: note.Notes{Falsified: []note.Falsified{tt.path}}}
		if got := ev.ground(&reply); got != tt.want || len(reply.Notes.Falsified) != 1-tt.want {
			t.Errorf("%s: %d dropped, %d left", name, got, len(reply.Notes.Falsified))
		}
	}
}
