//go:build unix

package main

import (
	"io"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator"
)

// TestParseAnswer: only an exact key allows; words are a no and are kept.
func TestParseAnswer(t *testing.T) {
	tests := map[string]orchestrator.Answer{
		"y":                              {Allow: true},
		" Yes ":                          {Allow: true},
		"a":                              {Allow: true, ForTask: true},
		"all":                            {Allow: true, ForTask: true},
		"n":                              {},
		"":                               {},
		"n use tabs":                     {Feedback: "use tabs"},
		"a better idea: leave it":        {Feedback: "a better idea: leave it"},
		"yes but write to b.txt instead": {Feedback: "yes but write to b.txt instead"},
		"all of this is wrong":           {Feedback: "all of this is wrong"},
	}
	for in, want := range tests {
		if got := parseAnswer(in); got != want {
			t.Errorf("parseAnswer(%q) = %+v, want %+v", in, got, want)
		}
	}
}

// TestQuestionAfterEndOfInput: when no line will come any more, open and later
// questions are answered with a no.
func TestQuestionAfterEndOfInput(t *testing.T) {
	in, typed := io.Pipe()
	l := newLineReader(in, io.Discard)
	asked := make(chan orchestrator.Answer)
	go func() { asked <- l.approve(t.Context(), op.Call{Name: "Bash", Args: `{"command":"ls"}`}) }()
	if err := typed.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got.Allow {
		t.Errorf("the open question: %+v", got)
	}
	if got := l.approve(t.Context(), op.Call{Name: "Bash"}); got.Allow {
		t.Errorf("a later question: %+v", got)
	}
}

// TestLinesAnswerOrSteer: a line answers the question that is open and steers
// otherwise, also when it was typed before the task was there.
func TestLinesAnswerOrSteer(t *testing.T) {
	var said []string
	l := &lineReader{out: io.Discard}
	l.line("early")
	l.steer(func(s string) { said = append(said, s) })
	l.line("later")
	asked := make(chan orchestrator.Answer)
	question := make(chan bool)
	l.out = writerFunc(func(p []byte) { close(question) })
	go func() { asked <- l.approve(t.Context(), op.Call{Name: "Bash", Args: "{}"}) }()
	<-question
	l.line("y")
	if got := <-asked; !got.Allow {
		t.Errorf("the answer: %+v", got)
	}
	if strings.Join(said, ",") != "early,later" {
		t.Errorf("said %q", said)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
