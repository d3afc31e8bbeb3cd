package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	// KeyBytes is the number of random bytes of a good key.
	KeyBytes = 32
	// MinKnownBytes is the shortest known value that is searched: shorter ones occur by chance.
	MinKnownBytes = 8
	// maxKnownBytes is the longest form of a known value that is searched.
	maxKnownBytes = 4 << 10
)

// Secret is a value known to be secret, with its kind: a few words of a-z, 0-9 and '-', such as
// openai-api-key.
type Secret struct {
	Kind, Value string
}

// Found is one secret that was replaced.
type Found struct {
	Marker string // its replacement
	Bytes  string // the replaced bytes
}

// Redactor finds secrets. It is safe for concurrent use, and immutable except for what it
// learns. A nil one finds nothing.
type Redactor struct {
	key     []byte
	rules   []rule
	known   []Secret
	learned *Learned // if nil, nothing is learned
	current atomic.Pointer[table]
}

// table is the words and forms of one search.
type table struct {
	words   *wordSet
	rules   int    // number of words that are keywords
	forms   []form // of the words after them
	learned int    // number of Learned's values in forms
}

// New returns a Redactor. The key keys its hashes: with one key, a secret has one marker. Known
// values shorter than MinKnownBytes are ignored.
func New(key []byte, known []Secret) *Redactor { return NewLearning(key, known, nil) }

// NewLearning returns a Redactor that adds values recognised by a pattern to learned, and finds
// all values in learned.
func NewLearning(key []byte, known []Secret, learned *Learned) *Redactor {
	return &Redactor{key: slices.Clone(key), rules: rules(), known: slices.Clone(known), learned: learned}
}

func (r *Redactor) table() *table {
	n := r.learned.len()
	if t := r.current.Load(); t != nil && t.learned == n {
		return t
	}
	known := r.known
	if n > 0 {
		learned := r.learned.Values(0)
		n, known = len(learned), append(slices.Clip(known), learned...)
	}
	t := &table{rules: len(r.rules), learned: n}
	var words []string
	for _, p := range r.rules {
		words = append(words, p.keyword)
	}
	seen := map[string]bool{}
	for _, s := range withLines(known) {
		if len(s.Value) < MinKnownBytes {
			continue
		}
		s.Kind = kindName(s.Kind)
		for _, f := range formsOf(s) {
			// Two values can have a form in common, such as a key and one of its lines.
			id := f.text + "\x00" + f.word
			if seen[id] || len(f.text) > maxKnownBytes {
				continue
			}
			seen[id] = true
			words = append(words, f.word)
			t.forms = append(t.forms, f)
		}
	}
	t.words = newWordSet(words)
	r.current.Store(t)
	return t
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] = lower(b[i])
	}
	return string(b)
}

// match is one secret in a text.
type match struct {
	start, end int
	from       int // the start of its context: its name or header
	kind       string
	// value is hashed: the bytes of the match or, for a known secret, the unescaped value.
	value string
	rank  int // among matches of the same bytes, the lowest decides the kind
	// byLine: over several lines, each line is a value of its own.
	byLine bool
	// open: more text may extend it, or make it a secret; its name begins at from.
	open bool
	// none: no keyword of the rule before this offset is part of a match. So a text of nothing but
	// keywords is not searched once for each.
	none int
}

// The ranks.
const (
	rankKnown = iota
	rankProvider
	rankHeader
	rankNamed
)

// Text replaces the secrets in a text and returns them in order. A text without secrets is
// returned unchanged. No marker replaces a line's end.
func (r *Redactor) Text(s string) (string, []Found) {
	ms, _ := r.find(s, false)
	if r.stale() { // what was learned may occur before it in another form
		ms, _ = r.find(s, false)
	}
	if len(ms) == 0 {
		return s, nil
	}
	var out strings.Builder
	out.Grow(len(s))
	found := make([]Found, 0, len(ms))
	at := 0
	for _, m := range ms {
		f := Found{Marker: r.marker(m), Bytes: s[m.start:m.end]}
		out.WriteString(s[at:m.start])
		out.WriteString(f.Marker)
		found = append(found, f)
		at = m.end
	}
	out.WriteString(s[at:])
	return out.String(), found
}

// Markers is Text, but returns only the markers, each once.
func (r *Redactor) Markers(s string) (redacted string, markers []string) {
	redacted, found := r.Text(s)
	for _, f := range found {
		if !slices.Contains(markers, f.Marker) {
			markers = append(markers, f.Marker)
		}
	}
	return redacted, markers
}

// stale reports whether something was learned since the last search, if there was one.
func (r *Redactor) stale() bool {
	if r == nil {
		return false
	}
	t := r.current.Load()
	return t != nil && t.learned != r.learned.len()
}

