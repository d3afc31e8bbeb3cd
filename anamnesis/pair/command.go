package pair

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// prepares are the programs that say nothing about what a shell line is for.
var prepares = shell.Set(`cd echo printf cat export set source . true false :
	sleep rm cp mv mkdir touch chmod tee sed exit`)

// interpreter matches a program that reads its program from standard input if it is given none.
var interpreter = shell.Pattern(`^(python|pypy|node|ruby|perl|php|bash|sh|zsh)[\d.]*$`)

// Main returns the command that a shell line is about: the last one that does not only prepare
// another or filter its output. A here document that the command reads belongs to it. Main returns
// an empty string if the line only prepares, or if its command runs a program that it does not hold.
func Main(line string) string {
	text, _ := mainPart(line)
	return text
}

// mainPart returns what Main does, and the words of that command; no words if it reads a here
// document.
func mainPart(line string) (text string, words []string) {
	parts := shell.Parts(line)
	tee := func(p shell.Part) bool { return p.Program() == "tee" }
	if slices.ContainsFunc(parts, readsDocument) && !slices.ContainsFunc(parts, tee) {
		return strings.TrimSpace(line), nil
	}
	for _, p := range slices.Backward(parts) {
		if p.Piped || prepares[p.Words[0].Text] {
			continue
		}
		for _, a := range p.Assigns {
			words = append(words, a.Name+"="+a.Value.Text)
		}
		for _, w := range p.Words {
			words = append(words, w.Text)
		}
		if interpreter().MatchString(p.Program()) && (len(p.Words) == 1 || slices.Contains(words, "-")) {
			return "", nil // two of these may run different programs
		}
		return p.Text, words
	}
	return "", nil
}

// readsDocument reports whether a command reads a here document and does not only copy it to a file.
func readsDocument(p shell.Part) bool {
	here := func(r shell.Redirect) bool { return r.Op == "<<" || r.Op == "<<-" }
	return slices.ContainsFunc(p.Redirects, here) && !slices.ContainsFunc(p.Redirects, shell.Redirect.Writes)
}

// SameCommand reports whether two shell lines are equal but for blanks, or are about the same command, whatever
// prepares it and wherever its output goes.
func SameCommand(a, b string) bool {
	if slices.Equal(strings.Fields(a), strings.Fields(b)) {
		return true
	}
	key := commandKey(a)
	return key != "" && key == commandKey(b)
}

// commandKey is equal for shell lines that are about the same command.
func commandKey(line string) string {
	text, words := mainPart(line)
	if words == nil {
		return strings.Join(strings.Fields(text), " ")
	}
	return strings.Join(words, "\x00")
}
