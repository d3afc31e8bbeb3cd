package retrieval

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
	"anamnesis/knowledge_base/retrieval/internal/vectors"
)

type (
	// Document is one text to be found: its ID, the Hash of the text, and Text, a function that always
	// returns the same text.
	Document = vectors.Document
	// Embedder makes vectors of texts, all of one size, and is safe for concurrent use. Fingerprint names
	// the model and everything else that the vectors depend on; EmbedCards(ctx, texts) returns one vector
	// a text, in order, a zero vector where nothing is known of it; EmbedQuery(ctx, text) returns the
	// vector to compare the cards' vectors with.
	Embedder = vectors.Embedder
)

// ErrBuilding: the vectors are not ready yet.
var ErrBuilding = vectors.ErrBuilding

// DefaultVectorWait is how long [Index.Refresh] waits for an embedder.
const DefaultVectorWait = vectors.DefaultVectorWait

// Options are the settings of an index; the zero value is an index without vectors.
type Options struct {
	// Embedder makes the vectors; nil: there are none.
	Embedder Embedder
	// Dir is the folder in which vectors are stored; "" stores none. Its files can be
	// deleted at any time.
	Dir string
	// WriteFile replaces a file, or leaves the former one as it is. It must be
	// given with Dir.
	WriteFile func(path string, data []byte) error
	// VectorWait is how long [Index.Refresh] waits for Embedder; 0 is
	// [DefaultVectorWait].
	VectorWait time.Duration
	Now        func() time.Time // nil: time.Now
}

// Index finds documents by two legs, or by three with an embedder. Searching is safe for concurrent use
// while the index is not changed; after changes [Index.Refresh] brings the
// vectors up to date.
type Index struct {
	slots map[string]int
	docs  []Document // by slot, sorted by id
	words *lexical.Index[string]
	grams *lexical.Index[uint64]
	vecs  *vectors.Leg // nil: no embedder
	cache *vectors.Cache
	stale bool

	lenient leniency
}

// New returns an empty index.
func New(o *Options) *Index {
	o = cmp.Or(o, &Options{})
	x := &Index{
		words: lexical.NewWords(),
		grams: lexical.NewGrams(),
		cache: &vectors.Cache{Dir: o.Dir, WriteFile: o.WriteFile},
		stale: true,

		lenient: leniency{report: 1.4, companion: 0.3, scoreShare: 0.5},
	}
	if o.Embedder != nil {
		now := o.Now
		if now == nil {
			now = time.Now
		}
		x.vecs = vectors.NewLeg(o.Embedder, x.cache, o.VectorWait, now)
	}
	return x
}

// Stale reports whether documents changed since the last [Index.Refresh].
func (x *Index) Stale() bool { return x.stale }

// ForgetVectors removes the vectors stored on disk.
func (x *Index) ForgetVectors() error { return x.cache.Clear() }

// Fill replaces the documents. Their ids must differ; their order does not matter. After an error,
// which is ctx's, the index must be filled again.
func (x *Index) Fill(ctx context.Context, docs []Document) error {
	x.docs = slices.SortedFunc(slices.Values(docs), func(a, b Document) int { return cmp.Compare(a.ID, b.ID) })
	x.slots = make(map[string]int, len(docs))
	x.words, x.grams, x.stale = lexical.NewWords(), lexical.NewGrams(), true
	for slot := range x.docs {
		x.slots[x.docs[slot].ID] = slot
	}
	// The legs share only the texts, so both are filled at once: the first search waits for them.
	var wg sync.WaitGroup
	each := func(add func(slot int, text string)) {
		wg.Go(func() {
			for slot := 0; slot < len(x.docs) && ctx.Err() == nil; slot++ {
				add(slot, x.docs[slot].Text())
			}
		})
	}
	each(func(slot int, text string) {
		x.words.Add(slot, func(emit func(string)) { lexical.Words(text, emit) })
	})
	each(func(slot int, text string) {
		x.grams.Add(slot, func(emit func(uint64)) { lexical.Grams(text, emit) })
	})
	wg.Wait()
	return ctx.Err()
}

// Refresh brings the vectors up to date. On an error the other legs answer,
// with the vectors there were where an external embedder made them, and the
// index stays stale. [ErrBuilding] says that it takes longer than VectorWait:
// a later Refresh continues with what was made.
func (x *Index) Refresh(ctx context.Context) error { return x.refresh(ctx, x.vecs.Refresh) }

// Await is [Index.Refresh] that asks an embedder even if it failed just now,
// and waits for it as long as it takes.
func (x *Index) Await(ctx context.Context) error { return x.refresh(ctx, x.vecs.Await) }

func (x *Index) refresh(ctx context.Context, embed func(context.Context, []Document) error) (err error) {
	if x.stale && x.vecs != nil {
		err = embed(ctx, x.docs)
	}
	x.stale = err != nil
	return err
}
