package agent

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"anamnesis/opstream/op"
)

//go:embed prompt/families.yaml
var familiesYAML []byte

// family is a group of models that need other words than the prompt has.
type family struct {
	Models  []string `yaml:"models"`  // patterns of names
	Without []string `yaml:"without"` // beginnings of lines that are left out
	Add     string   `yaml:"add"`
}

func families() (all []family) {
	if err := yaml.Load(familiesYAML, &all, yaml.WithKnownFields()); err != nil {
		panic(fmt.Sprintf("agent: families.yaml: %v", err)) // it is a part of the program
	}
	return all
}

// ForModel returns the prompt of an agent in words for a model. A prompt that a user wrote stays as it is.
func ForModel(s *Spec, model string) string {
	if !strings.HasPrefix(s.From, embeddedPrefix) {
		return s.Prompt
	}
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, f := range families() {
		if !slices.ContainsFunc(f.Models, func(pattern string) bool { return matches(pattern, name) }) {
			continue
		}
		lines := slices.DeleteFunc(strings.Split(s.Prompt, "\n"), func(line string) bool {
			return slices.ContainsFunc(f.Without, func(begin string) bool { return strings.HasPrefix(line, begin) })
		})
		text := strings.Join(lines, "\n")
		if f.Add != "" {
			head, rest, _ := strings.Cut(text, "\n\n")
			text = head + "\n\n" + f.Add + "\n" + rest
		}
		return text
	}
	return s.Prompt
}

// Unattended is the part of a system prompt for a task that no user watches. waits: a question waits for an
// answer from elsewhere.
func Unattended(waits bool, l op.Limits) string {
	question := "a question is not answered. Decide what serves the request, and say at the end what you assumed."
	if waits {
		question = "a question stops the work until somebody answers it, perhaps for hours. Ask only what you can " +
			"neither find out nor decide."
	}
	var limits []string
	if l.Steps > 0 {
		limits = append(limits, fmt.Sprintf("%d steps in a turn", l.Steps))
	}
	if l.Tokens > 0 {
		limits = append(limits, fmt.Sprintf("%d tokens", l.Tokens))
	}
	if l.USD > 0 {
		limits = append(limits, fmt.Sprintf("$%.2f", l.USD))
	}
	if l.Time > 0 {
		limits = append(limits, l.Time.String())
	}
	text := "Nobody watches this task\n- Nobody is at a terminal: " + question
	if len(limits) > 0 {
		text += "\n- The task may use " + strings.Join(limits, ", ") +
			". You are told when a quarter, half and three quarters of that are used."
	}
	return text + "\n- Your last message, the paths that you left and your reasons are read afterwards, in a report."
}
