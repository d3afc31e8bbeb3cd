//go:build unix

package term

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
)

// What an approval asks for.
const (
	approvePrompt = "  y once · t exactly this, for the task · a everything · n no · e edit · ? help: "
	approveHelp   = `  y  run this call once
  t  run this call, and exactly the same one again in this task without a question
  a  run everything in this task without a question; asks once more
  n  do not run it; you may give the reason, which the model is told
  e  edit the command, or the arguments; what comes of it is shown and asked about again
  Ctrl-C ends the turn`
	allPrompt    = "  everything in this task then runs without a question; a again to confirm, n goes back: "
	reasonPrompt = "  the reason, for the model (Enter: none, Esc goes back): "
	editPrompt   = "  edit, Enter when done, Esc goes back: "
)

// Approve asks the user about one call. Without an answer the call is refused.
func (k *Keyboard) Approve(ctx context.Context, about runtime.Question) runtime.Answer {
	shown := fmt.Sprintf("? %s\n%s", Line(about.Name, 80), Clean(prettyArgs(about.Args)))
	if about.Note != "" {
		shown += "\n  " + Clean(about.Note)
	}
	s := k.Open(ctx, shown)
	defer s.Close()
	for {
		key, ok := s.Key(approvePrompt, "ytane?")
		if !ok {
			return runtime.Answer{}
		}
		switch key {
		case 'y':
			return runtime.Answer{Allow: true}
		case 't':
			return runtime.Answer{Allow: true, Same: true}
		case 'a':
			if again, _ := s.Key(allPrompt, "an"); again == 'a' {
				return runtime.Answer{Allow: true, ForTask: true}
			}
		case 'n':
			if reason, back, _ := s.Text(reasonPrompt, ""); !back {
				return runtime.Answer{Feedback: reason}
			}
		case 'e':
			if args, ok := editArgs(s, about.Args); ok {
				return runtime.Answer{Args: args}
			}
		case '?':
			s.Say(approveHelp)
		}
	}
}

// editArgs lets the user edit a call's command, or its arguments as JSON where there
// is none or it has several lines.
func editArgs(s *Session, args string) (string, bool) {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) != nil {
		m = nil
	}
	command, single := m["command"].(string)
	if single = single && Clean(command) == command && !strings.ContainsAny(command, "\n\t"); single {
		text, back, ok := s.Text(editPrompt, command)
		if back || !ok {
			return "", false
		}
		m["command"] = text
	} else {
		text, back, ok := s.Text(editPrompt, op.CanonicalArgs(args))
		return text, ok && !back
	}
	data, err := json.Marshal(m)
	return op.CanonicalArgs(string(data)), err == nil
}

// Ask puts a question of the program or the model to the user; false means no
// answer.
func (k *Keyboard) Ask(ctx context.Context, question string) (string, bool) {
	s := k.Open(ctx, "? "+Clean(question))
	defer s.Close()
	answer, _, _ := s.Text("  your answer (empty ends the turn): ", "")
	return answer, answer != ""
}

// Trust asks the user to approve something that a project brings.
func (k *Keyboard) Trust(ctx context.Context, question string) bool {
	s := k.Open(ctx, "? "+Clean(question))
	defer s.Close()
	key, _ := s.Key("  y approve · n not: ", "yn")
	return key == 'y'
}

// prettyArgs formats a call's arguments, one a line.
func prettyArgs(args string) string {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) != nil {
		return "  " + args
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text, ok := m[k].(string)
		if !ok {
			data, err := json.Marshal(m[k])
			if err != nil {
				return "  " + args
			}
			text = string(data)
		}
		lines = append(lines, "  "+k+": "+strings.ReplaceAll(text, "\n", "\n    "))
	}
	return strings.Join(lines, "\n")
}
