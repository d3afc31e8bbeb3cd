package repair

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/shell"
)

// slip reports whether the failure was of the agent's own making, which holds no lesson: it had
// just written what the interpreter or compiler could not read, had broken a file so that a
// name is not there, or its own class lacks an attribute.
func (w *walk) slip(p *Pair) bool {
	line, before := p.Failure.Line, slices.Concat(w.changes[:p.Failed+1]...)
	if m := ownPart().FindStringSubmatch(line); m != nil {
		defines := regexp.MustCompile(`^\s*(class|def) ` + m[1] + m[3] + `\b`)
		own := func(c edit.Change) bool { return slices.ContainsFunc(c.Added, defines.MatchString) }
		return slices.ContainsFunc(before, own) || m[2] != "" && slices.ContainsFunc(before, func(c edit.Change) bool { return edits(c, m[2]) })
	}
	name := undefined().FindStringSubmatch(line)
	if name == nil && !unreadable().MatchString(line) {
		return false
	}
	file, _, _ := strings.Cut(p.Failure.Place, ":")
	file = file[strings.LastIndexByte(file, '/')+1:]
	uses := func(l string) bool { return name != nil && slices.Contains(edit.Names(l), name[1]) }
	if uses(p.Command) || name == nil && strings.HasPrefix(file, "<") {
		return true // the command's own text
	}
	return slices.ContainsFunc(before, func(c edit.Change) bool { return slices.ContainsFunc(c.Added, uses) || edits(c, file) })
}

// edits reports whether a change is of a file, or names it.
func edits(c edit.Change, file string) bool {
	return file != "" && (strings.HasSuffix(c.Path, file) || c.Path == "" && strings.Contains(strings.Join(c.Added, "\n"), file))
}

// noModule matches the failure of a program whose module is missing.
var noModule = shell.Pattern(`\b(?:No module named|Cannot find module|cannot find package) ['"]?([\w./@-]+)`)

// aboutMissing returns the changes: where a module is missing, those that name it, by a line or by the
// place of its file. Others belong to the task.
func (p *Pair) aboutMissing(changes []edit.Change) []edit.Change {
	m := noModule().FindStringSubmatch(p.Failure.Line)
	if m == nil {
		return changes
	}
	name := m[1][strings.LastIndexAny(m[1], "./")+1:]
	names := func(l string) bool { return strings.Contains(l, name) }
	return slices.DeleteFunc(slices.Clone(changes), func(c edit.Change) bool {
		return !names(c.Path) && !slices.ContainsFunc(c.Added, names) && !slices.ContainsFunc(c.Removed, names)
	})
}

// RunBefore returns the commands that changed the environment: where a module or a program is missing, those
// that name it, if any does or it was called another way.
func (p *Pair) RunBefore() []string {
	m := noProgram().FindStringSubmatch(p.Failure.Line)
	if m == nil {
		return p.Environment
	}
	name := (m[1] + m[2])[strings.LastIndexAny(m[1]+m[2], "./")+1:]
	named := slices.DeleteFunc(slices.Clone(p.Environment), func(e string) bool { return !strings.Contains(e, name) })
	if len(named) > 0 || p.Other || !p.sameCommand() {
		return named
	}
	return p.Environment
}

var noProgram = shell.Pattern(`No module named ['"]?([\w./@-]+)|(?:^|: )([\w.-]+): command not found`)

// Made returns the name of a missing module that commands of the repair made, or "".
func (p *Pair) Made() string {
	if m := noModule().FindStringSubmatch(p.Failure.Line); m != nil {
		if name := m[1][strings.LastIndexAny(m[1], "./")+1:]; slices.ContainsFunc(p.Environment, func(e string) bool { return strings.Contains(e, name) }) {
			return name
		}
	}
	return ""
}

// otherQuestion reports whether all that is known of the repair is that a program in the command
// line succeeded that no longer uses the name that was missing.
func (p *Pair) otherQuestion() bool {
	m := lacking().FindStringSubmatch(p.Failure.Line)
	return m != nil && mainOf(actions(p.Works)).inline && len(p.Changes)+len(p.Environment) == 0 && !strings.Contains(p.Works, m[1])
}

// lacking matches the name that a module or an object lacks.
var lacking = shell.Pattern(`(?:No module named|cannot import name|has no attribute) '(\w+)`)

