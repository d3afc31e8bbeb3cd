// Package tokens counts text in a tokenizer's own tokens, offline: the
// vocabularies are part of the program and nothing is ever downloaded.
//
// Counting has the semantics of tiktoken's encode_ordinary: text that looks
// like a special token (<|endoftext|>) is ordinary text.
package tokens

import (
	"fmt"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	tiktokenloader "github.com/pkoukk/tiktoken-go-loader"
)

const (
	// RunLimitRunes is how long a run of one character class may grow before
	// it is cut and counted in parts. Byte pair encoding is quadratic in the
	// length of such a run (100,000 times the same letter takes seconds), and
	// no word of any language is as long. A cut costs at most a few tokens.
	RunLimitRunes = 512

	// chunkBytes is about how much text the tokenizer is given at once. It
	// holds several copies of what it is given; chunks bound that memory.
	chunkBytes = 64 << 10
)

// Counter counts tokens of one encoding. It is safe for concurrent use.
type Counter struct {
	name string
	enc  *tiktoken.Tiktoken
}

// Encodings lists the encodings ForEncoding knows, sorted.
func Encodings() []string {
	return []string{"cl100k_base", "o200k_base", "p50k_base", "r50k_base"}
}

// Estimate is an encoding without a vocabulary: four bytes are taken to be a token. It
// is for processes that end before a vocabulary would be loaded.
const Estimate = "estimate"

const estimatedBytes = 4

// IsEncoding reports whether name is one of Encodings. It loads nothing.
func IsEncoding(name string) bool { return slices.Contains(Encodings(), name) }

// ForEncoding returns the counter of an encoding. The first
// call for an encoding reads its vocabulary, which takes a few hundred milliseconds.
func ForEncoding(name string) (*Counter, error) {
	var c *Counter
	var err error
	switch name {
	case Estimate:
		return &Counter{name: name}, nil
	case "cl100k_base":
		c, err = cl100k()
	case "o200k_base":
		c, err = o200k()
	case "p50k_base":
		c, err = p50k()
	case "r50k_base":
		c, err = r50k()
	default:
		return nil, fmt.Errorf("count tokens: unknown encoding %q; known: %v", name, Encodings())
	}
	if err != nil {
		return nil, fmt.Errorf("count tokens: load %s: %w", name, err)
	}
	return c, nil
}

var (
	offline = sync.OnceFunc(func() { tiktoken.SetBpeLoader(tiktokenloader.NewOfflineLoader()) })
	cl100k  = load("cl100k_base")
	o200k   = load("o200k_base")
	p50k    = load("p50k_base")
	r50k    = load("r50k_base")
)

func load(name string) func() (*Counter, error) {
	return sync.OnceValues(func() (*Counter, error) {
		offline()
		enc, err := tiktoken.GetEncoding(name)
		if err != nil {
			return nil, err
		}
		return &Counter{name: name, enc: enc}, nil
	})
}

// Encoding is the counter's encoding name.
func (c *Counter) Encoding() string { return c.name }

// Count returns the number of tokens of text. Its time is linear in the length of any
// text. Bytes that are not UTF-8 count as the replacement
// character.
func (c *Counter) Count(text string) int {
	if c.enc == nil {
		return (len(text) + estimatedBytes - 1) / estimatedBytes
	}
	n := 0
	for text != "" {
		cut := nextCut(text)
		n += len(c.enc.EncodeOrdinary(text[:cut]))
		text = text[cut:]
	}
	return n
}

// nextCut returns how many bytes of text, more than none, to hand to the
// tokenizer at once. It cuts a run of one class at RunLimitRunes, and a text
// longer than chunkBytes after a line end that no other space precedes and a
// letter or digit follows: there, every encoding ends a token anyway.
//
// The classes overlap because the encodings differ in what they let grow: a
// mark belongs to the word in o200k_base and to the punctuation elsewhere,
// and o200k_base lets slashes and line ends alternate without bound.
func nextCut(text string) int {
	const letters, others, spaces, digits, lineEnds, classes = 0, 1, 2, 3, 4, 5
	var run [classes]int
	var last, before rune
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		letter, mark, digit, space := unicode.IsLetter(r), unicode.IsMark(r), unicode.IsNumber(r), unicode.IsSpace(r)
		if i >= chunkBytes && last == '\n' && !unicode.IsSpace(before) && (letter || digit) {
			return i
		}
		in := [classes]bool{
			letters:  letter || mark,
			others:   !letter && !digit && !space,
			spaces:   space,
			digits:   digit,
			lineEnds: r == '\r' || r == '\n' || r == '/',
		}
		for class, is := range in {
			if !is {
				run[class] = 0
				continue
			}
			if run[class]++; run[class] > RunLimitRunes {
				return i
			}
		}
		before, last = last, r
		i += size
	}
	return len(text)
}
