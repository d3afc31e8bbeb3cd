package script

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/op"
)

// SyntaxError is a fault in a script, with its line.
type SyntaxError struct {
	File string
	Line int // from 1
	What string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What) }

func parse(file string, data []byte) (*Model, error) {
	if len(data) > MaxFileBytes {
		return nil, &SyntaxError{file, 1, fmt.Sprintf("the script is larger than %d MiB", MaxFileBytes>>20)}
	}
	var f struct {
		Name, Model                 string
		Turns                       *[]turn
		Subagents                   []subagentForm
		Passes, Reflections, Probes []rule
	}
	err := yaml.Load(data, &f, yaml.WithKnownFields(), yaml.WithUniqueKeys())
	switch {
	case err != nil && userfile.Empty(err):
		return nil, &SyntaxError{file, 1, "the file is empty"}
	case err != nil:
		line, what := userfile.YAML(err)
		if le, ok := errors.AsType[*yaml.LoadError](err); ok && le.Stage == yaml.ConstructorStage {
			what = strings.TrimPrefix(what, "not YAML: ")
		}
		return nil, &SyntaxError{file, line, what}
	case f.Turns == nil:
		return nil, &SyntaxError{file, 1, "the script has no `turns`"}
	}
	m := newModel(file, f.Name, *f.Turns)
	m.eas, m.passes, m.reflections, m.probes = f.Model, f.Passes, f.Reflections, f.Probes
	for _, s := range f.Subagents {
		m.subagents = append(m.subagents, subagent{agent: s.Agent, when: s.When,
			words: newModel(file, s.Agent, s.Turns)})
	}
	return m, nil
}

// load reads a node into a form without own methods.
func load(n *yaml.Node, form any) error {
	return n.Load(form, yaml.WithKnownFields(), yaml.WithUniqueKeys())
}

func fail(line int, format string, args ...any) error {
	e := &yaml.LoadError{Stage: yaml.ConstructorStage, Message: fmt.Sprintf(format, args...)}
	e.Mark.Line = line
	return &yaml.LoadErrors{Errors: []*yaml.LoadError{e}}
}

// between rejects a number that is not from lowest to highest.
func between(line int, what string, n, lowest, highest int) error {
	if n < lowest || n > highest {
		return fail(line, "`%s` must be a whole number from %d to %d, not %d", what, lowest, highest, n)
	}
	return nil
}

type subagentForm struct {
	Agent string
	When  condition
	Turns []turn
}

func (s *subagentForm) UnmarshalYAML(n *yaml.Node) error {
	type form subagentForm
	if err := load(n, (*form)(s)); err != nil {
		return err
	}
	switch {
	case s.Agent == "":
		return fail(n.Line, "a subagent needs `agent`: its name")
	case len(s.Turns) == 0:
		return fail(n.Line, "a subagent needs `turns`")
	}
	return nil
}

// UnmarshalYAML reads expectations and either one answer or alternatives.
func (t *turn) UnmarshalYAML(n *yaml.Node) error {
	var f struct {
		answerForm `yaml:",inline"`
		Expect     []condition
		Choose     *[]rule
		Until      *condition
	}
	if err := load(n, &f); err != nil {
		return err
	}
	t.line, t.expect, t.until = n.Line, f.Expect, f.Until
	switch {
	case f.Choose == nil:
		a, err := f.answer(n.Line)
		if err != nil {
			return err
		}
		t.choices = []rule{{answer: a}}
	case len(*f.Choose) == 0:
		return fail(n.Line, "`choose` has no alternatives")
	case f.given():
		return fail(n.Line, "a turn has either an answer or `choose`, not both")
	default:
		t.choices = *f.Choose
	}
	return t.checkUntil()
}

// checkUntil: a turn that may be repeated makes calls, whose results decide, and whose ids hold the place.
func (t *turn) checkUntil() error {
	if t.until == nil {
		return nil
	}
	if t.until.on != "" && t.until.on != scopeResult || len(t.until.tools) > 0 {
		return fail(t.until.line, "`until` examines the last result only")
	}
	for _, c := range t.choices {
		if len(c.answer.calls) == 0 || slices.ContainsFunc(c.answer.calls, func(c call) bool { return c.id != "" }) {
			return fail(c.answer.line, "a turn with `until` must make calls, without an `id` of their own")
		}
	}
	return nil
}

func (r *rule) UnmarshalYAML(n *yaml.Node) (err error) {
	var f struct {
		answerForm `yaml:",inline"`
		When       condition
		Expect     []condition
	}
	if err := load(n, &f); err != nil {
		return err
	}
	r.when, r.expect = f.When, f.Expect
	r.answer, err = f.answer(n.Line)
	return err
}

type answerForm struct {
	Reply, Reasoning string
	Finish           *string
	Calls            []call
	Usage            *struct{ Prompt, Cached, Completion, Reasoning int }
	Fault            *fault
	Capture          map[string]yaml.Node
}

// given reports whether the form says anything.
func (f *answerForm) given() bool {
	return f.Reply != "" || f.Reasoning != "" || f.Finish != nil || len(f.Calls) > 0 ||
		f.Usage != nil || f.Fault != nil || len(f.Capture) > 0
}

