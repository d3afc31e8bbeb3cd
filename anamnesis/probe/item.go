package probe

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"

	"anamnesis/anamnesis/consult"
)

//go:embed prompt/system.md
var systemPrompt string

//go:embed prompt/question.md
var questionPrompt string

//go:embed prompt/needles.txt
var needlesFile string

//go:embed prompt/facts.txt
var factsFile string

// Family is one kind of question.
type Family string

// The families. What is asked is in prompt/needles.txt.
const (
	Single   Family = "single"    // one sentence, found by its own words
	MultiKey Family = "multi-key" // one of eight sentences that differ in their key
	Latent   Family = "latent"    // a sentence that shares no word with the question
	Tracking Family = "tracking"  // a value handed on four times, among other such chains
	Repeated Family = "repeated"  // one of four answers to the same request, by its place
)

// Families lists all families.
func Families() []Family { return []Family{Single, MultiKey, Latent, Tracking, Repeated} }

// Trial names one item: with a seed it says all there is to it.
type Trial struct {
	Family Family `json:"family"`
	Length int    `json:"length"` // tokens of the whole prompt, at most
	Index  int    `json:"index"`
}

// Item is one question with its text.
type Item struct {
	Trial
	System string
	Text   string
	Tokens int      // of System and Text, as counted
	Answer string   // the right one
	Decoys []string // answers to other questions the text could be asked
}

// MinLength is the shortest length an item can have, in tokens: needles and
// question with hardly any filler.
const MinLength = 700

// Build makes an item. Equal arguments produce equal items. Count counts tokens;
// the item is as long as fits Trial.Length. A length below MinLength is taken
// for it.
func Build(seed uint64, t Trial, count func(string) int) Item {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d/%d", seed, t.Family, t.Length, t.Index))
	rng := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])))
	q := compose(rng, t.Family)
	frame := func(text string) string {
		return consult.Fill(questionPrompt, "text", text, "question", q.question, "kind", template(string(t.Family)+".kind"))
	}
	system := strings.TrimSpace(systemPrompt)
	used := count(system) + count(frame(""))
	for _, n := range q.needles {
		used += count(" " + n)
	}
	text := [][]string{nil}
	for length, left := max(t.Length, MinLength), sentences(rng); ; left-- {
		next := sentence(rng)
		if used += count(" " + next); used > length {
			break
		}
		if left == 0 {
			text, left = append(text, nil), sentences(rng)
		}
		last := len(text) - 1
		text[last] = append(text[last], next)
	}
	hide(rng, text, q.needles)
	lines := make([]string, len(text))
	for i, p := range text {
		lines[i] = strings.Join(p, " ")
	}
	it := Item{Trial: t, System: system, Text: frame(strings.Join(lines, "\n\n")), Answer: q.answer, Decoys: q.decoys}
	it.Tokens = count(it.System) + count(it.Text)
	return it
}

// hide puts the needles into the text at places drawn evenly over all of it,
// in their order, each behind a sentence of filler.
func hide(rng *rand.Rand, text [][]string, needles []string) {
	places := make([]int, len(needles))
	for i := range places {
		places[i] = rng.IntN(len(text))
	}
	slices.Sort(places)
	for i := len(needles) - 1; i >= 0; { // backwards, so that the order within a paragraph stays
		at := places[i]
		first := i
		for first > 0 && places[first-1] == at {
			first--
		}
		cut := 1 + rng.IntN(max(len(text[at]), 1))
		text[at] = slices.Insert(text[at], cut, needles[first:i+1]...)
		i = first - 1
	}
}

// question is what an item hides and asks.
type question struct {
	needles  []string // in the order of the text
	question string
	answer   string
	decoys   []string
}

func compose(rng *rand.Rand, f Family) question {
	switch f {
	case Single:
		return lockers(rng, f, 1)
	case MultiKey:
		return lockers(rng, f, 8)
	case Latent:
		return latent(rng)
	case Tracking:
		return tracking(rng)
	case Repeated:
		return repeated(rng)
	}
	panic(fmt.Sprintf("probe: %q is no family", f))
}

// lockers hides n things with numbers and asks for one.
func lockers(rng *rand.Rand, f Family, n int) question {
	adjectives, nouns, values := pickSome(rng, "adjectives", n), pickSome(rng, "nouns", n), numbers(rng, n)
	var q question
	asked := rng.IntN(n)
	for i := range n {
		key := adjectives[i] + " " + nouns[i]
		q.needles = append(q.needles, template(string(f)+".needle", "key", key, "value", values[i]))
		if i == asked {
			q.question = template(string(f)+".question", "key", key)
		}
	}
	q.answer, q.decoys = split(values, asked)
	return q
}

// latent hides what is said of four people and asks what follows for one.
func latent(rng *rand.Rand) question {
	const people = 4
	names := pickSome(rng, "names", people)
	facts := Facts()
	var q question
	asked := rng.IntN(people)
	for i, at := range rng.Perm(len(facts))[:people] {
		q.needles = append(q.needles, consult.Fill(facts[at].Clue, "name", names[i]))
		if i == asked {
			q.question = template("latent.question", "question", facts[at].Question)
		}
	}
	q.answer, q.decoys = split(names, asked)
	return q
}

