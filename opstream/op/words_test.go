package op

import (
	"errors"
	"testing"
)

// TestWords: operations in words, and what is said of one that lacks a part.
func TestWords(t *testing.T) {
	rated := &Rating{Value: 7}
	for _, tt := range []struct{ got, want string }{
		{CanonicalArgs(`{"b": 1.50, "a": "<&>"}`), `{"a":"<&>","b":1.50}`},
		{CanonicalArgs(`{"b":`), `{"b":`},
		{(&ToolReturned{Text: "all"}).Output(), "all"},
		{(&ToolReturned{Text: "all", Stdout: "out"}).Output(), "out\n"},
		{(&ToolReturned{Text: "all", Stderr: "err"}).Output(), "\nerr"},
		{(&Broke{Good: 2, Step: 5}).String(), "passed at step 2 and fails since step 5"},
		{(&Broke{Good: 2, Step: 5, Changed: []string{"a", "b"}}).String(), "passed at step 2 and fails since step 5, which changed a, b"},
		{(&Broke{Good: 2, Step: 5, Unfinished: "time", Changed: []string{"a"}}).String(),
			"passed at step 2 and fails at step 5; which step between broke it was not found (time). Changed since: a"},
		{(&CheckRan{Rating: rated, Checks: []Check{{Command: "x"}}}).Rated().String(), "score 7"},
		{(&CheckRan{Checks: []Check{{Command: "x"}}}).Rated().String(), "1 of 1 passed"},
		{GitAt{Head: "refs/heads/main", Commit: "123456789"}.String(), "main at 1234567"},
		{GitAt{Commit: "123456789"}.String(), "detached at 1234567"},
		{GitAt{Head: "refs/heads/main"}.String(), "main without a commit"},
		{GitAt{Unread: "no index"}.String(), "unknown: no index"},
		{Way(3, 3), "to the end of step 3"},
		{Way(3, 2), "from step 3 to step 2"},
		{(&JumpRequested{}).Noun(), "a jump"},
		{(&JumpRequested{Mail: &Mail{}}).Noun(), "a message"},
		{(&Answer{Args: "{}", Always: true}).Words(AboutCall), "edited: {}"},
		{(&Answer{Always: true, Allow: true}).Words(AboutCall), "always"},
		{(&Answer{Allow: true, Text: "go on"}).Words(AboutCall), "yes, go on"},
		{(&Answer{Allow: true}).Words(AboutLimit), "yes"},
		{(&Answer{Text: "not that"}).Words(AboutCall), "no, not that"},
		{(&Answer{}).Words(AboutCall), "no"},
		{(&Answer{Text: "blue"}).Words(AboutAnswer), "blue"},
		{(&Answer{}).Words(AboutAnswer), "no"},
		{(&TaskOpened{}).ParentTask() + (&TaskOpened{}).ParentAgent() + (&TaskOpened{}).WorktreeOf(), ""},
		{(&TaskOpened{Parent: &Parent{Task: "t", Agent: "a"}}).ParentTask(), "t"},
		{(&TaskOpened{Parent: &Parent{Task: "t", Agent: "a"}}).ParentAgent(), "a"},
		{(&TaskOpened{Worktree: &Worktree{From: "/w"}}).WorktreeOf(), "/w"},
		{ProjectedText(&CardsRecalled{Text: "cards"}), "cards"},
		{ProjectedText(&CardsRecalled{Text: "cards", Why: "asked"}), ""},
		{ProjectedText(&NoticeGiven{Text: "notice"}), "notice"},
		{ProjectedText(&LogSealed{}), ""},
		{TodosSummary(nil), "no items"},
		{TodosSummary([]Todo{{"a", TodoDone}, {"b", TodoPending}}), "1 of 2 done"},
		{TodosSummary([]Todo{{" b  c", TodoInProgress}, {"a", TodoDone}, {"d", TodoDone}}), "2 of 3 done; now: b c"},
		{string(Op{}.Kind()), "unknown"},
		{string(Op{Body: &LogSealed{}}.Kind()), string((&LogSealed{}).Kind())},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	if _, err := Decode("from.tomorrow", []byte("{}")); !errors.Is(err, ErrUnknownKind) {
		t.Errorf("a kind of a newer program: %v", err)
	}
}

// TestUnfinished: a reply without a call is followed by another one where it says nothing, was cut, or holds a call as
// text.
func TestUnfinished(t *testing.T) {
	const cut, mute, text = 1, 2, 3
	says := map[string]int{"": 0}
	for kind, b := range map[int]*ModelReplied{cut: {Finish: FinishLength, Text: "x"}, mute: {}, text: {Text: "x", Repairs: []string{RepairUnreadCall}}} {
		says[b.Unfinished()] = kind
	}
	early := (&ModelReplied{Finish: FinishLength, Text: " \n"}).Unfinished()
	if len(says) != 4 || early == "" || says[early] != 0 {
		t.Fatalf("%v, %q", says, early)
	}
	for want, replies := range map[int][]ModelReplied{
		0: {
			{Text: "x", Finish: "stop"}, {Calls: []Call{{}}, Finish: FinishLength}, {Finish: FinishCheckpoint},
			{Finish: "content_filter"}, {Calls: []Call{{}}},
		},
		cut:  {{Finish: FinishLength, Text: "x", Repairs: []string{RepairUnreadCall}}},
		mute: {{Text: "\t", Finish: "stop"}},
		text: {{Text: "x", Finish: "stop", Repairs: []string{"another", RepairUnreadCall}}},
	} {
		for _, b := range replies {
			if got := b.Unfinished(); says[got] != want || got == early {
				t.Errorf("%+v: %q", b, got)
			}
		}
	}
}

// TestSame: questions ask for one answer where nothing but their words differ.
func TestSame(t *testing.T) {
	base := QuestionAsked{About: AboutCall, Task: "t", Call: "c", Name: "n", Print: "p", Note: "o", Text: "x", Why: "w"}
	for name, change := range map[string]func(*QuestionAsked){
		"about": func(q *QuestionAsked) { q.About = AboutLimit }, "task": func(q *QuestionAsked) { q.Task = "" }, "call": func(q *QuestionAsked) { q.Call = "" },
		"name": func(q *QuestionAsked) { q.Name = "" }, "print": func(q *QuestionAsked) { q.Print = "" }, "note": func(q *QuestionAsked) { q.Note = "" },
		"limit": func(q *QuestionAsked) { q.Limit = "steps" },
	} {
		other := base
		if other.Text, other.Why = "y", "v"; !base.Same(&other) {
			t.Errorf("other words are another question")
		}
		if change(&other); base.Same(&other) {
			t.Errorf("another %s is the same question", name)
		}
	}
}

// TestOrigins: a task is imported, recorded or neither; arguments are an object or not.
func TestOrigins(t *testing.T) {
	var none *Origin
	if file := (&Origin{File: "x"}); none.Imported() || none.Recorded() || !file.Imported() || file.Recorded() {
		t.Error("a task of no origin, or of a file")
	}
	if hook := (&Origin{}); hook.Imported() || !hook.Recorded() {
		t.Error("a task of hooks")
	}
	for args, want := range map[string]bool{"{}": true, `{"a":1}`: true, "null": false, "[]": false, "{": false, "": false} {
		if got := (Call{Args: args}).ValidArgs(); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
	for why, want := range map[string]bool{"asked": true, "failure": true, "warning": true, "start": false, "": false} {
		if got := (&CardsRecalled{Why: why}).InResult(); got != want {
			t.Errorf("%s: %v", why, got)
		}
	}
	if got := Snapshots(&JumpIntended{FromCommit: "a", Base: "b"}); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("snapshots %q", got)
	}
}