// tookBack reports whether all that the repair did was to take back edits that the agent
// had made before the failure.
func (w *walk) tookBack(p *Pair) bool {
	before, gone := map[string]bool{}, map[string]bool{}
	for _, made := range w.changes[:p.Failed+1] {
		for _, c := range made {
			for _, l := range c.Removed {
				gone[strings.TrimSpace(l)] = true
			}
			for _, l := range c.Added {
				before[strings.TrimSpace(l)] = true
			}
		}
	}
	return len(p.Changes) > 0 && len(p.Environment) == 0 && !slices.ContainsFunc(p.Changes, func(c edit.Change) bool {
		return slices.ContainsFunc(c.Added, func(l string) bool {
			old, now, changed := edit.CutChanged(l)
			return !changed && !gone[strings.TrimSpace(l)] || changed && !before[strings.TrimSpace(edit.ChangedLine(now, old))]
		})
	})
}

// mended reports whether all that the repair did was to change lines again that the agent had
// added to files of the project before the failure.
func (w *walk) mended(p *Pair) bool {
	added, own := map[string]bool{}, map[string]bool{}
	for _, made := range w.changes[:p.Failed+1] {
		for _, c := range made {
			own[c.Path] = own[c.Path] || c.Whole != nil
			for _, l := range c.Added {
				if _, now, ok := edit.CutChanged(l); ok {
					l = now
				}
				added[strings.TrimSpace(l)] = true
			}
		}
	}
	within := func(old string) bool {
		for l := range added {
			if strings.Contains(l, strings.TrimSpace(old)) {
				return true
			}
		}
		return false
	}
	return len(p.Changes) > 0 && len(p.Environment) == 0 && !slices.ContainsFunc(p.Changes, func(c edit.Change) bool {
		return own[c.Path] || slices.ContainsFunc(c.Added, func(l string) bool {
			old, _, changed := edit.CutChanged(l)
			return !changed || !within(old)
		})
	})
}

var (
	undefined  = shell.Pattern(`\bNameError: name '(\w+)' is not defined`)
	ownPart    = shell.Pattern(`\bImportError: cannot import name '(\w+)'(?: from .*\((?:.*/)?([\w.-]+)\))?|\bAttributeError: '(\w+)' object has no attribute`)
	unreadable = shell.Pattern(`\b(Indentation|Tab)Error\b|\bSyntaxError: (invalid (syntax|character|decimal)|(unexpected )?EOF|EOL|unterminated|unmatched|unexpected (indent|character)|expected|closing|f-string|.* was never closed)|\b(imported|declared) and not used\b`)
)

var testRunner = shell.Pattern(`^(pytest|unittest|nose2?|jest|vitest|mocha)$`)

// wroteMissing reports whether the failed command was to run a program or a test that was
// not there, and the changes wrote it: the agent had only not written it yet.
func wroteMissing(p Pair, changes []edit.Change) bool {
	return unstarted().MatchString(p.Failure.Line) && slices.ContainsFunc(changes, func(c edit.Change) bool {
		return c.Whole != nil && strings.Contains(p.Failure.Line, c.Path) && slices.ContainsFunc(programFiles(p.Command), func(f string) bool { return edit.SamePath(f, c.Path) })
	})
}

// programFiles is the program, or the files of tests, that a command runs.
func programFiles(command string) []string {
	a := mainOf(actions(command))
	switch {
	case a.script:
		return []string{a.program}
	case testRunner().MatchString(a.program):
		return a.args
	}
	return nil
}

// General reports whether a repair helps other tasks by itself: the command's program was missing, and another
// one was called that is no program in the command line. What one task did otherwise seldom helps another: of
// such cards readers keep few, and most of those that two tasks agree on.
func (p *Pair) General() bool {
	a := newProblem(p.Repo, p.Command, p.Failure)
	return a.missing && len(p.Changes) == 0 && !p.sameCommand() && !mainOf(actions(p.Works)).inline
}

// Changed reports whether the pair says anything beside that the command succeeded.
func (p *Pair) Changed() bool {
	return len(p.Changes)+len(p.Environment) > 0 || !p.sameCommand()
}

