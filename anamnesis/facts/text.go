package facts

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// plausible matches names that programs have, and not the first word of a sentence that was run as a command.
var plausible = shell.Pattern(`^[a-z][a-z0-9_+-]{1,20}$`)

// prose are words that stand at the beginning of a line of text.
var prose = shell.Set("to the it is this that these you we and or in of an as for with from note output here then first next now there")

// maxTokens bounds a text, at four bytes a token.
const maxTokens = 150

// World answers at a task's start what is there now; nil functions know nothing.
type World struct {
	File    func(name string) bool // whether a path of the repository exists
	Program func(name string) bool // whether a program can be started
}

// Tell chooses the facts that a task is told at its start, and words them. Nothing is told of what the world contradicts.
func Tell(all []Fact, w World) (text string, told []Fact) {
	n := map[Kind]int{}
	var lines []string
	size := 0
	for _, f := range all {
		if n[f.Kind] >= most[f.Kind] || prose[f.Match] || w.contradicts(&f) || f.repeats(told) {
			continue
		}
		line := f.String()
		if size += len(line) + 1; size > 4*maxTokens {
			break
		}
		n[f.Kind]++
		lines, told = append(lines, line), append(told, f)
	}
	return strings.Join(lines, "\n"), told
}

// contradicts reports whether what a fact names is gone, or is there although it should not.
func (w World) contradicts(f *Fact) bool {
	words := strings.Fields(f.Match)
	if f.Kind == Missing || f.Kind == Never && len(words) == 1 {
		return w.Program != nil && !strings.Contains(f.Match, "/") && w.Program(f.Match)
	}
	if w.File == nil || f.Kind == FailsAnyway {
		return false
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return script().MatchString(word) && !w.File(strings.TrimSuffix(f.Dir+"/", "/")+word) && !w.File(word)
	})
}

// script matches a relative path of a program's text.
var script = shell.Pattern(`^[\w.][\w./-]*\.(?:py|sh|js|ts|rb|php|pl)$`)

// repeats reports whether an earlier fact says the same.
func (f *Fact) repeats(told []Fact) bool {
	return slices.ContainsFunc(told, func(t Fact) bool {
		switch {
		case f.Kind == Works && t.Kind == Works:
			return strings.HasSuffix(f.Match, t.Match) && strings.HasSuffix(strings.TrimSuffix(f.Match, t.Match), "/") && f.Match != t.Match
		}
		return false
	})
}

// String words a fact in one line.
func (f *Fact) String() string {
	if f.Line != "" {
		return f.Line
	}
	count := fmt.Sprintf("%d of %d tasks", f.Seen, f.Of)
	switch f.Kind {
	case Works:
		s := "`" + strings.TrimSpace(f.Match+" "+f.Args) + "` runs tests (" + count
		if f.Setup != "" {
			s += fmt.Sprintf("; after `%s` in %d", f.Setup, f.SetupN)
		}
		return s + ")."
	case Never:
		return "`" + f.Match + "` never ran a test (" + count + ")."
	case Missing:
		return "`" + f.Match + "` is not installed (" + count + ")."
	case Timeout:
		return "`" + f.Match + "` was ended by the time limit (" + count + ")."
	}
	return "`" + f.Match + "` failed in " + count + " that name it, whatever they changed."
}

// Source says where a fact was seen: how it is named, when, by whom, and the tasks behind it.
func (f *Fact) Source() string {
	s := f.ID() + ", last seen " + f.Last.Local().Format("2006-01-02")
	if len(f.Agents) > 0 {
		s += " by " + strings.Join(f.Agents, ", ")
	}
	if len(f.Envs) > 0 {
		s += " on " + strings.Join(f.Envs, ", ")
	}
	s += ": " + strings.Join(f.Tasks, " ")
	if len(f.Others) > 0 {
		s += "; otherwise in " + strings.Join(f.Others, " ")
	}
	return s
}

// Find returns the fact of a list that a user names: by its ID, or by its words if these name one.
func Find(list []Fact, name string) *Fact {
	var found *Fact
	for i := range list {
		if list[i].ID() == name {
			return &list[i]
		}
		if list[i].Match == name {
			if found != nil {
				return nil
			}
			found = &list[i]
		}
	}
	return found
}
