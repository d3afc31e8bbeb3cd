//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/dream"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/model"

	"github.com/spf13/cobra"
)

// Bounds of how many groups one dream looks at.
const (
	defaultDreams = 20
	maxDreams     = 1000
)

type dreamFlags struct {
	number         int
	model, baseURL string
	dry            bool
}

// dreamed is what a dream did.
type dreamed struct {
	Proposed []*dream.Proposal `json:"proposed"`
	Declined []string          `json:"declined"` // groups in which the model saw no one lesson, or which it could not write
	Known    int               `json:"known"`    // groups proposed before
	More     int               `json:"more"`     // groups beyond --number
	Stored   bool              `json:"stored"`
}

func (a *app) dreamCommand() *cobra.Command {
	var dir string
	var f dreamFlags
	cmd := &cobra.Command{
		Use:   "dream",
		Short: "Propose general cards for what different tasks learned in different places",
		Long: `Look for cards of different tasks that say one thing about different places, and propose one general card for each such
group. A proposal is a draft that names its instances. 'anamnesis kb review' shows it with them; it takes no card's
place, and no task is shown it, before you approve it. What was proposed once is not proposed again, whatever
you decided.

Without --model the proposal is put together by a template, for you to find the words. With --model a model decides whether
a group is one lesson and writes the card; what the cards do not bear out is dropped. The text of the groups'
cards is then sent to that model.`,
	}
	cmd.RunE = a.withKB(&dir, false, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
		if f.number < 1 || f.number > maxDreams {
			return usageError("-n %d: 1 to %d groups can be looked at", f.number, maxDreams)
		}
		got, err := a.dream(cmd.Context(), store, f)
		if err != nil {
			return err
		}
		a.warnHistory(store)
		if a.json {
			return a.printJSON(got)
		}
		return a.printDream(got)
	})
	fl := cmd.Flags()
	fl.StringVar(&dir, "kb", "", "the knowledge base's directory (default: the one of the program's state)")
	fl.IntVarP(&f.number, "number", "n", defaultDreams, "how many groups are looked at at most, the most alike first")
	fl.StringVar(&f.model, "model", "", "model that judges the groups and writes the cards")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.BoolVar(&f.dry, "dry-run", false, "print the proposals and store nothing")
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

func (a *app) dream(ctx context.Context, store *knowledgebase.Store, f dreamFlags) (*dreamed, error) {
	w, err := a.dreamWriter(ctx, f)
	if err != nil {
		return nil, err
	}
	found, err := dream.Find(ctx, store, w.Model != nil)
	if err != nil {
		return nil, stopped(ctx, err)
	}
	got := &dreamed{Proposed: []*dream.Proposal{}, Declined: []string{}, Known: found.Known, More: max(0, len(found.Groups)-f.number), Stored: !f.dry}
	for _, g := range found.Groups[:len(found.Groups)-got.More] {
		p, err := w.Write(ctx, g, time.Now())
		switch {
		case ctx.Err() != nil:
			return nil, stopped(ctx, err)
		case err != nil:
			got.Declined = append(got.Declined, err.Error())
			continue
		}
		if !f.dry {
			again, err := propose(ctx, store, p)
			if err != nil {
				return nil, err
			}
			if again {
				got.Known++
				continue
			}
		}
		got.Proposed = append(got.Proposed, p)
	}
	return got, nil
}

// dreamWriter is what writes the proposals: the model that is named, or the
// template.
func (a *app) dreamWriter(ctx context.Context, f dreamFlags) (dream.Writer, error) {
	if f.model == "" {
		return dream.Writer{}, nil
	}
	m, err := a.chooseModel(ctx, f.model, f.baseURL)
	if err != nil {
		return dream.Writer{}, err
	}
	return dream.Writer{Model: eas.TextModel{Model: m.Model, Purpose: model.PurposeReflect}, Name: m.Model.Name()}, nil
}

// propose stores a proposal; again says that there is a card of it already.
func propose(ctx context.Context, store *knowledgebase.Store, p *dream.Proposal) (again bool, err error) {
	if _, err := store.Get(p.Card.ID); err == nil {
		return true, nil
	} else if !errors.Is(err, knowledgebase.ErrNotFound) {
		return false, kbError(err)
	}
	_, err = store.Apply(ctx, knowledgebase.Change{Message: fmt.Sprintf("Dream: %s\n\nDrawn from %s", p.Card.Topic, strings.Join(p.Card.Generalizes, " ")), Cards: []*card.Card{p.Card}})
	return false, kbError(err)
}

// stopped gives an interrupted dream its exit code. What was proposed before
// is stored.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return &exitError{exitInterrupted, errors.New("dream: interrupted; what was proposed so far is stored")}
}

func (a *app) printDream(got *dreamed) error {
	var b strings.Builder
	for _, p := range got.Proposed {
		fmt.Fprintf(&b, "%s  %s\n", p.Card.ID, view.Line(p.Card.Topic, 200))
		for _, c := range p.Instances {
			fmt.Fprintf(&b, "    %s  %s (%s)\n", c.ID, view.Line(c.Topic, 200), c.State)
		}
	}
	for _, note := range slices.Concat(notesOf(got.Proposed), got.Declined) {
		a.notef("%s", view.Line(note, 500))
	}
	if got.More > 0 {
		a.notef("%d more groups were not looked at; -n takes in more", got.More)
	}
	then := "'anamnesis kb review' shows them"
	if !got.Stored {
		then = "nothing was stored"
	}
	fmt.Fprintf(&b, "%d proposed, %d known before; %s\n", len(got.Proposed), got.Known, then)
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

func notesOf(proposed []*dream.Proposal) (out []string) {
	for _, p := range proposed {
		for _, n := range p.Notes {
			out = append(out, p.Card.ID+": "+n)
		}
	}
	return out
}
