package names

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/attention"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/orchestrator/session"
)

// maxOffered is how many names a completion offers, the newest tasks and steps first.
const maxOffered = 200

type Source struct {
	Service func() (*session.Service, error)
	Models  func() []string
}

// Complete adds to each command below root the completion of its arguments, by the words of
// its usage line, and of its flags.
func (s Source) Complete(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		s.Complete(cmd)
	}
	if words := placeholders(root.Use); len(words) > 0 && root.ValidArgsFunction == nil && !root.HasSubCommands() {
		root.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			return s.arguments(words, args, root.Parent())
		}
	}
	for flag, offer := range map[string]func() []string{
		"model": s.Models, "reflect-model": s.Models, "task": s.tasks,
		"approval":   func() []string { return []string{"ask", "edits", "auto", "deny"} },
		"when-asked": func() []string { return []string{"wait", "refuse", "stop"} },
		"sandbox":    func() []string { return []string{"world", "read-only", "off"} },
	} {
		if root.Flags().Lookup(flag) != nil {
			_ = root.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion,
				cobra.ShellCompDirective) {
				return offer(), cobra.ShellCompDirectiveNoFileComp
			}) // fails only if the flag has one already
		}
	}
}

// placeholders are the words for the arguments in a usage line: TASK, STEP, ID….
func placeholders(use string) []string {
	words := strings.Fields(use)
	return words[min(1, len(words)):]
}

// arguments offers completions after some arguments.
func (s Source) arguments(words, args []string, parent *cobra.Command) ([]cobra.Completion, cobra.ShellCompDirective) {
	at := len(args)
	if last := len(words) - 1; at > last {
		if !strings.Contains(words[last], "…") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		at = last
	}
	plain := func(i int) string { return strings.Trim(words[i], "[]….") }
	switch word := plain(at); {
	case word == "TASK":
		out := s.tasks()
		if len(words) > 1 && strings.HasPrefix(words[0], "[") && isStep(plain(1)) {
			out = append(out, s.steps("")...)
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	case isStep(word) && at > 0 && plain(0) == "TASK":
		return s.steps(args[0]), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	case parent.Name() == "kb" && (word == "ID" || word == "OLD" || word == "NEW"):
		return s.cards(parent), cobra.ShellCompDirectiveNoFileComp
	case word == "MODEL":
		return s.Models(), cobra.ShellCompDirectiveNoFileComp
	case strings.Contains(word, "|") && word == strings.ToLower(word):
		return strings.Split(word, "|"), cobra.ShellCompDirectiveNoFileComp
	case strings.HasPrefix(word, "FILE") || strings.HasPrefix(word, "PATH") || word == "DIR":
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func isStep(word string) bool { return word == "STEP" || word == "A" || word == "B" }

// about returns a name with a description for the shell.
func about(name, text string) string {
	return cobra.CompletionWithDesc(name, term.Line(text, 60))
}

// tasks offers tasks, the newest first; none if they cannot be read.
func (s Source) tasks() []string {
	svc, err := s.Service()
	if err != nil {
		return nil
	}
	rows, err := svc.Tasks()
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range slices.Backward(rows) {
		if r.Parent == "" && len(out) < maxOffered {
			out = append(out, about(r.ID, r.Title()))
		}
	}
	return out
}

// steps offers the steps of a task, the newest first; without a task those of the directory's
// last one.
func (s Source) steps(task string) []string {
	svc, err := s.Service()
	if err != nil {
		return nil
	}
	if task == "" {
		task, err = svc.LastTask(".")
	} else {
		task, err = Task(svc.Home, task)
	}
	if err != nil {
		return nil
	}
	tl, err := timeline.Read(svc.Home, task)
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range slices.Backward(tl.Rows) {
		if r.Kind == timeline.RowStep && len(out) < maxOffered {
			out = append(out, about(fmt.Sprint(r.Step), r.Text))
		}
	}
	return out
}

// cards offers the cards of the folder that kb's flags name.
func (s Source) cards(kb *cobra.Command) []string {
	svc, err := s.Service()
	if err != nil {
		return nil
	}
	dir := kb.PersistentFlags().Lookup("kb").Value.String()
	store, err := svc.Cards(dir, knowledgebase.Options{})
	if err != nil {
		return nil
	}
	defer store.Close()
	var out []string
	for _, e := range store.List() {
		if len(out) < maxOffered {
			out = append(out, about(e.ID, e.Topic))
		}
	}
	return out
}

// Models returns the models that a table spells out.
func Models(t *attention.Table) (names []string) {
	if t == nil {
		return nil
	}
	for _, r := range t.Rows() {
		names = append(names, attention.Names(r.Pattern)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
