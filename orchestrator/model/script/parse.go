package script

import (
	"regexp"
	"slices"

	yaml "go.yaml.in/yaml/v4"

	"anamnesis/opstream/op"
)

// parse reads a whole script.
func parse(file string, data []byte) (*Model, error) {
	r := &reader{file: file}
	m := newModel(file)
	if len(data) > MaxFileBytes {
		r.fail(1, "the script is larger than %d MiB", MaxFileBytes>>20)
		return nil, r.err
	}
	root := r.document(data)
	if r.err != nil {
		return nil, r.err
	}
	hasTurns := false
	turns := func(n *yaml.Node) { hasTurns = true; m.items = r.items(n) }
	r.mapping(root, "the script", map[string]func(*yaml.Node){
		"name":        func(n *yaml.Node) { m.name = r.str(n, "`name`") },
		"model":       func(n *yaml.Node) { m.eas = r.str(n, "`model`") },
		"turns":       turns,
		"subagents":   func(n *yaml.Node) { m.subagents = r.subagents(n, file) },
		"passes":      func(n *yaml.Node) { m.passes = r.rules(n, "passes") },
		"reflections": func(n *yaml.Node) { m.reflections = r.rules(n, "reflections") },
		"probes":      func(n *yaml.Node) { m.probes = r.rules(n, "probes") },
	})
	if !hasTurns {
		r.fail(root.Line, "the script has no `turns`")
	}
	if r.err != nil {
		return nil, r.err
	}
	m.loops = loopsIn(m.items)
	return m, nil
}

// items reads turns.
func (r *reader) items(n *yaml.Node) []item {
	var out []item
	r.list(n, "`turns`", func(n *yaml.Node) { out = append(out, r.item(n)) })
	return out
}

// loopsIn reports whether some item is a loop.
func loopsIn(items []item) bool {
	return slices.ContainsFunc(items, func(it item) bool { return it.loop })
}

// subagents reads the replies of subagents.
func (r *reader) subagents(n *yaml.Node, file string) []subagent {
	var out []subagent
	r.list(n, "`subagents`", func(n *yaml.Node) {
		sub := subagent{words: newModel(file)}
		r.mapping(n, "a subagent", map[string]func(*yaml.Node){
			"agent": func(n *yaml.Node) { sub.agent = r.str(n, "`agent`") },
			"when":  func(n *yaml.Node) { sub.when = r.condition(n, "`when`", scopeJoined, everyScope(), false) },
			"turns": func(n *yaml.Node) { sub.words.items = r.items(n) },
		})
		switch {
		case sub.agent == "":
			r.fail(n.Line, "a subagent needs `agent`: its name")
		case len(sub.words.items) == 0:
			r.fail(n.Line, "a subagent needs `turns`")
		}
		sub.words.name, sub.words.loops = sub.agent, loopsIn(sub.words.items)
		out = append(out, sub)
	})
	return out
}

// item reads an entry of turns.
func (r *reader) item(n *yaml.Node) item {
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "loop" {
		return r.loop(n.Content[1])
	}
	return item{line: n.Line, turns: []turn{r.turn(n)}}
}

func (r *reader) loop(n *yaml.Node) item {
	it := item{line: n.Line, loop: true, max: DefaultRounds}
	hasUntil := false
	r.mapping(n, "`loop`", map[string]func(*yaml.Node){
		"until": func(n *yaml.Node) {
			hasUntil = true
			it.until = r.condition(n, "`until`", scopeResult, map[scope]bool{scopeResult: true}, false)
		},
		"max": func(n *yaml.Node) { it.max = r.integer(n, "`max`", 1, MaxRounds) },
		"turns": func(n *yaml.Node) {
			r.list(n, "`turns`", func(n *yaml.Node) { it.turns = append(it.turns, r.loopTurn(n)) })
		},
	})
	if !hasUntil {
		r.fail(n.Line, "a loop needs `until`: when it is left")
	}
	if len(it.turns) == 0 {
		r.fail(n.Line, "a loop needs `turns`")
		return it
	}
	// The result of a loop's last turn decides whether the loop continues. It is found by the
	// id of its call.
	last := it.turns[len(it.turns)-1]
	for _, c := range last.choices {
		if len(c.answer.calls) == 0 {
			r.fail(c.answer.line, "the last turn of a loop must make a call: its result decides whether the loop continues")
		}
		for _, call := range c.answer.calls {
			if call.id != "" {
				r.fail(call.line, "the calls of a loop's last turn must not have an `id`: the script's own id shows the position in the loop")
			}
		}
	}
	return it
}

