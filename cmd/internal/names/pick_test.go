package names

import (
	"errors"
	"os"
	"strings"
	"testing"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
	"anamnesis/orchestrator/session"
)

// TestPick: a name is a whole one, the only one that begins so, or the task of a number; otherwise an error lists what
// it could be, five at most.
func TestPick(t *testing.T) {
	unknown := errors.New("unknown")
	for _, row := range []struct {
		name, all string
		want      string
		why       string // of the error; "" if there is none
	}{
		{"", "a b", "", ""}, {"a", "a ab", "a", ""}, {"a", "ab b", "ab", ""}, {"zzz", "ab b", "zzz", ""},
		{"a", "a1 a2", "", "thing \"a\" could be a1, a2; name more of it"},
		{"a", "a1 a2 a3 a4 a5", "", "could be a1, a2, a3, a4, a5; name"},
		{"a", "a1 a2 a3 a4 a5 a6 a7", "", "could be a1, a2, a3, a4, a5, 2 more; name"},
		{"task_1", "task_1_a task_10_b", "task_1_a", ""}, {"task_1", "task_10_b task_1_a task_1_a.1", "task_1_a", ""},
		{"task_1", "task_1_a task_1_b", "", "could be task_1_a, task_1_b"}, {"task_1", "task_1_a task_1_ab.1", "", "could be task_1_a, task_1_ab.1"},
		{"retreival", "retrieval other", "", "unknown: retreival; did you mean retrieval?"},
	} {
		got, err := pick("thing", row.name, strings.Fields(row.all), unknown)
		if got != row.want || (err == nil) != (row.why == "") || err != nil && !strings.Contains(err.Error(), row.why) {
			t.Errorf("%q of %s: %q, %v; want %q, %q", row.name, row.all, got, err, row.want, row.why)
		}
	}
}

// TestToResume: one word names a task, one text is a message to the last task of the directory, two arguments are both.
func TestToResume(t *testing.T) {
	root := t.TempDir()
	svc, err := session.New(session.Options{Getenv: func(name string) string {
		return map[string]string{"ANAMNESIS_HOME": root}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(svc.Home.Task("fix_a"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args        []string
		id, message string
		last        bool // the directory's last task is wanted, of which there is none
	}{
		{[]string{"fix"}, "fix_a", "", false}, {[]string{"fix", "go on"}, "fix_a", "go on", false}, {[]string{"fix", ""}, "fix_a", "", false},
		{[]string{"go on"}, "", "go on", true}, {[]string{"go\ton"}, "", "go\ton", true}, {[]string{"go\n"}, "", "go\n", true}, {nil, "", "", true},
	} {
		id, message, err := ToResume(svc, t.TempDir(), row.args)
		if id != row.id || message != row.message || (err != nil) != row.last {
			t.Errorf("%q: %q %q, %v", row.args, id, message, err)
		}
	}
}

// TestDecided: ids may be shortened, none is named twice, and a repair's id that nothing has is left to the decision.
func TestDecided(t *testing.T) {
	root := t.TempDir()
	svc, err := session.New(session.Options{Getenv: func(name string) string {
		return map[string]string{"ANAMNESIS_HOME": root}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	store, err := knowledgebase.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, id := range []string{"one1", "one2", "two1"} {
		if _, _, err := store.Put(t.Context(), &card.Card{ID: id, Topic: "topic of " + id, SourceTask: "t", State: card.Draft, Issue: []string{"fails " + id}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		d    review.Decision
		want string // the ids; "" if it is an error
	}{
		{review.Decision{Act: review.Approve, IDs: []string{"two"}}, "two1 "}, {review.Decision{Act: review.Retire, IDs: []string{"one1", "tw"}}, "one1 two1 "},
		{review.Decision{Act: review.Supersede, IDs: []string{"one1"}, By: "tw"}, "one1 two1"}, {review.Decision{Act: review.Approve, IDs: []string{"other"}}, "other "},
		{review.Decision{Act: review.Approve, IDs: []string{"one"}}, ""}, {review.Decision{Act: review.Approve, IDs: []string{"two1", "two1"}}, ""},
		{review.Decision{Act: review.Supersede, IDs: []string{"two1"}, By: "two1"}, ""},
	} {
		err := Decided(t.Context(), svc.Home, store, &row.d)
		if got := strings.Join(row.d.IDs, " ") + " " + row.d.By; (err == nil) != (row.want != "") ||
			err == nil && got != row.want {
			t.Errorf("%q, %v; want %q", got, err, row.want)
		}
	}
	if _, err := Repairs(svc.Home, store, []string{"two"}); err == nil ||
		!strings.Contains(err.Error(), "two1 is a card already") {
		t.Errorf("a card among repairs: %v", err)
	}
	if _, err := Repairs(svc.Home, store, []string{"other"}); err == nil ||
		!strings.Contains(err.Error(), "no repair other") {
		t.Errorf("no repair: %v", err)
	}
	if list, err := Repairs(svc.Home, store, nil); len(list) > 0 || err != nil {
		t.Errorf("all: %v, %v", list, err)
	}
	if ids, err := Cards(store, []string{"two", "one2"}); err != nil || strings.Join(ids, " ") != "two1 one2" {
		t.Errorf("%q, %v", ids, err)
	}
}
