package knowledgebase

import (
	"strings"
	"testing"
)

// TestReserved: a remote brings cards and other plain files, but nothing that this program, git or
// another program acts on.
func TestReserved(t *testing.T) {
	theirs := "2026-01/a.md a.md README.md .gitignore .gitattributes sub/usage.jsonl usage.jsonl.md my.reviews.jsonl a..b/c"
	ours := ".git .git/config .anamnesis a/.git/config a/.gitignore a/.x .. ../a /a a/../../b a\\b " +
		"usage.jsonl Usage.JSONL usage.jsonl/x reviews.jsonl PROJECT_reviews.jsonl"
	for path := range strings.FieldsSeq(theirs) {
		if reserved(path) {
			t.Errorf("%s is refused", path)
		}
	}
	for path := range strings.FieldsSeq(ours) {
		if !reserved(path) {
			t.Errorf("%s is taken in", path)
		}
	}
	if !reserved("") {
		t.Error("an empty path is taken in")
	}
}
