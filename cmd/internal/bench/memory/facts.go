package memory

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// fact is one statement a text makes.
type fact struct {
	kind     factKind
	decision string
	option   string
	state    string   // of a refusal; empty: said of every state
	pair     []string // of a hint
	at       int      // where it ends in the text, bytes
	// Of a statement in a recalled card: which, its date, and whether it is one that is
	// to be checked before anything is ruled out by it.
	card, date string
	unsure     bool
}

type factKind int

const (
	factRefused factKind = iota // decision option does not work in state
	factHint                    // decision is one of pair
	factActive                  // a licence is active
	factWorked                  // decision option put right, by a card, what failed in state
)

// key names what is stated, for draws.
func (f *fact) key() string {
	return fmt.Sprintf("%d %s %s %s %s", f.kind, f.decision, f.option, f.state, strings.Join(f.pair, ","))
}

// grammar is how the agent reads. A value, made once per agent.
type grammar struct {
	refused, hint, active *regexp.Regexp
	next, mark, jump, try *regexp.Regexp
	place                 *regexp.Regexp // its words on a decision, in a block's list of steps
	card, dated, project  *regexp.Regexp
	worked                *regexp.Regexp
}

func newGrammar() *grammar {
	return &grammar{
		refused: regexp.MustCompile(`\b(\w+) (\w+) is refused(?: on (fresh tree|\w+=\w+(?:,\w+=\w+)*))?`),
		hint:    regexp.MustCompile(`\b(\w+) must be one of (\w+) or (\w+)`),
		// The command's own output, and its place in a notice's list of what was
		// not undone.
		active:  regexp.MustCompile(`licence activated|(?m:^- op \d+: curl -X POST https://licence)`),
		next:    regexp.MustCompile(`(?m)^state: (.+)\nnext: (.+)$`),
		mark:    regexp.MustCompile(`(?m)^\[step (\d+)`),
		jump:    regexp.MustCompile(`(?m)^\[JUMP(?: \w+)?\] You went (?:back|over) from step (\d+) to step (\d+)\.`),
		card:    regexp.MustCompile(`(?m)^\[lesson (\S+) · (.*)(?:\n>.*|\nRepaired before with:|\n  run: .*)*`),
		dated:   regexp.MustCompile(` · (\d{4}-\d\d-\d\d)`),
		project: regexp.MustCompile(`\bproject (depot-[0-9a-f]{4})`),
		worked:  regexp.MustCompile("(?m)^(?:> Solution: `|  run: )npm test choose (\\w+) (\\w+)"),
		try:     regexp.MustCompile(`^At step (\d+), decision (\w+) with (.+): trying`),
		place:   regexp.MustCompile(`(?m)^- step \d+: At step (\d+), decision (\w+) with (.+): trying`),
	}
}

// facts reads the statements of a text. Of a falsified path in a block, what
// its action names counts; its error is read where the action names nothing.
func (g *grammar) facts(text string) []fact {
	var out []fact
	claimed := false // the entry's action has named an option
	off := 0
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "- "):
			claimed = false
		case strings.HasPrefix(line, "  error: ") && claimed:
			off += len(line)
			continue
		}
		for _, m := range g.refused.FindAllStringSubmatchIndex(line, -1) {
			f := fact{kind: factRefused, decision: line[m[2]:m[3]], option: line[m[4]:m[5]], at: off + m[1]}
			if m[6] >= 0 {
				f.state = line[m[6]:m[7]]
			}
			out = append(out, f)
			claimed = claimed || strings.HasPrefix(line, "- ")
		}
		for _, m := range g.hint.FindAllStringSubmatchIndex(line, -1) {
			out = append(out, fact{kind: factHint, decision: line[m[2]:m[3]], pair: []string{line[m[4]:m[5]], line[m[6]:m[7]]}, at: off + m[1]})
		}
		if m := g.active.FindStringIndex(line); m != nil {
			out = append(out, fact{kind: factActive, at: off + m[1]})
		}
		off += len(line)
	}
	return g.fromCards(text, out)
}

