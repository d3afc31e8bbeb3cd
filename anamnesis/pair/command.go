package pair

import (
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// prepares are the programs that say nothing about what a shell line is for.
var prepares = shell.Set("cd echo printf cat export set source . true false : sleep rm cp mv mkdir touch chmod tee sed exit")

// interpreter matches a program that reads its program from standard input if it is given none.
var interpreter = shell.Pattern(`^(python|pypy|node|ruby|perl|php|bash|sh|zsh)[\d.]*$`)

// Main returns the command that a shell line is about: the last one that does not only prepare
// another or filter its output. A here document that the command reads belongs to it. Main returns
// an empty string if the line only prepares, or if its command runs a program that it does not hold.
func Main(line string) string {
	body, docs := shell.Heredocs(line)
	if slices.ContainsFunc(docs, func(d shell.Heredoc) bool { return d.File == "" }) {
		return strings.TrimSpace(line)
	}
	main := ""
	for _, p := range shell.Parts(body) {
		if words := shell.Fields(p.Text); !p.Piped && len(words) > 0 && !prepares[words[0]] {
			main = p.Text
		}
	}
	words := shell.Fields(main)
	if len(words) > 0 && interpreter().MatchString(path.Base(words[0])) && (len(words) == 1 || slices.Contains(words, "-")) {
		return "" // two of these may run different programs
	}
	return main
}

// Same reports whether two shell lines are equal but for blanks, or are about the same command, whatever
// prepares it and wherever its output goes.
func Same(a, b string) bool {
	if slices.Equal(strings.Fields(a), strings.Fields(b)) {
		return true
	}
	key := commandKey(a)
	return key != "" && key == commandKey(b)
}

// commandKey is equal for shell lines that are about the same command.
func commandKey(line string) string {
	main := Main(line)
	if strings.Contains(main, "<<") {
		return strings.Join(strings.Fields(main), " ")
	}
	return strings.Join(shell.Fields(main), "\x00")
}