func (r *reader) loopTurn(n *yaml.Node) turn {
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Content[0].Value == "loop" {
		r.fail(n.Line, "loops cannot be nested")
	}
	return r.turn(n)
}

// turn reads expectations and either one answer or alternatives.
func (r *reader) turn(n *yaml.Node) turn {
	t := turn{line: n.Line}
	var only answer
	only.line = n.Line
	fields := r.answerFields(&only)
	answered := false
	for name, set := range fields {
		fields[name] = func(n *yaml.Node) { answered = true; set(n) }
	}
	fields["expect"] = func(n *yaml.Node) { t.expect = r.expectations(n) }
	fields["choose"] = func(n *yaml.Node) {
		r.list(n, "`choose`", func(n *yaml.Node) { t.choices = append(t.choices, r.choice(n)) })
		if len(t.choices) == 0 {
			r.fail(n.Line, "`choose` has no alternatives")
		}
	}
	r.mapping(n, "a turn", fields)
	switch {
	case len(t.choices) > 0 && answered:
		r.fail(n.Line, "a turn has either an answer or `choose`, not both")
	case len(t.choices) == 0:
		r.checkAnswer(only)
		t.choices = []choice{{answer: only}}
	}
	return t
}

func (r *reader) choice(n *yaml.Node) choice {
	c := choice{answer: answer{line: n.Line}}
	fields := r.answerFields(&c.answer)
	fields["when"] = func(n *yaml.Node) { c.when = r.condition(n, "`when`", scopeResult, everyScope(), false) }
	r.mapping(n, "an alternative", fields)
	r.checkAnswer(c.answer)
	return c
}

func (r *reader) rules(n *yaml.Node, name string) []rule {
	var out []rule
	r.list(n, "`"+name+"`", func(n *yaml.Node) {
		ru := rule{answer: answer{line: n.Line}}
		fields := r.answerFields(&ru.answer)
		fields["when"] = func(n *yaml.Node) { ru.when = r.condition(n, "`when`", scopeJoined, everyScope(), false) }
		fields["expect"] = func(n *yaml.Node) { ru.expect = r.expectations(n) }
		r.mapping(n, "a rule of `"+name+"`", fields)
		r.checkAnswer(ru.answer)
		out = append(out, ru)
	})
	return out
}

// answerFields are the keys of an answer.
func (r *reader) answerFields(a *answer) map[string]func(*yaml.Node) {
	return map[string]func(*yaml.Node){
		"reply":     func(n *yaml.Node) { a.text = r.str(n, "`reply`") },
		"reasoning": func(n *yaml.Node) { a.reasoning = r.str(n, "`reasoning`") },
		"finish": func(n *yaml.Node) {
			if a.finish = r.str(n, "`finish`"); a.finish == "" {
				r.fail(n.Line, "`finish` must not be empty; leave it out for the usual one")
			}
		},
		"calls": func(n *yaml.Node) {
			r.list(n, "`calls`", func(n *yaml.Node) { a.calls = append(a.calls, r.call(n)) })
		},
		"usage":   func(n *yaml.Node) { a.usage = r.usage(n) },
		"fault":   func(n *yaml.Node) { a.fault = r.fault(n) },
		"capture": func(n *yaml.Node) { a.captures = r.captures(n) },
	}
}

// checkAnswer rejects an empty answer, and calls that share an id.
func (r *reader) checkAnswer(a answer) {
	if a.text == "" && len(a.calls) == 0 && a.fault == nil {
		r.fail(a.line, "an answer needs `reply`, `calls` or `fault`")
	}
	ids := make(map[string]bool)
	for _, c := range a.calls {
		if c.id != "" && ids[c.id] {
			r.fail(c.line, "the id %q occurs twice in this answer", c.id)
		}
		ids[c.id] = true
	}
}