// fromCards marks the facts of recalled cards, and how far those say that they
// may be believed: not before a check where the header says so, and never where the
// line quotes no more than why an agent gave a path up.
func (g *grammar) fromCards(text string, facts []fact) []fact {
	for _, m := range g.card.FindAllStringSubmatchIndex(text, -1) {
		head := text[m[4]:m[5]]
		for i := range facts {
			f := &facts[i]
			if f.at < m[0] || f.at > m[1] {
				continue
			}
			f.card = text[m[2]:m[3]]
			if d := g.dated.FindStringSubmatch(head); d != nil {
				f.date = d[1]
			}
			line := text[strings.LastIndexByte(text[:f.at], '\n')+1 : f.at]
			f.unsure = strings.Contains(head, "before ruling anything out") || strings.Contains(line, "given up for this reason")
		}
		facts = append(facts, g.solutions(text[m[0]:m[1]], m[0], facts)...)
	}
	return facts
}

// solutions reads what a recalled card, at a place in the text, says to have worked: in
// the state of the failure that it is about.
func (g *grammar) solutions(card string, at int, facts []fact) (out []fact) {
	for _, m := range g.worked.FindAllStringSubmatchIndex(card, -1) {
		f := fact{kind: factWorked, decision: card[m[2]:m[3]], option: card[m[4]:m[5]], at: at + m[1]}
		for _, of := range facts {
			if of.kind == factRefused && of.at > at && of.at < f.at && of.decision == f.decision {
				f.state, f.card, f.date = of.state, of.card, of.date
			}
		}
		if f.state != "" { // the failure of another decision does not say where the option worked
			out = append(out, f)
		}
	}
	return out
}

// ownCards blanks the recalled cards that name another project: an agent does
// not take a lesson about another project for one about its own.
func (g *grammar) ownCards(text, project string) string {
	if !strings.Contains(text, "[lesson ") {
		return text
	}
	return g.card.ReplaceAllStringFunc(text, func(card string) string {
		for _, m := range g.project.FindAllStringSubmatch(card, -1) {
			if m[1] != project {
				return strings.Repeat(" ", len(card))
			}
		}
		return card
	})
}

// beliefs are the facts the agent recalls at one moment.
type beliefs []fact

// active reports whether a licence is believed to be active.
func (b beliefs) active() bool {
	return slices.ContainsFunc(b, func(f fact) bool { return f.kind == factActive })
}

// noted returns the date of the oldest card that says an option does not work in a
// state; false where something else says so, such as the agent's own experience.
func (b beliefs) noted(decision, option, state string) (date string, ok bool) {
	for _, f := range b {
		if f.kind != factRefused || f.decision != decision || f.option != option || f.state != state && f.state != "" {
			continue
		}
		if f.card == "" {
			return "", false
		}
		if !ok || f.date < date {
			date, ok = f.date, true
		}
	}
	return date, ok
}

// oldest returns that of the options which only cards speak against whose card is the
// oldest; empty: there is none, or the agent has seen none of the others fail.
func (b beliefs) oldest(decision, state string, options []string) (pick string) {
	first, seen := "", false
	for _, o := range options {
		date, ok := b.noted(decision, o, state)
		seen = seen || !ok
		if ok && (pick == "" || date < first) {
			pick, first = o, date
		}
	}
	if !seen {
		return ""
	}
	return pick
}

// failed reports whether an option is believed not to work in a state. A
// statement that names another state is about that state; one that names none is
// taken to mean the failure that a recalled statement with a state describes,
// and every state where there is none such.
func (b beliefs) failed(decision, option, state string) bool {
	always, elsewhere := false, false
	for _, f := range b {
		if f.kind != factRefused || f.decision != decision || f.option != option {
			continue
		}
		switch f.state {
		case state:
			return true
		case "":
			always = true
		default:
			elsewhere = true
		}
	}
	return always && !elsewhere
}

// worked returns the option that the latest card says worked in a state.
func (b beliefs) worked(decision, state string) (option string) {
	date := ""
	for _, f := range b {
		if f.kind == factWorked && f.decision == decision && f.state == state && f.date >= date {
			option, date = f.option, f.date
		}
	}
	return option
}

// hinted reports whether a recalled hint, if there is one for the decision, leaves
// an option in.
func (b beliefs) hinted(decision, option string) bool {
	for _, f := range b {
		if f.kind == factHint && f.decision == decision && !slices.Contains(f.pair, option) {
			return false
		}
	}
	return true
}
