package eas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/proposal"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// Propose returns the open proposals, how many there are in all, and notes for the user. names
// are models for which it first searches published figures. reader reads those.
func Propose(
	ctx context.Context, svc *session.Service, names []string, reader func() (model.Model, error),
) (open []proposal.Proposal, all int, notes []string, err error) {
	if len(names) > 0 {
		if reader == nil {
			return nil, 0, nil, remedy.With(
				session.Usagef("eas reflect: a search needs a model that reads what is found"), remedy.NameModel, "")
		}
		if notes, err = Search(ctx, svc, names, reader); err != nil {
			return nil, 0, nil, err
		}
	}
	found, more, err := Gather(ctx, svc)
	if err != nil {
		return nil, 0, nil, err
	}
	notes = append(notes, more...)
	decided, err := Decided(svc.Home)
	if err != nil {
		return nil, 0, nil, err
	}
	return proposal.Open(found, decided), len(found), notes, nil
}

// Gather returns the proposals that the evidence of a home supports: probes, tasks and
// published figures. The notes name what it could not read.
func Gather(ctx context.Context, svc *session.Service) (found []proposal.Proposal, notes []string, err error) {
	h := svc.Home
	table, err := svc.EASTable(".")
	if err != nil {
		return nil, nil, err
	}
	found, notes = probeProposals(h, table)
	hist, more, err := readHistory(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	notes = append(notes, more...)
	found = append(found, proposal.FromHistory(hist, table)...)
	figures, err := readPublished(h)
	if err != nil {
		return nil, nil, err
	}
	published, more := proposal.FromPublished(figures, table)
	notes = append(notes, more...)
	found = append(found, published...)
	proposal.Sort(found)
	return found, notes, nil
}

// probeProposals reads what 'eas probe' measured.
func probeProposals(h taskdir.Home, t *attention.Table) (found []proposal.Proposal, notes []string) {
	files, err := fs.Glob(os.DirFS(probesDir(h)), "*.result.json")
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, name := range files {
		path := filepath.Join(probesDir(h), name)
		var rep ProbeReport
		err := readJSON(path, &rep)
		if err == nil && rep.Row == nil {
			err = errors.New("no row in it")
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s is left out: %v", path, err))
			continue
		}
		if now := t.Lookup(rep.Row.Pattern); rep.Result.FailsAt == 0 && rep.Row.EAS < now.EAS {
			notes = append(notes, fmt.Sprintf(
				"the probe of %s found no length up to %d that fails, which says nothing against %d; ask longer texts",
				rep.Row.Pattern, rep.Row.EAS, now.EAS))
			continue
		}
		found = append(found, proposal.FromProbe(*rep.Row, t)...)
	}
	return found, notes
}

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
			return nil, nil, fmt.Errorf("eas reflect: %w", ctx.Err())
		}
		if err != nil && !errors.Is(err, taskdir.ErrNoTask) { // a folder without a stream is no task
			notes = append(notes, fmt.Sprintf("task %s counts as far as it can be read: %v", id, err))
		}
	}
	return hist, notes, nil
}

func decisionsFile(h taskdir.Home) string { return filepath.Join(h.State, "eas-decisions.jsonl") }

// Decided reads the decisions made so far.
func Decided(h taskdir.Home) ([]proposal.Decision, error) {
	data, err := os.ReadFile(decisionsFile(h))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read earlier decisions: %w", err)
	}
	d, err := proposal.ParseDecisions(data)
	if err != nil {
		return d, session.Usagef("%s: %v; repair or remove the line", decisionsFile(h), err)
	}
	return d, nil
}

// Decide executes one decision. It writes an accepted row first, so that a recorded acceptance
// is in the table.
func Decide(h taskdir.Home, p proposal.Proposal, decision string) error {
	now := time.Now().UTC()
	if decision == proposal.Accepted {
		p.Row.By, p.Row.Updated = "reflect", now.Format(time.DateOnly)
		if err := PutRow(h.EASOverlay(), p.Row); err != nil {
			return err
		}
	}
	line, err := json.Marshal(proposal.Decision{ID: p.ID, Decision: decision, Pattern: p.Row.Pattern, EAS: p.Row.EAS,
		At: now})
	if err != nil {
		return err
	}
	return editFile(decisionsFile(h), func() ([]byte, error) {
		data, err := os.ReadFile(decisionsFile(h))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if n := len(data); n > 0 && data[n-1] != '\n' { // a user edited it
			data = append(data, '\n')
		}
		return append(data, append(line, '\n')...), nil
	})
}

// Choice is a decision about a proposal.
type Choice struct {
	Proposal proposal.Proposal
	Decision string
}

// Choose returns the open proposals that ids name. An unknown id is an error.
func Choose(open []proposal.Proposal, accept, reject []string) ([]Choice, error) {
	var todo []Choice
	for i, id := range slices.Concat(accept, reject) {
		at := slices.IndexFunc(open, func(p proposal.Proposal) bool { return p.ID == id })
		if at < 0 {
			return nil, remedy.With(session.Usagef("eas reflect: no open proposal %q", id), remedy.ListProposals, "")
		}
		if slices.ContainsFunc(todo, func(c Choice) bool { return c.Proposal.ID == id }) {
			return nil, session.Usagef("eas reflect: %s is named twice", id)
		}
		decision := proposal.Accepted
		if i >= len(accept) {
			decision = proposal.Rejected
		}
		todo = append(todo, Choice{open[at], decision})
	}
	return todo, nil
}
