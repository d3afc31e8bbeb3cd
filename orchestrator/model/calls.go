package model

import (
	"cmp"
	"fmt"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// MaxCallNameBytes bounds the recorded name of a called tool. No tool has a name as long.
const MaxCallNameBytes = 128

// CallsOf returns the calls of a reply as they are recorded: ids are not empty and differ,
// because results are matched by id. If the reply makes more than MaxCalls, refused are the
// results of those that are read: none runs, so that no part of a whole takes effect.
func CallsOf(reply Reply) (calls []op.Call, refused []op.Body) {
	calls = reply.Calls[:min(len(reply.Calls), MaxCalls)]
	seen := make(map[string]bool, len(calls))
	for i := range calls {
		c := &calls[i]
		c.ID = cmp.Or(c.ID, "call")
		for seen[c.ID] {
			c.ID += "_"
		}
		seen[c.ID] = true
		c.Name = quote.CutBytes(c.Name, MaxCallNameBytes)
	}
	if !reply.MoreCalls && len(reply.Calls) <= MaxCalls {
		return calls, nil
	}
	text := fmt.Sprintf("Not run: the reply made more than %d calls. None of them ran. Make at most %d calls in one "+
		"reply and the rest in later replies.", MaxCalls, MaxCalls)
	for _, c := range calls {
		refused = append(refused, &op.ToolReturned{Call: c.ID, Name: c.Name, Text: text, IsError: true, Refused: true})
		text = "Not run, as the first call of this reply."
	}
	return calls, refused
}
