package script

import (
	"fmt"
	"strconv"
	"strings"

	"anamnesis/orchestrator/model"
)

// parseCallID parses the id of a call made on a turn of the task: call_<turn>_<entry of the script>_N.
func parseCallID(id string) (turn, at int, ok bool) {
	parts := strings.Split(id, "_")
	if len(parts) != 4 || parts[0] != "call" {
		return 0, 0, false
	}
	turn, turnErr := strconv.Atoi(parts[1])
	at, atErr := strconv.Atoi(parts[2])
	return turn, at, turnErr == nil && atErr == nil && turn >= 0 && at >= 0
}

// locate returns the place in the script of r's turn: its number. If the script repeats turns, the id of the
// task's last call says at which of them that call was made, and its result whether it is repeated; all later
// turns made no call.
func (m *Model) locate(r model.Request) (int, error) {
	if r.Turn < 0 {
		return 0, m.lost(r, 1, "a turn from 0 on", strconv.Itoa(r.Turn))
	}
	turn, at := r.Turn, r.Turn
	if m.repeats {
		turn, at = 0, 0
		if r.Last == nil {
			r.Last = &model.Past{}
		} else {
			var ok bool
			if turn, at, ok = parseCallID(r.Last.CallID); !ok || turn >= r.Turn || at >= len(m.turns) {
				return 0, m.lost(r, 1, "a last call of this script, without an `id` of its own",
					fmt.Sprintf("the call %q", r.Last.CallID))
			}
		}
	}
	for ; turn < r.Turn && at < len(m.turns); turn++ {
		if until := m.turns[at].until; until == nil || until.holds(lastResultOnly(r), scopeResult) {
			at++
		}
	}
	if at >= len(m.turns) {
		line := 1
		if n := len(m.turns); n > 0 {
			line = m.turns[n-1].line
		}
		return 0, m.lost(r, line, "no further request after the script's last turn", "one more")
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
