package knowledgebase

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/retrieval"
)

// ProjectDir is where a project's own cards stand, beneath its directory.
const ProjectDir = ".anamnesis/knowledge_base"

// reviewsFile lists, in the global folder, the lessons of projects' cards that
// were reviewed on this machine.
const reviewsFile = "project_reviews.jsonl"

// nearer is what a project's own cards gain over global ones: enough to
// settle a tie.
const nearer = 1.05

// ForProject gives the options for a project's own cards. They lie in the
// project's repository, so they get none of their own. global is the folder of
// the global cards: counters and reviews of the project's cards are kept there,
// on this machine. A card that the project ships as reviewed is a draft until
// a person reviews it here; the review holds for what the card says, wherever
// it stands.
func (o Options) ForProject(global string) *Options {
	o.NoHistory = true
	o.usage, o.reviews = filepath.Join(global, usageFile), filepath.Join(global, reviewsFile)
	return &o
}

// reviewed is one line of the list.
type reviewed struct {
	V     int       `json:"v"`
	Hash  string    `json:"hash"` // card.Card.Hash
	At    time.Time `json:"at"`
	Topic string    `json:"topic"`
}

// readReviews gives the hashes of the lessons reviewed here. A line that a
// crash tore is no review.
func readReviews(path string) (map[string]bool, error) {
	out := make(map[string]bool)
	if path == "" {
		return out, nil
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read reviews: %w", err)
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		var r reviewed
		if json.Unmarshal(sc.Bytes(), &r) == nil && r.V == 1 {
			out[r.Hash] = true
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read reviews %s: %w", path, err)
	}
	return out, nil
}

// noteReviews writes down what the change reviews, before its files: a note
// without its card harms nothing.
func (s *Store) noteReviews(todo []planned) (err error) {
	if s.opts.reviews == "" {
		return nil
	}
	var b bytes.Buffer
	for _, p := range todo {
		if p.card.State != card.Reviewed {
			continue
		}
		line, err := json.Marshal(reviewed{1, p.card.Hash(), s.opts.Now().UTC(), p.card.Topic})
		if err != nil {
			return err
		}
		b.WriteString("\n" + string(line) + "\n") // an empty line ends what was torn before
		s.trusted[p.card.Hash()] = true
	}
	if b.Len() == 0 {
		return nil
	}
	if err := makeDir(s.opts.fs, filepath.Dir(s.opts.reviews)); err != nil {
		return err
	}
	f, err := os.OpenFile(s.opts.reviews, os.O_APPEND|os.O_WRONLY|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Sync(), f.Close())
}

// judge takes a shipped review for what it is here: a claim.
func (s *Store) judge(st *stored) *stored {
	if s.opts.reviews == "" || !st.claimed && st.State != card.Reviewed || s.trusted[st.lesson.String()] != st.claimed {
		return st
	}
	judged := *st
	judged.claimed = !st.claimed
	judged.State = card.Reviewed
	if judged.claimed {
		judged.State = card.Draft
	}
	return &judged
}

// Layers are several folders searched as one, the nearest first.
type Layers []*Store

// Search is [Store.Search] over all of the layers. Of cards with one id, or
// with one lesson, the nearest is found. Each layer's hits stay in their order;
// between layers their evidence decides, which is not normalised, and the
// nearest wins a tie.
func (l Layers) Search(ctx context.Context, q Query) ([]Hit, error) {
	if len(l) == 1 {
		return l[0].Search(ctx, q)
	}
	found := make([][]Hit, len(l))
	total := 0
	for i, s := range l {
		var err error
		if found[i], err = s.Search(ctx, q); err != nil {
			return nil, err
		}
		total += len(found[i])
	}
	most := cmp.Or(q.K, retrieval.DefaultK)
	out := make([]Hit, 0, min(most, total))
	seen := make(map[string]bool)
	for range total {
		i := best(found)
		h := found[i][0]
		found[i] = found[i][1:]
		if len(out) == most || seen[h.Card.ID] || seen[h.Card.Hash()] || l[:i].holds(h.Card.ID) {
			continue
		}
		seen[h.Card.ID], seen[h.Card.Hash()] = true, true
		out = append(out, h)
	}
	return out, nil
}

// best gives the layer whose first hit has the most evidence.
func best(found [][]Hit) int {
	at, most := -1, 0.0
	for i, hits := range found {
		if len(hits) == 0 {
			continue
		}
		weight := hits[0].Evidence.Strength
		if i < len(found)-1 {
			weight *= nearer
		}
		if at < 0 || weight > most {
			at, most = i, weight
		}
	}
	return at
}

// holds reports whether a layer has a card of that id, found or not: a card
// retired nearby is not to come back from afar.
func (l Layers) holds(id string) bool {
	return slices.ContainsFunc(l, func(s *Store) bool {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.cards[id] != nil
	})
}