func (r *reader) call(n *yaml.Node) call {
	c := call{line: n.Line}
	given := 0
	r.mapping(n, "a call", map[string]func(*yaml.Node){
		"id":            func(n *yaml.Node) { c.id = r.str(n, "`id`") },
		"name":          func(n *yaml.Node) { c.name = r.str(n, "`name`") },
		"arguments":     func(n *yaml.Node) { given++; c.args = r.object(n, "`arguments`") },
		"raw_arguments": func(n *yaml.Node) { given++; c.args = r.str(n, "`raw_arguments`") },
	})
	switch {
	case c.name == "":
		r.fail(n.Line, "a call needs a `name`")
	case given > 1:
		r.fail(n.Line, "a call has either `arguments` or `raw_arguments`, not both")
	case given == 0:
		c.args = "{}"
	}
	return c
}

// maxTokens bounds the numbers of a usage.
const maxTokens = 1_000_000_000

func (r *reader) usage(n *yaml.Node) *op.Usage {
	u := &op.Usage{}
	count := func(to *int, name string) func(*yaml.Node) {
		return func(n *yaml.Node) { *to = r.integer(n, "`"+name+"`", 0, maxTokens) }
	}
	r.mapping(n, "`usage`", map[string]func(*yaml.Node){
		"prompt":     count(&u.Prompt, "prompt"),
		"cached":     count(&u.Cached, "cached"),
		"completion": count(&u.Completion, "completion"),
		"reasoning":  count(&u.Reasoning, "reasoning"),
	})
	return u
}

func (r *reader) fault(n *yaml.Node) *fault {
	f := &fault{times: 1, body: "the script answers with an error here"}
	kinds, ofStatus := 0, 0
	r.mapping(n, "`fault`", map[string]func(*yaml.Node){
		"times":       func(n *yaml.Node) { f.times = r.integer(n, "`times`", 1, MaxFaultTimes) },
		"status":      func(n *yaml.Node) { kinds++; f.status = r.integer(n, "`status`", 400, 599) },
		"retry_after": func(n *yaml.Node) { ofStatus++; f.retryAfter = r.duration(n, "`retry_after`") },
		"body":        func(n *yaml.Node) { ofStatus++; f.body = r.str(n, "`body`") },
		"cut": func(n *yaml.Node) {
			kinds++
			chars := r.integer(n, "`cut`", 0, MaxFileBytes)
			f.cut = &chars
		},
		"delay": func(n *yaml.Node) { kinds++; f.delay = r.duration(n, "`delay`") },
	})
	switch {
	case kinds != 1:
		r.fail(n.Line, "`fault` needs exactly one of `status`, `cut` and `delay`")
	case ofStatus > 0 && f.status == 0:
		r.fail(n.Line, "`retry_after` and `body` belong to a `status`")
	}
	return f
}

func everyScope() map[scope]bool {
	return map[scope]bool{scopeAny: true, scopeLast: true, scopeJoined: true, scopeSystem: true, scopeResult: true}
}

func (r *reader) expectations(n *yaml.Node) []expectation {
	var out []expectation
	r.list(n, "`expect`", func(n *yaml.Node) {
		out = append(out, r.condition(n, "an expectation", scopeAny, everyScope(), true))
	})
	return out
}

// condition reads demands; on is the default scope.
func (r *reader) condition(n *yaml.Node, what string, on scope, allowed map[scope]bool, tools bool) condition {
	c := condition{line: n.Line, on: on}
	fields := map[string]func(*yaml.Node){
		"on": func(n *yaml.Node) {
			if c.on = scope(r.str(n, "`on`")); !allowed[c.on] {
				if len(allowed) == 1 {
					r.fail(n.Line, "%s looks at the last result only", what)
				}
				r.fail(n.Line, "`on` must be any, last, all-joined, system or result, not %q", c.on)
			}
		},
		"contains": func(n *yaml.Node) { c.contains = r.strs(n, "`contains`") },
		"lacks":    func(n *yaml.Node) { c.lacks = r.strs(n, "`lacks`") },
		"matches": func(n *yaml.Node) {
			for _, s := range r.strs(n, "`matches`") {
				re, err := regexp.Compile(s)
				if err != nil {
					r.fail(n.Line, "`matches` is not a regular expression: %v", err)
					return
				}
				c.matches = append(c.matches, re)
			}
		},
	}
	if tools {
		fields["tools"] = func(n *yaml.Node) { c.tools = r.strs(n, "`tools`") }
	}
	r.mapping(n, what, fields)
	if len(c.contains)+len(c.lacks)+len(c.matches)+len(c.tools) == 0 {
		r.fail(n.Line, "%s demands nothing; it needs `contains`, `lacks` or `matches`", what)
	}
	return c
}