// tracking hides three chains of registers, each handing a number on four
// times, and asks what the end of one holds.
func tracking(rng *rand.Rand) question {
	const chains, hops = 3, 4
	names, values := registers(rng, chains*(hops+1)), numbers(rng, chains)
	var q question
	for hop := range hops + 1 {
		for _, c := range rng.Perm(chains) { // the chains mingle, each in its order
			to := names[c*(hops+1)+hop]
			if hop == 0 {
				q.needles = append(q.needles, template("tracking.first", "to", to, "value", values[c]))
				continue
			}
			q.needles = append(q.needles, template("tracking.needle", "to", to, "from", names[c*(hops+1)+hop-1]))
		}
	}
	asked := rng.IntN(chains)
	q.question = template("tracking.question", "to", names[asked*(hops+1)+hops])
	q.answer, q.decoys = split(values, asked)
	return q
}

// repeated hides four answers to one request, and two to another, and asks for
// one of the four by its place.
func repeated(rng *rand.Rand) question {
	const same, other = 4, 2
	topics, lines := pickSome(rng, "topics", 2), pickSome(rng, "lines", same+other)
	var q question
	var signs []string
	kinds := rng.Perm(same + other)
	adjectives := pickSome(rng, "adjectives", same+other)
	for i, kind := range kinds {
		topic, sign := topics[0], fmt.Sprintf("%s-%d", adjectives[i], 100+rng.IntN(900))
		if kind >= same {
			topic = topics[1]
			q.decoys = append(q.decoys, sign)
		} else {
			signs = append(signs, sign)
		}
		q.needles = append(q.needles, template("repeated.needle", "key", topic, "line", lines[i], "value", sign))
	}
	asked := rng.IntN(same)
	q.question = template("repeated.question", "key", topics[0], "ordinal", fmt.Sprint(asked+1))
	answer, rest := split(signs, asked)
	q.answer, q.decoys = answer, append(q.decoys, rest...)
	return q
}

// split takes one of some answers; the others are decoys.
func split(all []string, asked int) (answer string, others []string) {
	return all[asked], slices.Concat(all[:asked], all[asked+1:])
}

// numbers returns n different numbers of seven digits.
func numbers(rng *rand.Rand, n int) []string {
	var out []string
	for len(out) < n {
		if v := fmt.Sprint(1_000_000 + rng.IntN(9_000_000)); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// registers returns n different names of five letters.
func registers(rng *rand.Rand, n int) []string {
	const letters = "BCDFGHJKLMNPQRSTVWXZ"
	var out []string
	for len(out) < n {
		var b strings.Builder
		for range 5 {
			b.WriteByte(letters[rng.IntN(len(letters))])
		}
		if !slices.Contains(out, b.String()) {
			out = append(out, b.String())
		}
	}
	return out
}

// Fact is a clue about a user, with {{name}} in it, and the question it
// answers without sharing a word with it that matters.
type Fact struct{ Clue, Question string }

// Facts are the clues of the latent family.
func Facts() []Fact {
	var out []Fact
	for line := range strings.Lines(factsFile) {
		if clue, q, ok := strings.Cut(strings.TrimSpace(line), " | "); ok {
			out = append(out, Fact{clue, q})
		}
	}
	return out
}

var templates = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(needlesFile) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			out[name] = text
		}
	}
	return out
})

// template fills a line of needles.txt.
func template(name string, pairs ...string) string {
	text, ok := templates()[name]
	if !ok {
		panic("probe: needles.txt has no " + name)
	}
	return consult.Fill(text, pairs...)
}

var (
	answerMark = regexp.MustCompile(`(?i)answer\W{0,4}:`)
	separated  = regexp.MustCompile(`(\d)[,.\x{202f}\x{a0} ](\d{3})\b`)
)

// Right reports whether a reply contains the item's answer and no other answer that
// occurs in the text. Only the part after the last "ANSWER:" counts, or the whole
// reply if there is none. Letter case and thousands separators are ignored.
func (it Item) Right(reply string) bool {
	if at := answerMark.FindAllStringIndex(reply, -1); at != nil {
		reply = reply[at[len(at)-1][1]:]
	}
	reply = strings.ToLower(reply)
	for range 2 { // 1,234,567 has two
		reply = separated.ReplaceAllString(reply, "$1$2")
	}
	return says(reply, it.Answer) && !slices.ContainsFunc(it.Decoys, func(d string) bool { return says(reply, d) })
}

// says reports whether text, in lower case, holds an answer as a word of its
// own.
func says(text, answer string) bool {
	ok, err := regexp.MatchString(`(^|[^\pL\pN])`+regexp.QuoteMeta(strings.ToLower(answer))+`($|[^\pL\pN])`, text)
	return err == nil && ok
}
