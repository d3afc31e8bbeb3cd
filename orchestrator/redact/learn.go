package redact

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"sync"
)

// MaxLearned bounds the learned values, each of which is searched in several forms. Further
// ones are redacted only where their pattern matches.
const MaxLearned = 256

const (
	// A learned value has at least minLearnedBytes, or minMixedBytes with lower case, upper
	// case and digits.
	minLearnedBytes = 16
	minMixedBytes   = 12
	// minEntropy is the least entropy of a learned value, in bits a byte (Shannon, over the
	// value's own bytes): the threshold of gitleaks for most providers' keys and of
	// detect-secrets for hex.
	minEntropy = 3.0
)

// Learned are values that a pattern recognised. From then on they are known values and are
// found in every text in any form. Several Redactors may share one. It is safe for concurrent
// use.
type Learned struct {
	mu     sync.Mutex
	values []Secret
}

// Add adds new values, at most up to [MaxLearned].
func (l *Learned) Add(values ...Secret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range values {
		if slices.ContainsFunc(l.values, func(k Secret) bool { return k.Value == s.Value }) {
			continue
		}
		if len(l.values) >= MaxLearned {
			return
		}
		l.values = append(l.values, s)
	}
}

// Values returns the values from the nth, in the order they were added.
func (l *Learned) Values(n int) []Secret {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.values[min(n, len(l.values)):])
}

func (l *Learned) len() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.values)
}

// learn adds the values that patterns found, unless they are ordinary words.
func (l *Learned) learn(ms []match) {
	if l == nil {
		return
	}
	for _, m := range ms {
		if m.rank == rankKnown {
			continue
		}
		values := []string{m.value}
		if m.kind == "basic-auth" {
			plain, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(m.value, "="))
			_, password, _ := strings.Cut(string(plain), ":")
			values = append(values, password)
		}
		for _, v := range values {
			if learnable(v) && len(v) <= maxKnownBytes/2 {
				l.Add(Secret{Kind: m.kind, Value: v})
			}
		}
	}
}

// learnable reports whether a value is long and random enough not to be an ordinary word, name
// or path.
func learnable(v string) bool {
	if len(v) < minMixedBytes || !secretValue(v) || !random(v) || entropy(v) < minEntropy {
		return false
	}
	return len(v) >= minLearnedBytes || strings.ContainsAny(v, lowerLetters) && lowerASCII(v) != v
}

// entropy returns a text's entropy in bits a byte.
func entropy(s string) float64 {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
