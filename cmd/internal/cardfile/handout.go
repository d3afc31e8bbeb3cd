//go:build unix

package cardfile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/handout"
	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

// Handout is the change of files for agents that run no hook.
type Handout struct {
	Cards   int      `json:"cards"`           // in the files
	Facts   int      `json:"facts,omitempty"` // in the section
	Changed []string `json:"changed"`
	Tainted []string `json:"tainted,omitempty"` // reviewed cards of the project that are left out
	Drafts  int      `json:"drafts,omitempty"`  // of the project, which are left out

	Target   string           `json:"-"`
	Reviewed int              `json:"-"` // cards of the project
	Changes  []handout.Change `json:"-"`
}

// PlanHandout plans to write the facts and the reviewed cards of the present directory's project, from
// some stores, into a section of AGENTS.md. own is the project's own folder of
// cards. args may name another target. Where a user changed what was written, the error
// comes with the changes that it prevents.
func PlanHandout(stores []*knowledgebase.Store, own string, facts, args []string) (*Handout, error) {
	dir, err := session.RealDir(".")
	if err != nil {
		return nil, err
	}
	repo := worldstate.RepositoryName(dir)
	cards, err := Collect(stores, own, repo)
	if err != nil {
		return nil, err
	}
	cards, tainted, drafts := handout.Select(cards, repo, time.Now())
	target := "AGENTS.md"
	if len(args) == 1 {
		target = args[0]
	}
	h := &Handout{Facts: len(facts), Target: target, Reviewed: len(cards), Changed: []string{},
		Tainted: tainted, Drafts: drafts}
	h.Changes, h.Cards, err = handout.PlanSection(target, facts, cards)
	if errors.Is(err, handout.ErrEdited) {
		return h, exit.With(exit.Refused, fmt.Errorf(
			"%w; take your words out of the marks, or remove the marks and what they hold, and export again", err))
	}
	for _, c := range h.Changes {
		h.Changed = append(h.Changed, c.Path)
	}
	return h, err
}

// LeftOut says in lines which cards of the project are left out, why, and what the user can do.
func (h *Handout) LeftOut() (lines string) {
	if h.Drafts > 0 {
		lines = fmt.Sprintf("left out: %s; 'anamnesis kb review' decides about drafts\n",
			quote.Number(h.Drafts, "draft"))
	}
	if n := len(h.Tainted); n > 0 {
		lines += fmt.Sprintf("left out: %s with evidence from outside the project; once you have checked the text: "+
			"anamnesis kb approve --untaint %s\n",
			quote.Number(n, "reviewed card"), strings.Join(h.Tainted, " "))
	}
	return lines
}

// String says which cards the files hold, and how many files change.
func (h *Handout) String() string {
	held := fmt.Sprintf("%d of %s of this project in %s", h.Cards, quote.Number(h.Reviewed, "reviewed card"), h.Target)
	switch {
	case h.Reviewed == 0 && len(h.Tainted) > 0:
		held = "no card in " + h.Target + ": all reviewed cards of this project are left out"
	case h.Reviewed == 0:
		held = "no card in " + h.Target + ": this project has no reviewed card"
	}
	if h.Facts > 0 {
		held += ", " + quote.Number(h.Facts, "fact")
	}
	return held + ", " + quote.Number(len(h.Changes), "file") + " changed"
}

func (h *Handout) Apply() error {
	for _, c := range h.Changes {
		if err := c.Apply(); err != nil {
			return fmt.Errorf("write %s: %w", c.Path, err)
		}
	}
	return nil
}
