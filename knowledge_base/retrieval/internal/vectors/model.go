package vectors

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

const (
	modelDims     = 256
	directionOnes = 8

	// Of fewer cards there is nothing to learn. Of more than maxTraining the oldest are learned:
	// words that only later cards have are left to the other legs.
	minTraining = 64
	maxTraining = 8192
)

// model is the built-in embedder, random indexing (Kanerva and others, 2000; Sahlgren, 2005):
// each word has a fixed random direction, a text the sum of those of its words, and a word's
// meaning is the sum of the texts that use it, so that words which share company are alike,
// even if they are never in one text. It is immutable.
type model struct {
	words map[string]*meaning
}

// meaning is a word's vector and its weight. A word of one text relates it to nothing and has none.
type meaning struct {
	texts     int
	weight    float64 // grows with the word's rarity
	direction [directionOnes]uint16
	vector    []float32
}

// train learns from docs, sorted by age; the same docs give the same model. It returns nil for
// fewer than minTraining.
func train(ctx context.Context, docs []Document) (*model, error) {
	if len(docs) < minTraining {
		return nil, nil
	}
	docs = docs[:min(len(docs), maxTraining)]
	m := &model{make(map[string]*meaning)}
	used := make([][]*meaning, len(docs))
	for i, d := range docs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		words, _ := lexical.Distinct(func(emit func(string)) { lexical.Words(d.Text(), emit) })
		for _, word := range words {
			w := m.words[word]
			if w == nil {
				w = new(meaning)
				m.words[strings.Clone(word)] = w
			}
			w.texts++
			used[i] = append(used[i], w)
		}
	}
	for word, w := range m.words {
		if w.texts == 1 {
			delete(m.words, word)
			continue
		}
		w.weight = math.Log(float64(len(docs)+1) / float64(w.texts))
		w.direction = direction(word)
		w.vector = make([]float32, modelDims)
	}
	mean := make([]float32, modelDims) // of the texts: what all share tells nothing apart
	text := make([]float32, modelDims)
	for _, words := range used {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		words = slices.DeleteFunc(words, func(w *meaning) bool { return w.texts == 1 })
		clear(text)
		for _, w := range words {
			for k, at := range w.direction {
				text[at] += float32(w.weight) * float32(1-k%2*2)
			}
		}
		normalize(text)
		addScaled(mean, 1/float32(len(docs)), text)
		for _, w := range words {
			addScaled(w.vector, 1, text)
		}
	}
	for _, w := range m.words {
		addScaled(w.vector, -float32(w.texts), mean)
		normalize(w.vector)
	}
	return m, nil
}

// direction returns the entries of a word's fixed direction that are not zero: 1 and -1 in turn.
func direction(word string) (at [directionOnes]uint16) {
	h := fnv.New64a()
	h.Write([]byte(word))
	rng := rand.New(rand.NewPCG(h.Sum64(), 0))
	for k := range at {
		at[k] = uint16(rng.IntN(modelDims))
	}
	return at
}

// embed returns a text's vector, zero where the model knows none of its words.
func (m *model) embed(text string) []float32 {
	out := make([]float32, modelDims)
	words, counts := lexical.Distinct(func(emit func(string)) { lexical.Words(text, emit) })
	for i, word := range words {
		if w := m.words[word]; w != nil {
			addScaled(out, float32((1+math.Log(counts[i]))*w.weight), w.vector)
		}
	}
	normalize(out)
	return out
}

func addScaled(sum []float32, f float32, v []float32) {
	for k := range v {
		sum[k] += f * v[k]
	}
}

func normalize(v []float32) {
	n := float32(norm(v))
	for i := range v {
		if n > 0 {
			v[i] /= n
		}
	}
}

func norm(v []float32) float64 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	return math.Sqrt(sum)
}

func dot(x, y []float32) (sum float64) {
	for i, f := range x {
		sum += float64(f) * float64(y[i])
	}
	return sum
}
