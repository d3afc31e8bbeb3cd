package term

import (
	"encoding/json"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
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