// scanEnd is the state at the end of a search, for a caller that continues with more text. An offset is the text's
// length for none.
type scanEnd struct {
	partial int     // length of the longest suffix that begins a word
	keyFrom int     // where the unfinished private key begins
	open    int     // offset of the first name whose value has not ended
	keys    []match // private keys, each with its first line
}

// find returns the secrets of a text: sorted, not overlapping, not empty. inKey: the text
// begins inside a private key.
func (r *Redactor) find(s string, inKey bool) ([]match, scanEnd) {
	if r == nil {
		return nil, scanEnd{keyFrom: len(s), open: len(s)}
	}
	ms, end := r.findIn(s, inKey)
	if hides(s) { // once more, as a screen shows it
		shown, pos := shownText(s)
		more, last := r.findIn(shown, inKey)
		var visible []match
		for _, m := range more {
			m.start, m.end, m.from = pos[m.start], pos[m.end-1]+1, pos[m.from]
			visible = appendLines(visible, s, m)
		}
		ms = append(visible, ms...) // of the same bytes, the value that is seen counts
		end.partial = max(end.partial, len(s)-pos[len(shown)-last.partial])
		end.open = min(end.open, pos[last.open])
		end.keyFrom = min(end.keyFrom, pos[last.keyFrom])
		for _, k := range last.keys {
			end.keys = append(end.keys, match{from: pos[k.from], end: pos[k.end]})
		}
	}
	ms = merge(s, ms)
	r.learned.learn(ms)
	return ms, end
}

// findIn is find for a text as it stands. What it returns is neither sorted nor merged.
func (r *Redactor) findIn(s string, inKey bool) ([]match, scanEnd) {
	var ms []match
	end := scanEnd{keyFrom: len(s), open: len(s)}
	after := 0 // private keys up to here are done
	key := func(from, body int, within bool) {
		var more bool
		if ms, after, more = keyLines(ms, s, body, within); more {
			end.keyFrom = from
		}
		end.keys = append(end.keys, match{from: from, end: after})
	}
	if inKey {
		key(0, 0, true)
	}
	t := r.table()
	none := map[int]int{} // by rule; see match
	skip := func(word, to int) {
		if to > 0 {
			none[word] = to
		}
	}
	end.partial = t.words.each(s, func(word, to int) {
		if word >= len(r.rules) {
			ms = t.forms[word-len(r.rules)].match(ms, s, to)
			return
		}
		p := &r.rules[word]
		from := to - len(p.keyword)
		if from < none[word] {
			return
		}
		if p.pem {
			if to <= after {
				return
			}
			if body, ok := keyBegins(s, to); ok {
				key(from, body, false)
			}
			return
		}
		if p.pairs != nil {
			pairs, last, open := p.pairs(s, from, to)
			skip(word, last)
			for _, m := range pairs {
				m.from, m.value = from, s[m.start:m.end]
				ms = append(ms, m)
			}
			if open {
				end.open = min(end.open, from)
			}
			return
		}
		m, ok := p.match(s, from, to)
		skip(word, m.none)
		if ok {
			m.value = s[m.start:m.end]
			ms = append(ms, m)
		}
		if m.open {
			end.open = min(end.open, m.from)
		}
	})
	ms, partial := t.escaped(ms, s)
	end.partial = max(end.partial, partial)
	return ms, end
}

func (r *Redactor) findKnown(s string) []match {
	if r == nil {
		return nil
	}
	t := r.table()
	ms, _ := t.knownIn(s)
	ms, _ = t.escaped(ms, s)
	return merge(s, ms)
}

// merge sorts matches and joins overlapping ones, whose bytes are all replaced.
func merge(s string, ms []match) []match {
	if len(ms) < 2 {
		return ms
	}
	slices.SortStableFunc(ms, func(a, b match) int {
		switch {
		case a.start != b.start:
			return a.start - b.start
		case a.end != b.end:
			return b.end - a.end
		}
		return a.rank - b.rank
	})
	out := ms[:1]
	for _, m := range ms[1:] {
		last := &out[len(out)-1]
		if m.start >= last.end {
			out = append(out, m)
			continue
		}
		last.from = min(last.from, m.from)
		if m.end > last.end {
			last.end = m.end
			last.value = s[last.start:last.end]
		}
	}
	return out
}

func (r *Redactor) marker(m match) string {
	h := hmac.New(sha256.New, r.key)
	h.Write([]byte(m.value))
	var sum [sha256.Size]byte
	return markerBegin + m.kind + ":" + hex.EncodeToString(h.Sum(sum[:0])[:markerHashBytes]) + markerEnd
}
