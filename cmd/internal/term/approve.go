package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/research"
)

// QuestionTitle names what a question about a call is about.
func QuestionTitle(q gate.Question) string {
	if q.Name == approval.Network {
		return "Network access of a command"
	}
	return Line(q.Name, 80)
}

// QuestionReason returns what a call runs or reaches, and the mode or the rule that asks about it.
func QuestionReason(q gate.Question) string {
	var parts []string
	line := Command(q.Args)
	switch {
	case q.Name == approval.Network:
		parts = append(parts, "it could reach every host")
		for _, s := range (research.Rules{}).Subjects("Bash", q.Args) {
			parts = append(parts, "names "+s.String())
		}
	case line != "":
		parts = append(parts, runs(line))
	}
	switch kind, what, _ := strings.Cut(q.Why, ":"); kind {
	case "mode":
		parts = append(parts, "asked because approval is "+what)
	case "autorun":
		parts = append(parts, "asked because other programs run by themselves what it writes: "+what)
	case "rule":
		parts = append(parts, "asked by the rule "+what)
	}
	return Clean(strings.Join(parts, " · "))
}

// QuestionBody is a recorded question with everything that it is about.
func QuestionBody(b *op.QuestionAsked) string {
	text := b.Text
	if b.About == op.AboutCall {
		q := gate.QuestionOf(b)
		text = QuestionTitle(q) + "\n" + PrettyArgs(b.Args) + "\n  " + QuestionReason(q)
	}
	if b.Task != "" {
		text = "The subagent " + b.Task + " asks. " + text
	}
	return Clean(text)
}

// runs names the programs of a command line, and the files that its redirections write.
func runs(line string) string {
	var names, written []string
	parsed, err := shell.Parse(line)
	for _, c := range parsed {
		for _, r := range c.Redirects {
			if r.Writes() && !slices.Contains(written, r.File.Text) {
				written = append(written, r.File.Text)
			}
		}
		if len(c.Words) > 0 && !slices.Contains(names, c.Words[0].Text) {
			names = append(names, c.Words[0].Text)
		}
	}
	if hidden := shell.Hidden(line); hidden != "" {
		return "cannot be read with certainty: " + hidden
	}
	if err != nil || len(names)+len(written) == 0 {
		return "cannot be read as a command line"
	}
	var parts []string
	if len(names) > 0 {
		parts = append(parts, "runs "+strings.Join(names, ", "))
	}
	if len(written) > 0 {
		parts = append(parts, "writes "+strings.Join(written, ", "))
	}
	return strings.Join(parts, " · ")
}

// Command is a call's command line; empty where it has none.
func Command(args string) string {
	var a struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(args), &a) // other arguments have no command
	return a.Command
}

// Editable returns what a user edits of a call: the first of some arguments that is a text, with its name, or else all
// arguments as JSON, one a line.
func Editable(args string, names ...string) (name, text string) {
	var m map[string]any
	_ = json.Unmarshal([]byte(args), &m) // other arguments are edited as they are
	for _, name := range names {
		if text, ok := m[name].(string); ok && text != "" {
			return name, text
		}
	}
	var sb bytes.Buffer
	if json.Indent(&sb, []byte(op.CanonicalArgs(args)), "", "  ") != nil {
		return "", args
	}
	return "", sb.String()
}

// Edited returns the arguments of a call with a text that the user edited: see Editable.
func Edited(args, name, text string) (string, error) {
	var m map[string]any
	if name == "" {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return "", fmt.Errorf("the arguments are not valid JSON: %w", err)
		}
		return op.CanonicalArgs(text), nil
	}
	if err := json.Unmarshal([]byte(args), &m); err != nil {
		return "", fmt.Errorf("the arguments cannot be edited: %w", err)
	}
	if was, _ := m[name].(string); !strings.HasSuffix(was, "\n") { // editors end a text with one
		text = strings.TrimSuffix(text, "\n")
	}
	m[name] = text
	data, err := json.Marshal(m)
	return op.CanonicalArgs(string(data)), err
}
