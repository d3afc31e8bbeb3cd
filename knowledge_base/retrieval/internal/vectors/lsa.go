package vectors

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"slices"
	"strings"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

const (
	lsaDims     = 256
	lsaVersion  = "lsa-2"
	lsaMaxTerms = 30_000 // the terms in most cards; rarer ones are left to the other legs
	lsaMinDF    = 2      // a term of one card relates it to nothing
	// With almost as many dimensions as cards nothing would be latent.
	lsaCardsPerDim = 4
)

// lsa is latent semantic analysis (Deerwester and others, 1990): texts as
// weighted word counts, projected on the strongest directions of the cards
// it was trained on. A text not seen in training is folded in. It is
// immutable.
type lsa struct {
	fingerprint string
	terms       map[string]int32
	idf         []float32
	basis       []float32 // terms × rank, row by row
	rank        int
	rotation    []float32 // rank × dims, row by row
	dims        int
}

// lsaFingerprint names the model that training on docs makes.
func lsaFingerprint(docs []Document) string {
	h := sha256.New()
	io.WriteString(h, lsaVersion)
	for _, d := range docs {
		h.Write(d.Hash[:])
	}
	return lsaVersion + "-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// trainLSA learns from docs; the same docs produce the same model.
func trainLSA(ctx context.Context, docs []Document) (*lsa, error) {
	m := &lsa{fingerprint: lsaFingerprint(docs)}
	m.chooseTerms(docs)
	a := &sparse{cols: len(m.idf)}
	for _, d := range docs {
		at, val := m.weigh(d.Text())
		a.addRow(at, val)
	}
	dims := min(lsaDims, a.rows/lsaCardsPerDim, a.cols)
	if dims == 0 {
		m.dims = 1 // nothing in common: every vector is zero
		return m, nil
	}
	var err error
	m.basis, m.rank, m.rotation, m.dims, err = truncatedSVD(ctx, a, dims)
	return m, err
}

// chooseTerms fixes the vocabulary: by document frequency, then alphabet.
func (m *lsa) chooseTerms(docs []Document) {
	df := make(map[string]int)
	for _, d := range docs {
		terms, _ := lexical.Distinct(func(emit func(string)) { lexical.Words(d.Text(), emit) })
		for _, t := range terms {
			df[t]++
		}
	}
	type freq struct {
		term string
		df   int
	}
	var list []freq
	for t, n := range df {
		if n >= lsaMinDF {
			list = append(list, freq{t, n})
		}
	}
	slices.SortFunc(list, func(a, b freq) int { return cmp.Or(cmp.Compare(b.df, a.df), cmp.Compare(a.term, b.term)) })
	list = list[:min(len(list), lsaMaxTerms)]
	m.terms = make(map[string]int32, len(list))
	for i, f := range list {
		m.terms[strings.Clone(f.term)] = int32(i)
		m.idf = append(m.idf, float32(math.Log(float64(len(docs)+1)/float64(f.df))))
	}
}

// weigh returns a text's terms, ascending, and their weights: (1 + log tf) idf,
// to length 1.
func (m *lsa) weigh(text string) ([]int32, []float32) {
	counts := make(map[int32]float64)
	lexical.Words(text, func(w string) {
		if t, ok := m.terms[w]; ok {
			counts[t]++
		}
	})
	at := make([]int32, 0, len(counts))
	for t := range counts {
		at = append(at, t)
	}
	slices.Sort(at)
	val := make([]float32, len(at))
	for i, t := range at {
		val[i] = float32(1+math.Log(counts[t])) * m.idf[t]
	}
	normalize(val)
	return at, val
}

func normalize(v []float32) {
	n := norm(v)
	if n == 0 {
		return
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / n)
	}
}

// embed returns a text's vector, zero where the model knows none of its words.
func (m *lsa) embed(text string) []float32 {
	out := make([]float32, m.dims)
	if m.rank == 0 {
		return out
	}
	at, val := m.weigh(text)
	mid := make([]float32, m.rank)
	for i, t := range at {
		axpy(val[i], m.basis[int(t)*m.rank:(int(t)+1)*m.rank], mid)
	}
	for k, f := range mid {
		axpy(f, m.rotation[k*m.dims:(k+1)*m.dims], out)
	}
	normalize(out)
	return out
}
