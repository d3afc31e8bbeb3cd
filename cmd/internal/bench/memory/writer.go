package memory

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"anamnesis/cmd/internal/bench/depot"
)

// writer simulates a model that writes the pass's notes: it reads the evidence
// it is really sent and answers in the schema. Each statement it would make is
// wrong with a probability: half of the wrong ones are left out, a quarter
// names another option, a quarter misquotes the error.
type writer struct {
	wrong float64 // probability of a wrong statement
	cards bool    // it writes cards, too
	src   depot.Source
	calls int              // questions answered
	op    *regexp.Regexp   // heads the evidence of one operation
	g     *grammar         // reads actions from the evidence
	words []depot.Decision // the vocabulary, for wrong names
}

func newWriter(wrong float64, cards bool, s depot.Source) *writer {
	return &writer{wrong: wrong, cards: cards, src: s, op: regexp.MustCompile(`^ops? (\d+)(?:-(\d+))?, step \d+: (.*)$`), g: newGrammar(), words: depot.Vocabulary()}
}

type writtenPath struct {
	Action     string   `json:"action"`
	State      string   `json:"state"`
	Error      string   `json:"error"`
	Why        string   `json:"why"`
	Confidence string   `json:"confidence"`
	Ops        []uint64 `json:"ops"`
}

type writtenNote struct {
	Text string   `json:"text"`
	Ops  []uint64 `json:"ops"`
}

type written struct {
	Causes    []writtenNote `json:"failure_causes"`
	Falsified []writtenPath `json:"falsified"`
	Findings  []writtenNote `json:"findings"`
	Verified  []writtenNote `json:"verified"`
	Untried   []writtenNote `json:"untried"`
	Advice    []writtenNote `json:"advice"`
	Cards     []writtenCard `json:"cards"`
}

type writtenCard struct {
	Topic    string   `json:"topic"`
	Issue    []string `json:"issue"`
	Solution []string `json:"solution"`
	Ops      []uint64 `json:"ops"`
}

// write answers one question of the pass.
func (w *writer) write(question string) string {
	w.calls++
	out := written{
		Causes: []writtenNote{}, Falsified: []writtenPath{}, Findings: []writtenNote{}, Verified: []writtenNote{},
		Untried: []writtenNote{}, Advice: []writtenNote{}, Cards: []writtenCard{},
	}
	var end uint64
	head := ""
	for line := range strings.Lines(question) {
		text, quoted := strings.CutPrefix(strings.TrimRight(line, "\n"), "| ")
		if !quoted {
			continue
		}
		if m := w.op.FindStringSubmatch(text); m != nil {
			var err error
			if end, err = strconv.ParseUint(m[len(m)-2], 10, 64); err != nil { // "op 12" has no end
				end, _ = strconv.ParseUint(m[1], 10, 64)
			}
			head = m[3]
			continue
		}
		for _, f := range w.g.facts(text) {
			w.note(&out, f, text, head, end)
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(data)
}

// note writes one statement down, or does not, or does so wrongly.
func (w *writer) note(out *written, f fact, text, head string, end uint64) {
	src := w.src.At(f.key(), int(end)+w.calls<<20)
	fate := src.Float()
	wrong := fate < w.wrong
	omitted := fate < w.wrong/2
	if omitted {
		return
	}
	switch f.kind {
	case factActive:
		if strings.HasPrefix(head, "call Bash, exit code 0") && !wrong {
			out.Verified = append(out.Verified, writtenNote{"licence activated; the effect lies outside the directory and stays", []uint64{end}})
		}
	case factHint:
		if wrong {
			f.pair[1] = w.another(f, src)
		}
		out.Findings = append(out.Findings, writtenNote{fmt.Sprintf("%s must be one of %s or %s", f.decision, f.pair[0], f.pair[1]), []uint64{end}})
	case factRefused:
		quote, isError := strings.CutPrefix(text, "error: ")
		switch {
		case !isError && !strings.HasPrefix(head, "notes of an earlier jump"):
			return // said of something noted elsewhere
		case wrong && fate < w.wrong*3/4:
			f.option = w.another(f, src)
		case wrong:
			quote = "it failed: " + quote
		}
		if !isError {
			out.Findings = append(out.Findings, writtenNote{depot.Refusal(f.decision, f.option, f.state), []uint64{end}})
			return
		}
		if w.cards {
			says := quote
			if right := w.g.facts(quote); len(right) > 0 {
				says = strings.Replace(quote, right[0].option, f.option, 1)
			}
			out.Cards = append(out.Cards, writtenCard{Topic: says, Issue: []string{says}, Solution: []string{}, Ops: []uint64{end}})
		}
		out.Falsified = append(out.Falsified, writtenPath{
			Action: depot.Refusal(f.decision, f.option, f.state), State: f.state, Error: quote, Why: "the option does not work there", Confidence: "high", Ops: []uint64{end},
		})
	}
}

// another is some other option of the same decision.
func (w *writer) another(f fact, src depot.Source) string {
	for _, d := range w.words {
		if d.Name == f.decision {
			for i := 0; ; i++ {
				if o := d.Options[src.At("another", i).Between(0, len(d.Options)-1)]; o != f.option {
					return o
				}
			}
		}
	}
	return f.option
}
