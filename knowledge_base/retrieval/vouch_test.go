package retrieval

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
)

// oracle is an embedder that knows which card answers "asks N", in no words of the
// card's, and for which every text is base alike.
type oracle struct{ base float64 }

func (o oracle) Fingerprint() string { return "oracle" }

func (o oracle) vector(text string) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	rng := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, 128)
	for i := range v {
		v[i] = float32(rng.NormFloat64() + o.base)
	}
	return v
}

func (o oracle) EmbedCards(_ context.Context, texts []string) (out [][]float32, err error) {
	for _, t := range texts {
		out = append(out, o.vector(strings.Fields(t)[0]))
	}
	return out, nil
}

func (o oracle) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v := o.vector(strings.Replace(text, "asks ", "card", 1))
	for i, f := range o.vector("noise of " + text) {
		v[i] += 0.7 * f
	}
	return v, nil
}

// The cosine of the user's embedder lets a card through that shares no word with
// the question, wherever its cosines lie, and no other.
func TestCosineLetsACardThrough(t *testing.T) {
	for _, base := range []float64{0, 1, 3} {
		const cards = 200
		texts := make(map[string]string)
		for i := range cards {
			texts[fmt.Sprintf("card%d", i)] = fmt.Sprintf("card%d tells of thing%d", i, i*7919)
		}
		x := filled(t, &Options{Embedder: oracle{base}}, texts)
		if err := x.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		right, wrong := 0, 0
		for i := range cards {
			found, vecErr, err := x.Search(t.Context(), Query{Text: fmt.Sprintf("asks %d", i)})
			if err != nil || vecErr != nil {
				t.Fatal(err, vecErr)
			}
			if len(found) > 0 && found[0].ID == fmt.Sprintf("card%d", i) {
				right++
			}
			if found, _, _ := x.Search(t.Context(), Query{Text: fmt.Sprintf("weather on day %d", i)}); len(found) > 0 {
				wrong++
			}
		}
		if right < cards*95/100 || wrong > cards*10/100 {
			t.Errorf("base %g: %d of %d found, %d shown for nothing", base, right, cards, wrong)
		}
	}
}
