package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/facts"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/model"
)

// Options are the settings for searching and writing cards.
type Options struct {
	Model    model.Model        // reads spans; if nil, Reader's does
	Reader   Reader             // nil: without a Model the extractor writes
	Embedder retrieval.Embedder // makes vectors of the cards; if nil, there are none
	// Passing is called when a pass is about to ask the model, which may take minutes.
	Passing func(op.PassBegun)
}

// Reader chooses the model that reads the sessions of another agent, and returns its effective
// attention span. spent is what passes over the session have cost in US dollars. It returns nil
// if no model is to be asked, and an error if the session may cost no more.
type Reader func(ctx context.Context, spent float64) (reads model.Model, eas int, err error)

// Memory is one task's access to the cards.
type Memory struct {
	*journal.Ledger       // of the task
	Untold          error // why other homes do not learn what the task showed; set by CountTask
	dir             string
	o               Options

	cards    *knowledgebase.Store
	layers   knowledgebase.Layers // searched: the project's own cards, if any, and cards
	degraded string               // why the last search used words only, as recorded
	taint    *anamnesis.TaintLog  // nil until a pass needs it

	seenMu     sync.Mutex // guards experience and facts
	experience experience.Log
	facts      facts.Record
	known      func() []facts.Fact // what the model is shown
	trusted    sync.Map            // evidence by the text of a card
	elsewhere  map[string]evidence // by the hash of a card of another home's task
	verified   []usage.Event       // by this process
}

// Open opens the user's cards, where new ones are written, and the project's own cards, if dir
// has any.
func Open(l *journal.Ledger, dir, global string, mo Options) (*Memory, error) {
	m := &Memory{Ledger: l, dir: dir, o: mo, elsewhere: make(map[string]evidence)}
	m.known = sync.OnceValue(func() []facts.Fact {
		_, told, _ := TellFacts(m.Home, dir) // the start of the task reports the error
		return told
	})
	o := knowledgebase.Options{Watch: true, Embedder: mo.Embedder, Redact: l.Journal.Redactor().Markers}
	o.SharedReviews = filepath.Join(l.Home.Shared, ReviewsPrefix)
	var err error
	if m.cards, err = knowledgebase.Open(global, &o); err != nil {
		return nil, err
	}
	var events []usage.Event
	for _, o := range shared(l.Home, dir) {
		events = append(events, o.Events...)
		maps.Copy(m.elsewhere, o.Evidence)
	}
	if err := m.cards.Count(events...); err != nil {
		return nil, errors.Join(err, m.cards.Close())
	}
	m.layers = knowledgebase.Layers{m.cards}
	own := filepath.Join(dir, filepath.FromSlash(knowledgebase.ProjectDir))
	if info, err := os.Stat(own); err != nil || !info.IsDir() || own == global {
		return m, nil
	}
	project, err := knowledgebase.Open(own, o.ForProject(global))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the project's own cards: %w", err), m.Close())
	}
	m.layers = knowledgebase.Layers{project, m.cards}
	return m, nil
}

// Close closes the cards.
func (m *Memory) Close() error {
	var errs []error
	for _, s := range m.layers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// TaintRead returns the last operation that was examined for texts from outside the world.
func (m *Memory) TaintRead() uint64 {
	if m.taint == nil {
		return 0
	}
	return m.taint.Last()
}
