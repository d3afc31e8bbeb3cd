package replay

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The judge is that of the data set (score.py beside the runs): a suggestion
// is right when it covers the words that the later success has and the failed
// call and the end of its output lack. These limits are the data set's own.
const (
	commandCovered  = 0.6
	editCovered     = 0.4
	harmCovered     = 0.6
	maxWordsJudged  = 150 // distinct words of one suggestion
	maxEditWords    = 60
	maxTargetWords  = 40
	maxSuggestions  = 3
	commonWordShare = 0.35 // of a repository's repaired runs: such a word says nothing about one edit
)

// Question is one recorded failed call.
type Question struct {
	ID      string   `json:"id"`
	Run     string   `json:"run"`
	Repo    string   `json:"repo"`
	Call    int      `json:"call"`
	Command string   `json:"cmd"`
	Canon   string   `json:"canon"`
	Sig     string   `json:"sig"`
	OutTail string   `json:"out_tail"`
	First   bool     `json:"first"` // of a chain of nearly equal failing calls
	Repair  *Repair  `json:"repair"`
	Wrong   []string `json:"wrong"` // failing attempts before the repair
	Order   int      `json:"order"` // the run's place in time
}

// Repair is what later made a failed call succeed.
type Repair struct {
	At      int      `json:"at"`
	Command string   `json:"cmd"`
	Delta   []string `json:"delta"`
}

