package depot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Puzzle is one repair task: which options there are and where each leads. It is
// encoded as JSON where another process plays it.
type Puzzle struct {
	Seed      uint64     `json:"seed"`
	Project   string     `json:"project"`
	Decisions []Decision `json:"decisions"`
	// Hint is shown by the first decision's option HintAt, in its stage HintStage;
	// empty when the task has none.
	Hint      string `json:"hint,omitempty"`
	HintAt    string `json:"hint_at,omitempty"`
	HintStage int    `json:"hint_stage,omitempty"`

	Licence     bool   `json:"licence"`
	Activations int    `json:"activations"`
	Output      [2]int `json:"output"` // tokens of a command's output
	Bare        bool   `json:"bare,omitempty"`
}

// Decision is one choice. Right is the option that leads on when every choice
// before it was right; under any other prefix all its options are dead ends.
type Decision struct {
	Name    string   `json:"name"`
	Options []string `json:"options"`
	Right   string   `json:"right"`
	Garden  []string `json:"garden,omitempty"` // wrong options that seem right
	Code    string   `json:"code"`             // of its error
	// Depth is how many steps an option's path has, by the choices up to it.
	Depth map[string]int `json:"depth"`
}

// Vocabulary returns the names of decisions and their options.
func Vocabulary() []Decision {
	return []Decision{
		{Name: "backend", Options: []string{"sled", "rocksdb", "lmdb", "boltdb", "badger", "pebble"}},
		{Name: "cache", Options: []string{"redis", "memcached", "ristretto", "groupcache", "hazelcast", "varnish"}},
		{Name: "codec", Options: []string{"zstd", "snappy", "brotli", "gzip", "xzip", "deflate"}},
	}
}

// New draws a task.
func New(p *Params, s Source) *Puzzle {
	r := s.At("puzzle", 0).Rand()
	pz := &Puzzle{Seed: s.Seed, Project: fmt.Sprintf("depot-%04x", r.IntN(1<<16)), Activations: p.Activations, Output: p.OutputTokens, Bare: p.Bare}
	dead, on := p.depths()
	span := func(d [2]int) int { return d[0] + r.IntN(d[1]-d[0]+1) }
	words := Vocabulary()
	prefixes := []string{""}
	for k := range p.Decisions {
		d := Decision{Name: words[k].Name, Options: words[k].Options[:p.Options], Depth: make(map[string]int), Code: fmt.Sprintf("R%03d", 100+r.IntN(900))}
		d.Options = slices.Clone(d.Options)
		r.Shuffle(len(d.Options), func(i, j int) { d.Options[i], d.Options[j] = d.Options[j], d.Options[i] })
		d.Right = d.Options[r.IntN(len(d.Options))]
		for _, o := range d.Options {
			if o != d.Right && k < p.Decisions-1 && r.Float64() < p.Garden {
				d.Garden = append(d.Garden, o)
			}
		}
		pz.Decisions = append(pz.Decisions, d)
		var next []string
		for _, prefix := range prefixes {
			for _, o := range d.Options {
				at := prefix + o
				goesOn := pz.LeadsOn(at)
				d.Depth[at] = span(dead)
				if goesOn {
					d.Depth[at] = span(on)
					next = append(next, at+",")
				}
			}
		}
		prefixes = next
	}
	pz.Licence = r.Float64() < p.Licence
	pz.drawHint(p, r.Float64(), r.IntN)
	return pz
}

// drawHint places the hint in a dead end of the first decision.
func (pz *Puzzle) drawHint(p *Params, u float64, intN func(int) int) {
	if u >= p.Hint || len(pz.Decisions) < 2 {
		return
	}
	first, last := pz.Decisions[0], pz.Decisions[len(pz.Decisions)-1]
	var ends []string
	for _, o := range first.Options {
		if !pz.LeadsOn(o) && first.Depth[o] > 1 {
			ends = append(ends, o)
		}
	}
	if len(ends) == 0 {
		return
	}
	other := last.Right
	for other == last.Right {
		other = last.Options[intN(len(last.Options))]
	}
	pair := []string{last.Right, other}
	slices.Sort(pair)
	pz.HintAt = ends[intN(len(ends))]
	pz.HintStage = 1 + intN(first.Depth[pz.HintAt]-1)
	pz.Hint = fmt.Sprintf("hint: %s must be one of %s or %s", last.Name, pair[0], pair[1])
}

// LeadsOn reports whether a prefix of choices, "sled,redis", leads on: every
// choice right, or right up to one garden path at its end.
func (pz *Puzzle) LeadsOn(prefix string) bool {
	choices := strings.Split(prefix, ",")
	for i, o := range choices {
		d := pz.Decisions[i]
		if o == d.Right {
			continue
		}
		return i == len(choices)-1 && slices.Contains(d.Garden, o)
	}
	return true
}

// Request returns the request of the task.
func (pz *Puzzle) Request() string {
	var names []string
	for _, d := range pz.Decisions {
		names = append(names, d.Name)
	}
	start := pz.position(nil, 0)
	return fmt.Sprintf("The tests of project %s fail. Repair its configuration: decide on %s, one after the other, and go through the stages of each choice until 'npm test check' passes. "+
		"'npm test choose DECISION OPTION' takes an option, 'npm test stage DECISION N' makes a stage, 'npm test status' says where things stand.\n%s",
		pz.Project, strings.Join(names, ", then "), start.next())
}

// MoveRight makes another option of the last decision the right one.
func (pz *Puzzle) MoveRight(s Source) {
	last := &pz.Decisions[len(pz.Decisions)-1]
	var path []string
	for _, d := range pz.Decisions[:len(pz.Decisions)-1] {
		path = append(path, d.Right)
	}
	others := slices.DeleteFunc(slices.Clone(last.Options), func(o string) bool { return o == last.Right })
	was, now := strings.Join(append(slices.Clone(path), last.Right), ","), others[s.Between(0, len(others)-1)]
	becomes := strings.Join(append(path, now), ",")
	last.Depth = maps.Clone(last.Depth)
	last.Depth[was], last.Depth[becomes] = last.Depth[becomes], last.Depth[was]
	last.Right, pz.Hint = now, ""
}

// FreshTree is the state before the first decision.
const FreshTree = "fresh tree"

// Refusal is the statement that an option failed in a state; without a state it claims
// that the option never works.
func Refusal(decision, option, state string) string {
	s := decision + " " + option + " is refused"
	if state != "" {
		s += " on " + state
	}
	return s
}