// Tells reports whether the pair says what made the difference: more than that the
// command succeeded, or that one did which had failed before, or that a test now expects
// what it got. That a file to remove was gone already is no failure, and that another one
// than the file that is not there can be read is no repair, nor that other tests pass or that a
// version is asked otherwise.
func (p *Pair) Tells() bool {
	if gone().MatchString(p.Failure.Line) && len(p.Environment) == 0 || p.elsewhere() || p.otherTests() || p.otherQuestion() || p.flips() || !p.Other && len(p.Changes) > 0 && !slices.ContainsFunc(p.Changes, func(c edit.Change) bool { return slices.ContainsFunc(c.Added, works) }) {
		return false
	}
	if versionAsked().MatchString(p.Command) && len(p.Changes)+len(p.Environment) == 0 {
		return false
	}
	if slices.ContainsFunc(shell.Fields(p.Command), listsOnly) || p.fragments() {
		return false
	}
	again := slices.ContainsFunc(p.Tried, func(t Attempt) bool { return SameCommand(t.Command, p.Works) })
	return p.Changed() && !(again && len(p.Changes)+len(p.Environment) == 0)
}

// listsOnly reports whether an argument makes a program list or explain, so that it runs nothing.
func listsOnly(arg string) bool {
	return slices.Contains([]string{"--fixtures", "--collect-only", "--co", "--help", "--list", "--version"}, arg)
}

// fragments reports whether all that was changed are parts of lines that hold no name, such as "))":
// they cannot be found again.
func (p *Pair) fragments() bool {
	return len(p.Changes) > 0 && len(p.Environment) == 0 && !p.Other && !slices.ContainsFunc(p.Changes, func(c edit.Change) bool {
		return slices.ContainsFunc(c.Added, func(l string) bool {
			old, _, changed := edit.CutChanged(l)
			return !changed || strings.ContainsFunc(old, unicode.IsLetter)
		})
	})
}

// otherTests reports whether all that is known of the repair is that a run of other tests
// succeeded. What a task called first after it went back took the place of the path that it left.
func (p *Pair) otherTests() bool {
	if p.Instead || p.Other || len(p.Changes)+len(p.Environment) > 0 || missing().MatchString(p.Failure.Line) || !strings.Contains(mainOf(actions(p.Works)).program, "test") {
		return false
	}
	had := shell.Fields(p.Command)
	return !slices.ContainsFunc(shell.Fields(p.Works), func(w string) bool {
		return !slices.Contains(had, w) && (strings.HasPrefix(w, "-") || strings.Contains(w, "="))
	})
}

// flips reports whether a check failed, and all that is known of the repair is that the
// test or script which makes the check was changed: it then expects what it got.
func (p *Pair) flips() bool {
	checks := programFiles(p.Command)
	return len(p.Changes) > 0 && len(p.Environment) == 0 && checked().MatchString(p.Failure.Line) && !slices.ContainsFunc(p.Changes, func(c edit.Change) bool {
		return !testFile().MatchString(c.Path) && !slices.ContainsFunc(checks, func(f string) bool { return edit.SamePath(f, c.Path) })
	})
}

var (
	checked  = shell.Pattern(`^(?:E\s+)?(?:AssertionError|assert\b|Failed: |FAIL(?:ED|URE)?\b)`)
	testFile = shell.Pattern(`(?i)(?:^|/)(?:tests?|testing|spec|__tests__)/|(?:^|[/_.-])tests?[_.-]|[._-](?:test|spec)s?\.\w+$`)
)

// elsewhere reports whether an agent looked for a file that is not there, and then only at
// something else.
func (p *Pair) elsewhere() bool {
	m := absent().FindStringSubmatch(p.Failure.Line)
	if m == nil || len(p.Changes)+len(p.Environment) > 0 {
		return false
	}
	name, _, _ := strings.Cut(m[1][strings.LastIndexByte(m[1], '/')+1:], ".")
	return name != "" && !strings.Contains(p.Works, name)
}

// works reports whether a changed line may change what a program does: it is no assertion
// of a test, no comment, no print, and more than the head of a block.
func works(l string) bool {
	return !assertion().MatchString(l) && !comment().MatchString(l) && !chats(l) && !header().MatchString(l)
}

var (
	assertion = shell.Pattern(`^\s*(self\.)?(assert|expect)`)
	header    = shell.Pattern(`^\s*(class|def|else|try|except|finally)\b[^→]*:$`)
	absent    = shell.Pattern(`^(?:ls|cat|head|tail|find|stat|wc|grep|sed|tree|file): .*?([^\s':]+)'?: No such file or directory$`)
	gone      = shell.Pattern(`^(rm|rmdir|unlink): .*: No such file or directory$`)
)