// text is the repair as the data set's baselines show it.
func (r *Repair) text() string {
	if r == nil {
		return ""
	}
	cmd := r.Command
	if utf8.RuneCountInString(cmd) >= 1500 || strings.Contains(cmd, "\n") {
		cmd = firstRunes(cmd, 300)
	}
	return cmd + "\n" + strings.Join(r.Delta[:min(len(r.Delta), 30)], "\n")
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// target is what a suggestion is compared with.
type target struct {
	command, edit []string
	whole         string // the succeeding command itself
	wrong         [][]string
}

// Judge decides over suggestions for the questions of one source.
type Judge struct {
	weights map[string]float64 // inverse document frequency of a word, over runs
	unseen  float64
	targets map[string]target // by question
	Asked   []*Question       // in the file's order
}

// Verdict is the judgement of one answer.
type Verdict struct{ Answered, Hit1, Hit3, Harm bool }

// NewJudge reads the questions of one source.
func NewJudge(questions []*Question) *Judge {
	j := &Judge{weights: map[string]float64{}, targets: map[string]target{}}
	runs := map[string]map[string]bool{}
	edits := map[string]map[string]map[string]bool{} // repository, run, word
	for _, q := range questions {
		addWords(runs, q.Run, words(q.Canon+" "+q.Repair.text()))
		if q.Repair != nil && len(q.Repair.Delta) > 0 {
			if edits[q.Repo] == nil {
				edits[q.Repo] = map[string]map[string]bool{}
			}
			addWords(edits[q.Repo], q.Run, editWords(q.Repair.Delta))
		}
	}
	n := float64(len(runs))
	for w, c := range frequency(runs) {
		j.weights[w] = math.Log(1 + n/float64(1+c))
	}
	j.unseen = math.Log(1 + n)
	common := map[string]map[string]bool{}
	for repo, byRun := range edits {
		common[repo] = map[string]bool{}
		for w, c := range frequency(byRun) {
			common[repo][w] = c >= 3 && float64(c) > commonWordShare*float64(len(byRun))
		}
	}
	for _, q := range questions {
		t := newTarget(q, common[q.Repo])
		j.targets[q.ID] = t
		if q.First && q.Repair != nil && len(t.command)+len(t.edit) > 0 {
			j.Asked = append(j.Asked, q)
		}
	}
	return j
}

func addWords(sets map[string]map[string]bool, key string, ws []string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	for _, w := range ws {
		sets[key][w] = true
	}
}

func frequency(sets map[string]map[string]bool) map[string]int {
	n := map[string]int{}
	for _, set := range sets {
		for w := range set {
			n[w]++
		}
	}
	return n
}

func newTarget(q *Question, common map[string]bool) target {
	var t target
	seen := set(words(q.Command), words(q.OutTail))
	unseen := func(ws []string, also map[string]bool) []string {
		return slices.DeleteFunc(ws, func(w string) bool { return seen[w] || also[w] })
	}
	repair := map[string]bool{}
	if q.Repair != nil {
		cmd := commandOnly(q.Repair.Command)
		if len(words(cmd)) >= 2 {
			t.whole = normal(cmd)
		}
		t.command = first(unseen(words(cmd), nil), maxTargetWords)
		if edit := unseen(editWords(q.Repair.Delta), common); len(edit) <= maxEditWords {
			t.edit = edit
		}
		repair = set(t.command, t.edit, words(q.Repair.Command))
	}
	for _, text := range q.Wrong {
		if ws := first(unseen(words(text), repair), maxTargetWords); len(ws) > 0 {
			t.wrong = append(t.wrong, ws)
		}
	}
	return t
}

func set(lists ...[]string) map[string]bool {
	m := map[string]bool{}
	for _, l := range lists {
		for _, w := range l {
			m[w] = true
		}
	}
	return m
}

// said is a suggestion as the judge reads it.
type said struct {
	words  map[string]bool
	normal string
}

func newSaid(suggestion string) said {
	return said{set(first(words(suggestion), maxWordsJudged)), normal(suggestion)}
}

// Judge says what the suggestions are worth; those past the third do not count.
func (j *Judge) Judge(id string, suggestions []string) Verdict {
	v := Verdict{Answered: len(suggestions) > 0}
	for i, text := range first(suggestions, maxSuggestions) {
		s := newSaid(text)
		hit := j.hit(id, s)
		v.Hit1 = v.Hit1 || hit && i == 0
		v.Hit3 = v.Hit3 || hit
		v.Harm = v.Harm || !hit && j.harm(id, s)
	}
	return v
}

func (j *Judge) hit(id string, s said) bool {
	t := j.targets[id]
	if c, _ := j.covered(t.command, s.words); len(t.command) > 0 && c >= commandCovered {
		return true
	}
	if c, n := j.covered(t.edit, s.words); len(t.edit) > 0 && c >= editCovered && (n >= 2 || n == len(t.edit)) {
		return true
	}
	return t.whole != "" && len(t.command) > 0 && strings.Contains(s.normal, t.whole)
}

func (j *Judge) harm(id string, s said) bool {
	return slices.ContainsFunc(j.targets[id].wrong, func(w []string) bool {
		c, n := j.covered(w, s.words)
		return c >= harmCovered && (n >= 2 || n == len(w))
	})
}

// covered returns the weighted share of the target's words that were said, and
// their number.
func (j *Judge) covered(target []string, said map[string]bool) (share float64, n int) {
	var got, all float64
	for _, w := range target {
		weight, ok := j.weights[w]
		if !ok {
			weight = j.unseen
		}
		all += weight
		if said[w] {
			got += weight
			n++
		}
	}
	return got / max(1e-9, all), n
}

var stopWords = set(strings.Fields(`python python3 py cat eof the a of to in is for if self import from def return and or not this that with it be as on s t i n echo cd sed head tail grep ls true false none null class else print -i -n -e src lib git checkout __init__ __main__ init main file name path line lines open read write re sys os
const let var int str string public private static void new bash sh end_of_edit edit tmp testbed app usr bin e p x y`))

// words returns the distinct identifiers and options of a text, in lower case
// and in order.
func words(s string) []string {
	var out []string
	seen := map[string]bool{}
	rs := []rune(s)
	for i := 0; i < len(rs); {
		end := wordEnd(rs, i)
		if end == i {
			i++
			continue
		}
		w := strings.ToLower(string(rs[i:end]))
		i = end
		if stopWords[w] || seen[w] || len([]rune(w)) < 2 {
			continue
		}
		seen[w] = true
		out = append(out, w)
	}
	return out
}

// wordEnd returns where the word that starts at i ends, or i.
func wordEnd(rs []rune, i int) int {
	j := i
	if isLetter(rs[i]) || rs[i] == '_' {
		for j < len(rs) && (isLetter(rs[j]) || rs[j] == '_' || rs[j] >= '0' && rs[j] <= '9') {
			j++
		}
		return j
	}
	if rs[i] != '-' || i > 0 && isWord(rs[i-1]) {
		return i
	}
	for j++; j < i+2 && j < len(rs) && rs[j] == '-'; j++ {
	}
	if j == len(rs) || !isLetter(rs[j]) {
		return i
	}
	for j < len(rs) && (isWord(rs[j]) || rs[j] == '-') {
		j++
	}
	return j
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

var pathPattern = regexp.MustCompile(`[\p{L}\p{N}_.~-]*/[\p{L}\p{N}_./-]+`)

// editWords are the words of edited lines without the paths of the files.
func editWords(lines []string) []string {
	return words(pathPattern.ReplaceAllString(strings.Join(lines, "\n"), " "))
}

func normal(s string) string {
	fields := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
	return strings.ToLower(strings.Join(fields, " "))
}

var (
	heredocPattern  = regexp.MustCompile(`<<-?[\s\p{Z}]*['"]?([\p{L}\p{N}_]+)`)
	editCallPattern = regexp.MustCompile(`^[\s\p{Z}]*(edit|insert)([^\p{L}\p{N}_]|$)`)
)

// commandOnly drops what a command writes into files: the bodies of here
// documents and the text of an editor's edit.
func commandOnly(c string) string {
	if !strings.Contains(c, "<<") {
		if editCallPattern.MatchString(c) {
			return ""
		}
		return c
	}
	var b strings.Builder
	for {
		m := heredocPattern.FindStringSubmatchIndex(c)
		if m == nil {
			return b.String() + c
		}
		end := heredocEnd(c[m[3]:], c[m[2]:m[3]])
		if end < 0 {
			b.WriteString(c[:m[0]+1])
			c = c[m[0]+1:]
			continue
		}
		b.WriteString(c[:m[0]] + " ")
		c = c[m[3]+end:]
	}
}

// heredocEnd returns where the closing word ends in what follows the opening
// one, or -1. As the data set's own pattern does, it takes a shorter closing
// word where the whole one is missing.
func heredocEnd(rest, word string) int {
	for rs := []rune(word); len(rs) > 0; rs = rs[:len(rs)-1] {
		closing := "\n" + string(rs)
		for at := 0; ; {
			i := strings.Index(rest[at:], closing)
			if i < 0 {
				break
			}
			at += i + len(closing)
			if after := []rune(firstRunes(rest[at:], 1)); len(after) == 0 || !isWord(after[0]) {
				return at
			}
		}
	}
	return -1
}
