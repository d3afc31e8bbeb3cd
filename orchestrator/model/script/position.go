package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"anamnesis/orchestrator/model"
)

// item is an entry of a script's turns: a turn, or a loop over some.
type item struct {
	line  int
	turns []turn // one, unless it is a loop
	loop  bool
	until condition // on the last result of a round
	max   int       // rounds
}

// position is a place in a script. A script without loops is at item T when T replies are
// acknowledged; a loop makes the place depend on the results, so the ids of the calls encode
// the place of each reply.
type position struct {
	item  int
	round int
	inner int
}

func (m *Model) turnAt(p position) turn { return m.items[p.item].turns[p.inner] }

// valid reports whether the script has such a place.
func (m *Model) valid(p position) bool {
	if p.item < 0 || p.item >= len(m.items) {
		return false
	}
	it := m.items[p.item]
	return p.inner >= 0 && p.inner < len(it.turns) && p.round >= 0 && p.round < max(it.max, 1)
}

// callPrefix begins the ids of the calls made on a turn at a position: call_<turn>_<item> and,
// in a loop, -<round>-<inner>.
func callPrefix(turn int, p position) string {
	s := fmt.Sprintf("call_%d_%d", turn, p.item)
	if p.round != 0 || p.inner != 0 {
		s += fmt.Sprintf("-%d-%d", p.round, p.inner)
	}
	return s
}

// parseCallID parses an id with callPrefix.
func parseCallID(id string) (turn int, p position, ok bool) {
	parts := strings.Split(id, "_")
	if len(parts) != 4 || parts[0] != "call" {
		return 0, p, false
	}
	turn, err := strconv.Atoi(parts[1])
	if err != nil || turn < 0 {
		return 0, p, false
	}
	place := strings.Split(parts[2], "-")
	fields := []*int{&p.item, &p.round, &p.inner}
	if len(place) != 1 && len(place) != 3 {
		return 0, p, false
	}
	for i, s := range place {
		if *fields[i], err = strconv.Atoi(s); err != nil {
			return 0, p, false
		}
	}
	return turn, p, true
}

// trace is what a request's messages show of one earlier reply.
type trace struct {
	turn   int
	at     position
	result string // of its last call
	done   bool   // there is a result
}

// traces reads the ids of the calls in a request, in the order of turns.
func (m *Model) traces(r model.Request) []trace {
	var out []trace
	owner := make(map[string]int) // call id → index in out
	for _, msg := range r.Messages {
		for _, c := range msg.Calls {
			turn, at, ok := parseCallID(c.ID)
			if !ok || turn >= r.Turn || !m.valid(at) {
				continue
			}
			if n := len(out); n == 0 || out[n-1].turn != turn {
				out = append(out, trace{turn: turn, at: at})
			}
			owner[c.ID] = len(out) - 1
		}
		if i, ok := owner[msg.CallID]; ok && msg.Role == model.RoleTool {
			out[i].result, out[i].done = msg.Text, true
		}
	}
	if l := r.Last; l != nil && l.Turn < r.Turn {
		// A compaction may have removed the last call from the messages.
		gone := !slices.ContainsFunc(out, func(t trace) bool { return t.turn == l.Turn })
		if _, at, ok := parseCallID(l.CallID); ok && gone && m.valid(at) {
			out = append(out, trace{turn: l.Turn, at: at, result: l.Result, done: l.Done})
		}
	}
	slices.SortStableFunc(out, func(a, b trace) int { return a.turn - b.turn })
	return out
}

// locate finds the position of r's turn. It begins at the latest earlier turn with a known
// position, from an id in the messages or from this process's memory, and walks on. If no
// message holds the result of a loop's round any more, it returns an error, since it cannot
// know whether the loop continues. The caller holds mu.
func (m *Model) locate(r model.Request) (position, error) {
	if r.Turn < 0 {
		return position{}, m.lost(r, 1, "a turn from 0 on", strconv.Itoa(r.Turn))
	}
	if !m.loops {
		if r.Turn >= len(m.items) {
			return position{}, m.pastEnd(r)
		}
		return position{item: r.Turn}, nil
	}
	if r.Turn == 0 {
		return position{}, nil
	}
	known := make(map[int]trace)
	for turn, at := range m.seen {
		if turn < r.Turn {
			known[turn] = trace{turn: turn, at: at}
		}
	}
	for _, t := range m.traces(r) {
		known[t.turn] = t
	}
	at, turn := position{}, 0
	for _, t := range known {
		if t.turn >= turn {
			at, turn = t.at, t.turn
		}
	}
	for ; turn < r.Turn; turn++ {
		var err error
		if at, err = m.after(r, at, turn, known[turn]); err != nil {
			return position{}, err
		}
	}
	return at, nil
}

// after returns the position after at, which was turn's.
func (m *Model) after(r model.Request, at position, turn int, t trace) (position, error) {
	it := m.items[at.item]
	switch {
	case it.loop && at.inner+1 < len(it.turns):
		at.inner++
		return at, nil
	case it.loop && !t.done:
		return at, m.lost(r, it.line, fmt.Sprintf("the result of turn %d, on which this loop depends, among the messages", turn),
			"none; end no loop with a turn whose result a compaction can remove")
	case it.loop && !it.until.holds(resultOnly(t.result)):
		if at.round+1 >= it.max {
			return at, m.lost(r, it.line, fmt.Sprintf("`until` to hold after at most %d rounds", it.max), fmt.Sprintf("the result %q", firstChars(t.result, sampleChars)))
		}
		return position{item: at.item, round: at.round + 1}, nil
	}
	if at.item+1 >= len(m.items) {
		return at, m.pastEnd(r)
	}
	return position{item: at.item + 1}, nil
}

// resultOnly is a request that holds only a result.
func resultOnly(text string) model.Request {
	return model.Request{Messages: []model.Message{{Role: model.RoleTool, Text: text}}}
}

func (m *Model) lost(r model.Request, line int, want, got string) error {
	return &Mismatch{File: m.file, Line: line, Purpose: r.Purpose, Turn: r.Turn, Expected: want, Got: got}
}

func (m *Model) pastEnd(r model.Request) error {
	line := 1
	if n := len(m.items); n > 0 {
		line = m.items[n-1].line
	}
	return m.lost(r, line, "no further request after the script's last turn", "one more")
}
