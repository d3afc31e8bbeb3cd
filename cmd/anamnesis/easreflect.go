//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	assets "anamnesis"
	"anamnesis/anamnesis"
	"anamnesis/anamnesis/proposal"
	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/taskdir"

	"github.com/spf13/cobra"
)

type reflectFlags struct {
	accept, reject []string
	search         []string
	evidence       string
	model, baseURL string
	asJSON         bool
}

func (a *app) easReflectCommand() *cobra.Command {
	var f reflectFlags
	cmd := &cobra.Command{
		Use:   "reflect",
		Short: "Propose changes of the table, to accept or reject one by one",
		Long: `Propose changes of the table of effective attention spans, each with its evidence: what 'eas probe' measured, how
the models' calls in your tasks went against the length of their context, rows of the built-in table (or of
--evidence FILE, of the same form) that are newer or better founded than yours. On a terminal each is asked about;
otherwise --accept ID and --reject ID decide. Accepted ones go into your overlay; what was decided is not proposed
again unless its evidence changes. --search MODEL has your search engine (web.yaml) asked what was published about a
model, and --model read it; a figure counts only where its quote stands in the page. What was found is proposed until it
is decided.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.easReflect(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.accept, "accept", nil, "accept a proposal by its id (repeatable)")
	fl.StringArrayVar(&f.reject, "reject", nil, "reject a proposal by its id (repeatable)")
	fl.StringVar(&f.evidence, "evidence", "", "another table to compare with, of the form of eas.yaml")
	fl.StringArrayVar(&f.search, "search", nil, "search for what was published about a model (repeatable)")
	fl.StringVar(&f.model, "model", "", "model that reads what --search finds and puts the proposals into words; figures never come from it")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) easReflect(ctx context.Context, f reflectFlags) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	reader := sync.OnceValues(func() (model.Model, error) { return a.readerOf(ctx, f) })
	var notes []string
	if len(f.search) > 0 {
		if notes, err = a.searchFigures(ctx, h, f, reader); err != nil {
			return err
		}
	}
	found, more, err := gatherProposals(ctx, h, f.evidence)
	if err != nil {
		return err
	}
	notes = append(notes, more...)
	decided, err := readDecisions(h)
	if err != nil {
		return err
	}
	open := decided.Open(found)
	if f.model != "" && len(open) > 0 {
		if open, more, err = wordProposals(ctx, reader, open); err != nil {
			return err
		}
		notes = append(notes, more...)
	}
	for _, n := range notes {
		fmt.Fprintf(a.stderr, "anamnesis: %s\n", view.Line(n, 500))
	}
	switch {
	case len(f.accept)+len(f.reject) > 0:
		return a.decideByID(h, open, f)
	case f.asJSON:
		return a.printJSON(map[string]any{"proposals": open, "decided": len(found) - len(open), "notes": append([]string{}, notes...)})
	case len(open) == 0:
		fmt.Fprintf(a.stdout, "nothing to propose; %d decided before\n", len(found))
		return nil
	case !a.interactive():
		for _, p := range open {
			a.printProposal(p)
		}
		fmt.Fprintf(a.stdout, "%d proposals; --accept ID or --reject ID decides\n", len(open))
		return nil
	}
	return a.decideByAsking(ctx, h, open)
}

// gatherProposals collects the evidence. What cannot be read is left out, and
// the notes say so.
func gatherProposals(ctx context.Context, h taskdir.Home, evidence string) ([]proposal.Proposal, []string, error) {
	table, err := loadEAS(h.EASOverlay(), easProjectFile("."))
	if err != nil {
		return nil, nil, err
	}
	base, err := anamnesis.LoadTable(assets.EAS)
	if err != nil {
		return nil, nil, err
	}
	found, notes := probeProposals(h, table)
	hist, more, err := readHistory(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, more...)
	found = append(found, proposal.FromHistory(hist, table)...)
	found = append(found, proposal.FromTable(base, table)...)
	published, more, err := publishedProposals(h, table)
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, more...)
	found = append(found, published...)
	if evidence != "" {
		data, err := readOverlay(evidence)
		if err != nil {
			return nil, nil, usageError("eas reflect: --evidence: %v", err)
		}
		other, err := anamnesis.LoadTable(nil, anamnesis.Overlay{Name: evidence, Data: data})
		if err != nil {
			return nil, nil, tableFault(err)
		}
		found = append(found, proposal.FromTable(other, table)...)
	}
	proposal.Sort(found)
	return found, notes, nil
}

// probeProposals reads what 'eas probe' measured.
func probeProposals(h taskdir.Home, t *anamnesis.Table) (found []proposal.Proposal, notes []string) {
	files, err := fs.Glob(os.DirFS(probesDir(h)), "*.result.json")
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, name := range files {
		path := filepath.Join(probesDir(h), name)
		var rep probeReport
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &rep)
		}
		if err == nil && rep.Row == nil {
			err = errors.New("no row in it")
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s is left out: %v", path, err))
			continue
		}
		if now := t.Lookup(rep.Row.Pattern); rep.Result.FailsAt == 0 && rep.Row.EAS < now.EAS {
			notes = append(notes, fmt.Sprintf("the probe of %s found no length up to %d that fails, which says nothing against %d; ask longer texts", rep.Row.Pattern, rep.Row.EAS, now.EAS))
			continue
		}
		found = append(found, proposal.FromProbe(*rep.Row, t)...)
	}
	return found, notes
}

// readHistory reads the streams of all tasks.
func readHistory(ctx context.Context, h taskdir.Home) (*proposal.History, []string, error) {
	ids, err := h.Tasks()
	if err != nil {
		return nil, nil, err
	}
	hist := new(proposal.History)
	var notes []string
	for _, id := range ids {
		hist.Task()
		err := taskdir.EachOp(h, id, func(o op.Op) error {
			hist.Add(o)
			return ctx.Err()
		})
		if ctx.Err() != nil {
			return nil, nil, &exitError{exitInterrupted, errors.New("eas reflect: interrupted")}
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("task %s counts as far as it can be read: %v", id, err))
		}
	}
	return hist, notes, nil
}

// readerOf gives the model that reads what a search found, and words proposals; of
// a recording it says that it is one.
func (a *app) readerOf(ctx context.Context, f reflectFlags) (model.Model, error) {
	m, err := a.chooseModel(ctx, f.model, f.baseURL, "")
	if err == nil && m.banner != "" {
		fmt.Fprintln(a.stderr, m.banner)
	}
	return m.model, err
}

// wordProposals has a model word and order the proposals. A model that fails
// changes nothing: the notes say so.
func wordProposals(ctx context.Context, reader func() (model.Model, error), open []proposal.Proposal) ([]proposal.Proposal, []string, error) {
	m, err := reader()
	if err != nil {
		return nil, nil, err
	}
	worded, notes, err := proposal.Word(ctx, textModel{model: m, purpose: model.PurposeReflect}, open)
	if err != nil {
		notes = append(notes, err.Error())
	}
	return worded, notes, nil
}

func decisionsFile(h taskdir.Home) string { return filepath.Join(h.State, "eas-decisions.jsonl") }

func readDecisions(h taskdir.Home) (proposal.Decisions, error) {
	data, err := os.ReadFile(decisionsFile(h))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return proposal.Decisions{}, fmt.Errorf("read what was decided: %w", err)
	}
	d, err := proposal.ParseDecisions(data)
	if err != nil {
		return d, usageError("%s: %v; repair or remove the line", decisionsFile(h), err)
	}
	return d, nil
}

// decide carries one decision out: an accepted row is written first, so that
// what is remembered as accepted is there.
func (a *app) decide(h taskdir.Home, p proposal.Proposal, decision string) error {
	now := time.Now().UTC()
	if decision == proposal.Accepted {
		p.Row.By, p.Row.Updated = "reflect", now.Format(time.DateOnly)
		if err := putRow(h.EASOverlay(), p.Row, false); err != nil {
			return err
		}
	}
	err := editFile(decisionsFile(h), 0o700, 0o600, func() ([]byte, error) {
		d, err := readDecisions(h)
		if err != nil {
			return nil, err
		}
		return d.With(p, decision, now).Encode()
	})
	if err != nil {
		return err
	}
	where := ""
	if decision == proposal.Accepted {
		where = ", in " + h.EASOverlay()
	}
	fmt.Fprintf(a.stdout, "%s %s: %s, eas %d → %d%s\n", decision, p.ID, anamnesis.Squash(p.Row.Pattern), p.Was.EAS, p.Row.EAS, where)
	return nil
}

// decideByID carries out what the flags say; an unknown id stops before
// anything is done.
func (a *app) decideByID(h taskdir.Home, open []proposal.Proposal, f reflectFlags) error {
	type choice struct {
		p        proposal.Proposal
		decision string
	}
	var todo []choice
	for i, id := range slices.Concat(f.accept, f.reject) {
		at := slices.IndexFunc(open, func(p proposal.Proposal) bool { return p.ID == id })
		if at < 0 {
			return usageError("eas reflect: no open proposal %q; 'anamnesis eas reflect' lists them", id)
		}
		if slices.ContainsFunc(todo, func(c choice) bool { return c.p.ID == id }) {
			return usageError("eas reflect: %s is named twice", id)
		}
		decision := proposal.Accepted
		if i >= len(f.accept) {
			decision = proposal.Rejected
		}
		todo = append(todo, choice{open[at], decision})
	}
	for _, c := range todo {
		if err := a.decide(h, c.p, c.decision); err != nil {
			return err
		}
	}
	return nil
}

// decideByAsking asks the person at the terminal about each.
func (a *app) decideByAsking(ctx context.Context, h taskdir.Home, open []proposal.Proposal) error {
	for i, p := range open {
		a.printProposal(p)
		answer, err := a.askLine(ctx, fmt.Sprintf("(%d of %d) write it into your table? y (yes), n (no, and not again), anything else skips: ", i+1, len(open)))
		if err != nil {
			return err
		}
		switch {
		case isYes(answer):
			err = a.decide(h, p, proposal.Accepted)
		case strings.EqualFold(answer, "n"), strings.EqualFold(answer, "no"):
			err = a.decide(h, p, proposal.Rejected)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printProposal(p proposal.Proposal) {
	now := fmt.Sprintf("%d by %s of %s", p.Was.EAS, p.Was.Pattern, p.Was.Origin)
	if !p.Was.Known {
		now = fmt.Sprintf("%d, unknown", p.Was.EAS)
	}
	fmt.Fprintf(a.stdout, "%s  %s: eas %d (now %s), confidence %s, from %s\n", p.ID, anamnesis.Squash(p.Row.Pattern), p.Row.EAS, now, p.Row.Confidence, p.Kind)
	for _, e := range p.Evidence {
		fmt.Fprintf(a.stdout, "    %s\n", anamnesis.Squash(e))
	}
	if p.Rationale != "" {
		fmt.Fprintf(a.stdout, "    the model says: %s\n", anamnesis.Squash(p.Rationale))
	}
}
