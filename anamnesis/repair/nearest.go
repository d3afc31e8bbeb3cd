package repair

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
)

// A failure is answered by the repairs of failures of the same kind or, where such answers were
// seldom right, by the repairs of the nearest calls in the repository. Each new pair is a trial of
// both, and the record counts how many were right.
// The values were chosen on the choose half of the recorded runs and on InterCode; see
// docs/design/replay.md.
const (
	minSure     = 0.12 // least share of right answers for an answer to be shown
	nearSure    = 0.18 // the same for an answer by the nearest calls
	nearCalls   = 3    // calls that such an answer quotes
	nearLeast   = 5    // repairs that the repository must have before such an answer is shown
	nearPrior   = 0.2  // share of right answers by the nearest calls that is assumed at first
	priorWeight = 3    // trials that an assumed share counts as
	wordsPrior  = 0.5  // factor of an assumed share if signatures have only words in common
	nearBudget  = 200  // tokens of a trial's answer
	nearCommand = 300  // leading bytes of a command that are compared

	nearK1 = 1.2 // of BM25
	nearB  = 0.75
)

// problem is a failure in the form in which failures are compared.
type problem struct {
	repo, family string
	args         []string // files that the command was given
	asked        []string // the words of the command
	terms        []string // these, and twice those of the signature
	sig          signature
	missing      bool // the command's program was not there
}

func newProblem(repo, command string, f failure.Failure) problem {
	of, sig := mainOf(actions(command)), newSignature(f)
	words := edit.Words(firstBytes(command, nearCommand))
	lacked := missing().MatchString(f.Line) && slices.Contains(edit.Words(f.Line), strings.ToLower(of.family()))
	return problem{repo, of.family(), of.args, words, slices.Concat(words, sig.words, sig.words), sig, lacked}
}

// answer is a possible answer to a failure.
type answer struct {
	draft
	found []match
	held  int
	like  likeness
	sure  float64 // share of right ones among such answers; at first, an assumed one
}

// composed returns an answer from failures of the same kind, and one from the nearest calls.
func (m *Memory) composed(a *problem, failed Call, line string, shown map[string]bool) (out []answer) {
	if found := inTermsOf(m.matches(a), failed, line, a.sig); len(found) > 0 {
		out = append(out, answer{draft: m.draft(found, m.kin(found, a), shown), found: found, like: found[0].like(a)})
	}
	if found := inTermsOf(m.nearest(a), failed, line, a.sig); len(found) > 0 {
		out = append(out, answer{draft: quote(found), found: found, like: nearby, sure: nearPrior})
	}
	return out
}

// answers returns the composed answers with how sure they are.
func (m *Memory) answers(a *problem, failed Call, line string, shown map[string]bool, budget int) []answer {
	out := m.composed(a, failed, line, shown)
	for i := range out {
		if out[i].like != nearby {
			out[i].sure, out[i].held = m.confidence(out[i].found, shown, budget)
		}
		if out[i].like == inWords {
			out[i].sure *= wordsPrior
		}
		out[i].sure = m.record.share(a, &out[i])
	}
	return out
}

// record counts the trials of each class of answers.
type record map[class]trials

// class is a kind of answers for a kind of command, in one repository or in all.
type class struct {
	like         likeness
	family, repo string
}

// likeness is what two failures have in common.
type likeness int

const (
	nearby  likeness = iota // words of the calls
	inWords                 // words of their signatures
	loosely                 // their signatures but for names
	exactly                 // their signatures
)

func (p *match) like(a *problem) likeness {
	switch {
	case a.sig.exact != "" && a.sig.exact == p.sig.exact:
		return exactly
	case a.sig.loose == p.sig.loose, a.missing && p.missing:
		return loosely
	}
	return inWords
}

type trials struct{ right, all int }

// classes lists the classes of an answer, the widest first.
func classes(a *problem, of *answer) []class {
	return []class{{of.like, a.family, ""}, {of.like, a.family, a.repo}}
}

func (r record) add(a *problem, of *answer, right bool) {
	for _, s := range classes(a, of) {
		t := r[s]
		t.all++
		if right {
			t.right++
		}
		r[s] = t
	}
}

// shows reports whether such an answer is right often enough. A reviewed repair is always shown
// for the same failure in the same repository.
func (m *Memory) shows(a *problem, of *answer) bool {
	if of.like == exactly && of.found[0].Trusted && of.found[0].Repo == a.repo {
		return true
	}
	if of.like == nearby {
		return of.sure >= nearSure && len(m.byRepo[a.repo]) >= nearLeast
	}
	return of.sure >= minSure
}

// share returns the share of right answers in the narrowest class; with few trials, it is drawn
// towards that of the wider ones.
func (r record) share(a *problem, of *answer) float64 {
	share := of.sure
	for _, s := range classes(a, of) {
		share = (float64(r[s].right) + share*priorWeight) / float64(r[s].all+priorWeight)
	}
	return share
}

// nearest returns the repository's pairs whose calls share most words with a failed one, by BM25.
func (m *Memory) nearest(a *problem) []match {
	same := m.byRepo[a.repo]
	if len(same) == 0 {
		return nil
	}
	df, total := map[string]int{}, 0
	for _, p := range same {
		total += len(p.terms)
		for _, w := range slices.Compact(slices.Sorted(slices.Values(p.terms))) {
			df[w]++
		}
	}
	n := float64(len(same))
	want := slices.Compact(slices.Sorted(slices.Values(a.terms)))
	var out []match
	for _, p := range same {
		score := 0.0
		norm := nearK1 * (1 - nearB + nearB*float64(len(p.terms))*n/float64(max(1, total)))
		for _, w := range want {
			tf := 0.0
			for _, t := range p.terms {
				if t == w {
					tf++
				}
			}
			if tf > 0 {
				score += math.Log(1+(n-float64(df[w])+.5)/(float64(df[w])+.5)) * tf * (nearK1 + 1) / (tf + norm)
			}
		}
		if score > 0 {
			out = append(out, match{p, score, score})
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b match) int { return cmp.Compare(b.fit, a.fit) })
	return first(out, nearCalls)
}

// quote returns the repairs of the pairs, one after the other.
func quote(found []match) draft {
	var d draft
	said := map[string]bool{}
	for _, p := range found {
		for _, c := range candidates(p.known) {
			if c.kind == worked && !p.otherFile() && !said[c.text] {
				said[c.text] = true
				d = append(d, c)
			}
		}
	}
	return d
}

// otherFile reports whether a repair called the same program with other files, which
// says nothing about another failure.
func (k *known) otherFile() bool {
	works := mainOf(actions(k.Works))
	in := edit.WordSet(k.Command + " " + strings.Join(works.args, " "))
	for w := range works.words {
		if !in[w] {
			return false
		}
	}
	return true
}

// try records whether the pairs known so far would have answered a new pair with its repair.
func (m *Memory) try(k *known) {
	shown := edit.WordSet(k.Command + "\n" + k.Failure.Line)
	failed := Call{Output: failure.Output{Command: k.Command, Text: k.Failure.Line}}
	for _, a := range m.composed(&k.problem, failed, k.Failure.Line, shown) {
		m.record.add(&k.problem, &a, m.repairs(a.said(nearBudget), k, shown))
	}
}
