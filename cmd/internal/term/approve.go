package term

import (
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

// ApproveHelp explains the answers to a question about a call that every terminal has.
const ApproveHelp = `y  run this call once
t  run it, and exactly this call again in this task, without a question
p  run it, and others that fit the pattern in this task, without a question; rules that ask or refuse still hold
w  run it, and exactly this call again in this directory, in every task, without a question; 'anamnesis rules' takes it back
a  run everything in this task without a question; asks once more
n  do not run it; you may give the model a reason
e  edit the command or the arguments; you are asked again with the result`

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

// Editable is what a user edits of a call: its command, or its arguments as JSON if it has none.
func Editable(args string) string {
	if c := Command(args); c != "" {
		return c
	}
	return op.CanonicalArgs(args)
}

// Edited returns the arguments of a call as the user edited them.
func Edited(args, text string) (string, error) {
	var m map[string]any
	if Command(args) == "" {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return "", fmt.Errorf("the arguments are not valid JSON: %w", err)
		}
		return text, nil
	}
	if err := json.Unmarshal([]byte(args), &m); err != nil {
		return "", fmt.Errorf("the arguments cannot be edited: %w", err)
	}
	m["command"] = text
	data, err := json.Marshal(m)
	return op.CanonicalArgs(string(data)), err
}
