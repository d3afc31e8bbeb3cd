package tokens

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/dlclark/regexp2"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// splits are the patterns by which an encoding splits a text into pieces. No token
// extends over two pieces.
var splits = map[string]string{
	"r50k_base":   `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"p50k_base":   `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	"cl100k_base": `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"o200k_base": `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
}

// A vocabulary is what counting needs of an encoding. Its tokens lie in one slice, found
// by a table of indices: maps of 200,000 strings, which the tokenizer makes, take most of
// the time in which a short command runs.
type vocabulary struct {
	split *regexp2.Regexp
	text  []byte   // all tokens, by rank
	start []uint32 // where each begins in text, and where the last ends
	slots []uint32 // 1 + a token's index, from its hash on; 0 is empty
	seed  maphash.Seed
}

// noRank is the rank of what is no token.
const noRank = math.MaxInt

func loadVocabulary(name string) (*vocabulary, error) {
	file, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		return nil, err
	}
	n := bytes.Count(file, []byte("\n")) + 1
	v := &vocabulary{
		split: regexp2.MustCompile(splits[name], regexp2.None),
		text:  make([]byte, 0, len(file)/2),
		start: make([]uint32, 1, n+1),
		slots: make([]uint32, 1<<bits.Len(uint(2*n-1))),
		seed:  maphash.MakeSeed(),
	}
	last := -1
	for line := range bytes.Lines(file) { // a token in base64, and its rank
		token, digits, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		rank, err := strconv.Atoi(string(digits))
		if err == nil && rank <= last {
			err = fmt.Errorf("rank %d follows rank %d", rank, last)
		}
		if err == nil {
			v.text, err = base64.StdEncoding.AppendDecode(v.text, token)
		}
		if err != nil {
			return nil, err
		}
		last = rank
		at := v.slot(v.text[v.start[len(v.start)-1]:])
		v.start = append(v.start, uint32(len(v.text)))
		v.slots[at] = uint32(len(v.start) - 1)
	}
	return v, nil
}

// slot returns where in slots a token is, or the empty slot where it would be.
func (v *vocabulary) slot(token []byte) int {
	mask := len(v.slots) - 1
	at := int(maphash.Bytes(v.seed, token)) & mask
	for {
		i := v.slots[at]
		if i == 0 || bytes.Equal(v.text[v.start[i-1]:v.start[i]], token) {
			return at
		}
		at = (at + 1) & mask
	}
}

// rank orders the tokens as their encoding does.
func (v *vocabulary) rank(token []byte) int {
	if i := v.slots[v.slot(token)]; i != 0 {
		return int(i)
	}
	return noRank
}

func (v *vocabulary) count(text string) int {
	n := 0
	m, err := v.split.FindStringMatch(text)
	for m != nil && err == nil { // it errs only at a timeout, and has none
		n += v.merge([]byte(m.String()))
		m, err = v.split.FindNextMatch(m)
	}
	return n
}

// merge returns how many tokens a piece has: those left when no two neighbours form a
// token, and those that formed the one of the lowest rank were merged first.
func (v *vocabulary) merge(piece []byte) int {
	if v.rank(piece) != noRank {
		return 1
	}
	type part struct{ from, rank int } // the rank of what it forms with the next part
	parts := make([]part, len(piece)+1)
	rank := func(i int) int {
		if i+2 >= len(parts) {
			return noRank
		}
		return v.rank(piece[parts[i].from:parts[i+2].from])
	}
	for i := range parts {
		parts[i].from = i
	}
	for i := range parts {
		parts[i].rank = rank(i)
	}
	for {
		least := 0
		for i, p := range parts {
			if p.rank < parts[least].rank {
				least = i
			}
		}
		if parts[least].rank == noRank {
			return len(parts) - 1
		}
		parts = slices.Delete(parts, least+1, least+2)
		parts[least].rank = rank(least)
		if least > 0 {
			parts[least-1].rank = rank(least - 1)
		}
	}
}
