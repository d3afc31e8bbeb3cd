package session

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/facts"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/redact"
)

// Cards opens a folder of cards, or the user's own if dir is empty. It replaces o's embedder
// and secrets by those of the configuration.
func (s *Service) Cards(dir string, o knowledgebase.Options) (*knowledgebase.Store, error) {
	embedder, err := s.Embedder()
	if err != nil {
		return nil, err
	}
	o.Embedder, o.Redact = embedder, s.Home.CardRedaction(s.Secrets(nil), new(redact.Learned))
	o.SharedReviews = filepath.Join(s.Home.Shared, memory.ReviewsPrefix)
	o.Reviewed = func(lesson string) error { return memory.ShareReview(s.Home, lesson) }
	global := s.Home.KnowledgeBase()
	dir = cmp.Or(dir, global)
	abs, err := filepath.Abs(dir)
	if err == nil && strings.HasSuffix(filepath.ToSlash(abs), "/"+knowledgebase.ProjectDir) {
		return knowledgebase.Open(dir, o.ForProject(global))
	}
	return knowledgebase.Open(dir, &o)
}

// Facts opens what the tasks of a directory's repository showed of it.
func (s *Service) Facts(dir string) (*facts.Repo, error) { return memory.OpenFacts(s.Home, dir) }

// ProjectCards returns the cards' folder of the project that contains dir: in dir or the
// nearest parent that has one. It is empty if there is none.
func ProjectCards(dir string) string {
	for {
		own := filepath.Join(dir, filepath.FromSlash(knowledgebase.ProjectDir))
		if info, err := os.Stat(own); err == nil && info.IsDir() {
			return own
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// Recall searches the user's cards and those of the project in dir for what a task may be shown.
// Both dir and task may be empty.
func (s *Service) Recall(ctx context.Context, dir, task string, q knowledgebase.Query) ([]recalled.Hit, error) {
	var layers knowledgebase.Layers
	defer func() {
		for _, l := range layers {
			l.Close()
		}
	}()
	own := filepath.Join(dir, filepath.FromSlash(knowledgebase.ProjectDir))
	for _, path := range []string{own, s.Home.KnowledgeBase()} {
		if info, err := os.Stat(path); err != nil || !info.IsDir() || path == own && dir == "" {
			continue
		}
		store, err := s.Cards(path, knowledgebase.Options{})
		if err != nil {
			return nil, err
		}
		layers = append(layers, store)
	}
	if task != "" {
		e, err := inspect.Experienced(s.Home, task)
		if err != nil {
			return nil, err
		}
		q.Own = e.Wrote
	}
	q.Trust = func(c *card.Card) recalled.Trust {
		tr := memory.TrustOf(s.Home, c, layers[len(layers)-1].Counts(c.ID)) // the project's counters are the user's
		tr.Withheld = (tr.Withheld || s.Home.ReviewedOnly && tr.Rung != recalled.ReviewedRung) &&
			!slices.Contains(q.Own, c.Hash())
		return tr
	}
	return layers.Search(ctx, q)
}
