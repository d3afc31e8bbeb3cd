package eas

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"anamnesis/anamnesis/proposal"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/web"
)

const (
	maxSearched  = 8 // models at once
	maxPagesRead = 3 // pages fetched about a model; for the others the engine's extract is used
)

// publishedFile stores what searches found, until `eas reflect` decides on it.
func publishedFile(h taskdir.Home) string { return filepath.Join(h.State, "eas-published.json") }

func readPublished(h taskdir.Home) ([]proposal.Figure, error) {
	var found []proposal.Figure
	if err := readJSON(publishedFile(h), &found); err != nil {
		return nil, remedy.With(session.Usagef("%s: %v", publishedFile(h), err), remedy.Search, "")
	}
	return found, nil
}

// Search searches for published figures of models and stores them. If a search, a page or an
// answer fails, the stored figures of its model stay; the notes report it.
func Search(
	ctx context.Context, svc *session.Service, names []string, reader func() (model.Model, error),
) ([]string, error) {
	h := svc.Home
	o, err := svc.Web()
	switch {
	case err != nil:
		return nil, err
	case o.Search.Engine == "":
		return nil, session.Usagef("eas reflect: search: no search engine is configured: name one in %s, as "+
			"docs/guides/web-tools.md shows", h.Web())
	case len(names) > maxSearched:
		return nil, session.Usagef("eas reflect: search: %d models, at most %d at once", len(names), maxSearched)
	}
	// A figure becomes a row of the table, whose pattern is the model's name: it may have no sign of a pattern.
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "*{},") || strings.ContainsFunc(name, unicode.IsSpace) {
			return nil, session.Usagef("eas reflect: search %q: want one model's name, such as gpt-4o", name)
		}
	}
	m, err := reader()
	if err != nil {
		return nil, err
	}
	var notes []string
	for _, name := range names {
		pages, more, err := findPages(ctx, &o, name)
		notes = append(notes, more...)
		var found []proposal.Figure
		if err == nil && len(pages) > 0 {
			found, more, err = proposal.ReadFigures(ctx, TextModel{Model: m, Purpose: model.PurposeReflect}, name,
				pages)
			notes = append(notes, more...)
		}
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("eas reflect: %w", ctx.Err())
		case err != nil:
			notes = append(notes, err.Error())
			continue
		}
		notes = append(notes, fmt.Sprintf("searched for %s: %d figures on %d pages", name, len(found), len(pages)))
		if err := storePublished(h, name, found); err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// findPages searches, and reads the first pages found.
func findPages(ctx context.Context, o *web.Options, name string) (pages []proposal.Page, notes []string, err error) {
	hits, err := web.Find(ctx, o, name+" long context benchmark effective context length RULER NoLiMa",
		proposal.MaxPages)
	if err != nil {
		return nil, nil, fmt.Errorf("search for %s: %w", name, err)
	}
	for i, hit := range hits {
		text := hit.Extract()
		if i < maxPagesRead {
			whole, err := web.Read(ctx, o, hit.URL)
			if err != nil {
				notes = append(notes, fmt.Sprintf("%s was not read, only what the search shows of it: %v", hit.URL,
					err))
			}
			if lines := proposal.LinesAbout(whole, name); lines != "" {
				text += "\n" + lines
			}
		}
		pages = append(pages, proposal.Page{Title: hit.Title, URL: hit.URL, Text: text})
	}
	return pages, notes, nil
}

func storePublished(h taskdir.Home, name string, found []proposal.Figure) error {
	return editFile(publishedFile(h), func() ([]byte, error) {
		kept, err := readPublished(h)
		if err != nil {
			return nil, err
		}
		kept = slices.DeleteFunc(kept, func(f proposal.Figure) bool { return f.Model == name })
		return json.MarshalIndent(append(kept, found...), "", "  ")
	})
}
