package script

import (
	"fmt"
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

// position is a place in a script. In a script with loops it depends on results, so the ids of
// the calls hold it.
type position struct {
	item  int
	round int
	inner int
}

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

// locate returns the position of r's turn. A script without loops is at the item of that number. In
// one with loops, the id of the task's last call says where that call was made, and its result
// whether a loop that it ended is left; all later turns made no call.
func (m *Model) locate(r model.Request) (position, error) {
	if r.Turn < 0 {
		return position{}, m.lost(r, 1, "a turn from 0 on", strconv.Itoa(r.Turn))
	}
	turn, at := 0, position{}
	if !m.loops {
		turn, at.item = r.Turn, r.Turn
	} else if r.Last == nil {
		r.Last = &model.Past{}
	} else {
		var ok bool
		if turn, at, ok = parseCallID(r.Last.CallID); !ok || turn >= r.Turn || !m.valid(at) {
			return at, m.lost(r, 1, "a last call of this script, without an `id` of its own",
				fmt.Sprintf("the call %q", r.Last.CallID))
		}
	}
	for ; turn < r.Turn && m.valid(at); turn++ {
		it := m.items[at.item]
		switch {
		case it.loop && at.inner+1 < len(it.turns):
			at.inner++
		case it.loop && !it.until.holds(lastResultOnly(r), scopeResult):
			if at = (position{item: at.item, round: at.round + 1}); at.round >= it.max {
				return at, m.lost(r, it.line, fmt.Sprintf("`until` to hold after at most %d rounds", it.max),
					fmt.Sprintf("the result %q", firstChars(lastResult(lastResultOnly(r)), sampleChars)))
			}
		default:
			at = position{item: at.item + 1}
		}
	}
	if !m.valid(at) {
		line := 1
		if n := len(m.items); n > 0 {
			line = m.items[n-1].line
		}
		return at, m.lost(r, line, "no further request after the script's last turn", "one more")
	}
	return at, nil
}

// lastResultOnly is a request that holds only the result of the task's last call: as the messages
// show it, and as it was recorded if a jump or a compaction removed it.
func lastResultOnly(r model.Request) model.Request {
	text := r.Last.Result
	for _, m := range r.Messages {
		if m.Role == model.RoleTool && m.CallID == r.Last.CallID {
			text = m.Text
		}
	}
	return model.Request{Messages: []model.Message{{Role: model.RoleTool, Text: text}}}
}

func (m *Model) lost(r model.Request, line int, want, got string) error {
	return &Mismatch{File: m.file, Line: line, Purpose: r.Purpose, Turn: r.Turn, Expected: want, Got: got}
}