func (f *answerForm) answer(line int) (a answer, err error) {
	a = answer{line: line, text: f.Reply, reasoning: f.Reasoning, calls: f.Calls, fault: f.Fault}
	if f.Finish != nil {
		if a.finish = *f.Finish; a.finish == "" {
			return a, fail(line, "`finish` must not be empty; leave it out for the usual one")
		}
	}
	if u := f.Usage; u != nil {
		a.usage = &op.Usage{Prompt: u.Prompt, Cached: u.Cached, Completion: u.Completion, Reasoning: u.Reasoning}
		for name, n := range map[string]int{
			"prompt": u.Prompt, "cached": u.Cached, "completion": u.Completion, "reasoning": u.Reasoning,
		} {
			if err := between(line, name, n, 0, maxTokens); err != nil {
				return a, err
			}
		}
	}
	if a.text == "" && len(a.calls) == 0 && a.fault == nil {
		return a, fail(line, "an answer needs `reply`, `calls` or `fault`")
	}
	ids := make(map[string]bool)
	for _, c := range a.calls {
		if c.name == "" {
			return a, fail(max(c.line, line), "a call needs a `name`")
		}
		if c.id != "" && ids[c.id] {
			return a, fail(c.line, "the id %q occurs twice in this answer", c.id)
		}
		ids[c.id] = true
	}
	a.captures, err = captures(f.Capture)
	return a, err
}

// maxTokens bounds the numbers of a usage.
const maxTokens = 1_000_000_000

func (c *call) UnmarshalYAML(n *yaml.Node) (err error) {
	var f struct {
		ID, Name     string
		Arguments    yaml.Node
		RawArguments *string `yaml:"raw_arguments"`
	}
	if err := load(n, &f); err != nil {
		return err
	}
	*c = call{line: n.Line, id: f.ID, name: f.Name, args: "{}"}
	switch {
	case f.Arguments.Kind != 0 && f.RawArguments != nil:
		return fail(n.Line, "a call has either `arguments` or `raw_arguments`, not both")
	case f.RawArguments != nil:
		c.args = *f.RawArguments
	case f.Arguments.Kind != 0:
		c.args, err = jsonObject(&f.Arguments)
	}
	return err
}

func (f *fault) UnmarshalYAML(n *yaml.Node) error {
	form := struct {
		Times      int
		Status     *int
		RetryAfter wait `yaml:"retry_after"`
		Body       string
		Cut        *int
		Delay      *wait
	}{Times: 1}
	if err := load(n, &form); err != nil {
		return err
	}
	*f = fault{times: form.Times, retryAfter: time.Duration(form.RetryAfter), body: form.Body, cut: form.Cut}
	kinds := 0
	if form.Status != nil {
		kinds, f.status = kinds+1, *form.Status
		if err := between(n.Line, "status", f.status, 400, 599); err != nil {
			return err
		}
	}
	if form.Cut != nil {
		kinds++
		if err := between(n.Line, "cut", *form.Cut, 0, MaxFileBytes); err != nil {
			return err
		}
	}
	if form.Delay != nil {
		kinds, f.delay = kinds+1, time.Duration(*form.Delay)
	}
	switch {
	case kinds != 1:
		return fail(n.Line, "`fault` needs exactly one of `status`, `cut` and `delay`")
	case f.status == 0 && (f.retryAfter != 0 || f.body != ""):
		return fail(n.Line, "`retry_after` and `body` belong to a `status`")
	case f.body == "":
		f.body = "the script answers with an error here"
	}
	return between(n.Line, "times", f.times, 1, MaxFaultTimes)
}

// wait is a time with its unit, as in 200ms.
type wait time.Duration

func (w *wait) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > MaxDelay {
		return fail(n.Line, "%q: want a time from 0s to %v with its unit, such as 200ms", n.Value, MaxDelay)
	}
	*w = wait(d)
	return nil
}

func (c *condition) UnmarshalYAML(n *yaml.Node) error {
	var f struct {
		On                              scope
		Contains, Lacks, Matches, Tools texts
	}
	if err := load(n, &f); err != nil {
		return err
	}
	*c = condition{line: n.Line, on: f.On, contains: f.Contains, lacks: f.Lacks, tools: f.Tools}
	if !slices.Contains([]scope{"", scopeAny, scopeLast, scopeJoined, scopeSystem, scopeResult}, c.on) {
		return fail(n.Line, "`on` must be any, last, all-joined, system or result, not %q", c.on)
	}
	for _, s := range f.Matches {
		re, err := regexp.Compile(s)
		if err != nil {
			return fail(n.Line, "`matches` is not a regular expression: %v", err)
		}
		c.matches = append(c.matches, re)
	}
	if len(c.contains)+len(c.lacks)+len(c.matches)+len(c.tools) == 0 {
		return fail(n.Line, "a condition demands nothing; it needs `contains`, `lacks` or `matches`")
	}
	return nil
}

// texts are one text or a list of texts, none of them empty.
type texts []string

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
	} else if err := load(n, (*[]string)(t)); err != nil {
		return err
	}
	if len(*t) == 0 || slices.Contains(*t, "") {
		return fail(n.Line, "a text of a condition must not be empty")
	}
	return nil
}
