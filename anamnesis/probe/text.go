package probe

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"anamnesis/anamnesis/consult"
)

//go:embed prompt/system.md
var systemPrompt string

//go:embed prompt/question.md
var questionPrompt string

//go:embed prompt/facts.txt
var factsFile string

//go:embed prompt/words.txt
var wordsFile string

const (
	peopleInText     = 12
	questionsPerText = 4
	paragraphLength  = 6 // sentences
)

// Item is a text with its questions.
type Item struct {
	System, Text string
	Tokens       int      // of both, as counted
	Answers      []string // first names, in the order of the questions
	people       []string // everyone with a fact in the text
}

// Build makes the text of an index; equal arguments produce equal items. The text is as long as
// fits length, in tokens by count.
func Build(seed uint64, length, index int, count func(string) int) Item {
	rng := rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d/%d/%d", seed, length, index))))
	facts, words := Facts(), wordLists()
	it := Item{System: strings.TrimSpace(systemPrompt)}
	var clues, questions []string
	// Most of the people are in no question, so that a name guessed from the text is rarely right.
	order := rng.Perm(len(words["names"]))
	for i, at := range rng.Perm(len(facts))[:peopleInText] {
		name := words["names"][order[i]]
		it.people = append(it.people, name)
		clues = append(clues, consult.Fill(facts[at].Clue, "name", name))
		if i < questionsPerText {
			it.Answers = append(it.Answers, name)
			questions = append(questions, fmt.Sprintf("%d. %s", i+1, facts[at].Question))
		}
	}
	frame := func(text string) string {
		return consult.Fill(questionPrompt, "text", text, "questions", strings.Join(questions, "\n"))
	}
	var sentences []string
	for used := count(it.System) + count(frame(strings.Join(clues, " "))); ; {
		next := filler(rng, words)
		if used += count(" " + next); used > length {
			break
		}
		sentences = append(sentences, next)
	}
	// The clues are counted before the filler, so that all of them fit whatever the length. Each gets any place.
	for _, c := range clues {
		sentences = slices.Insert(sentences, rng.IntN(len(sentences)+1), c)
	}
	var paragraphs []string
	for p := range slices.Chunk(sentences, paragraphLength) {
		paragraphs = append(paragraphs, strings.Join(p, " "))
	}
	it.Text = frame(strings.Join(paragraphs, "\n\n"))
	it.Tokens = count(it.System) + count(it.Text)
	return it
}

// filler is a sentence without digits or names that no question asks about.
func filler(rng *rand.Rand, words map[string][]string) string {
	pick := func(section string) string { return words[section][rng.IntN(len(words[section]))] }
	return fmt.Sprintf("%s, %s %s %s %s, %s.",
		pick("times"), pick("people"), pick("verbs"), pick("things"), pick("places"), pick("tails"))
}

// wordLists are the lists of words.txt, by section.
func wordLists() map[string][]string {
	lists, section := make(map[string][]string), ""
	for line := range strings.Lines(wordsFile) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			lists[section] = append(lists[section], line)
		}
	}
	return lists
}

// Fact is a sentence about a person, with {{name}} in it, and a question that it answers
// without sharing a word with it that matters.
type Fact struct{ Clue, Question string }

// Facts are all that a text may tell.
func Facts() []Fact {
	var out []Fact
	for line := range strings.Lines(factsFile) {
		if clue, q, ok := strings.Cut(strings.TrimSpace(line), " | "); ok {
			out = append(out, Fact{clue, q})
		}
	}
	return out
}

var answerMark = regexp.MustCompile(`(?i)answer\W{0,4}(\d)\W{0,4}?:`)

// Correct returns how many questions a reply answers with the right name and no other. The last
// line for a question counts.
func (it Item) Correct(reply string) int {
	given := make([]string, len(it.Answers))
	marks := answerMark.FindAllStringSubmatchIndex(reply, -1)
	for i, m := range marks {
		end := len(reply)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		if n := int(reply[m[2]] - '1'); n >= 0 && n < len(given) {
			given[n], _, _ = strings.Cut(strings.TrimSpace(reply[m[1]:end]), "\n")
		}
	}
	right := 0
	for i, text := range given {
		words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
		named := slices.DeleteFunc(slices.Clone(it.people), func(person string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, person) })
		})
		if len(named) == 1 && named[0] == it.Answers[i] {
			right++
		}
	}
	return right
}
