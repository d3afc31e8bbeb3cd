package knowledgebase

import (
	"errors"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/intent"
)

// What becomes of a file of which a remote has another version.
func TestMergeFile(t *testing.T) {
	s := openStore(t, t.TempDir())
	text := func(id, issue string, state card.State) []byte {
		c := newCard(id, "topic", issue)
		c.State = state
		return c.Markdown()
	}
	reviewed := newCard("k1", "topic", "reviewed here")
	reviewed.State = card.Reviewed
	path := mustPut(t, s, reviewed)
	const file = "2026-01/topic-k2.md"
	here := strings.TrimPrefix(path, s.dir+"/")
	for _, tt := range []struct {
		name, path         string
		base, ours, theirs []byte
		want               string // each file written, each list that is not empty
		err                error
	}{
		{"the same on both sides", file, nil, text("k2", "a", card.Draft), text("k2", "a", card.Draft), "", nil},
		{"new there", file, nil, nil, text("k2", "a", card.Draft), "write new; taken", nil},
		{"changed there", file, text("k2", "a", card.Draft), text("k2", "a", card.Draft), text("k2", "b", card.Draft), "write over; taken", nil},
		{"removed there", file, text("k2", "a", card.Draft), text("k2", "a", card.Draft), nil, "remove; taken", nil},
		{"removed there, changed here", file, text("k2", "a", card.Draft), text("k2", "b", card.Draft), nil, "", nil},
		{"removed here, changed there", file, text("k2", "a", card.Draft), nil, text("k2", "b", card.Draft), "write new; taken", nil},
		{"changed on both sides", file, text("k2", "a", card.Draft), text("k2", "b", card.Draft), text("k2", "c", card.Draft), "write new; conflict", nil},
		{"no card on one side", file, text("k2", "a", card.Draft), text("k2", "b", card.Draft), []byte("no card"), "write new; conflict", nil},
		{"no card, changed on both sides", "README.md", []byte("a"), []byte("b"), []byte("c"), "", ErrBothChanged},
		{"another lesson for a reviewed card", here, reviewed.Markdown(), reviewed.Markdown(), text("k1", "other", card.Reviewed), "write new; renamed", nil},
		{"a reviewed card made a draft", here, reviewed.Markdown(), reviewed.Markdown(), text("k1", "reviewed here", card.Draft), "write over; taken; draft", nil},
		{"a new file with the id of a card here", "2026-02/topic-k1.md", nil, nil, text("k1", "other", card.Draft), "write new; renamed", nil},
	} {
		in, out := intent.Intent{}, &Synced{}
		err := s.mergeFile(history.Side{Path: tt.path, Base: tt.base, Ours: tt.ours, Theirs: tt.theirs}, &in, out)
		var got []string
		for _, f := range in.Files {
			switch {
			case f.Gone:
				got = append(got, "remove")
			case f.Before != "":
				got = append(got, "write over")
			default:
				got = append(got, "write new")
			}
		}
		for _, list := range []struct {
			name string
			n    int
		}{
			{"taken", len(out.Paths)}, {"conflict", len(out.Conflicts)}, {"draft", len(out.Drafts)},
			{"renamed", len(out.Renamed)},
		} {
			if list.n > 0 {
				got = append(got, list.name)
			}
		}
		if strings.Join(got, "; ") != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}
