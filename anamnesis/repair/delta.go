package repair

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/shell"
)

// maxDeltaLines is the length of what a pair quotes of the changes.
const maxDeltaLines = 40

// environment recognises commands that change what later commands find.
var environment = shell.Pattern(`^(?:sudo\s+)?(?:(?:python[\d.]* -m )?pip[\d.]* (?:install|uninstall)|uv (?:pip|add|sync)|conda |poetry (?:add|install)|npm (?:i|install|ci)\b|yarn (?:add|install)|pnpm (?:add|i|install)|apt(?:-get)? |apk add|dnf |brew |go (?:get|install|mod)|cargo (?:add|install)|gem install|bundle|export |source |\. |ln |chmod |chown |mkdir |touch |createdb|git (?:submodule|config)|docker (?:pull|build)|systemctl |service |[A-Z_]+=[^\s$]*$)`)

// versionLike matches the part of a line that names a version, with the name before it.
var versionLike = shell.Pattern(`^[\w ,.@+-]{0,20}?(?:\d+\.\d|\bv\d|(?i:version)\W{1,3}\d)[\w.+-]*`)

var versionAsked = shell.Pattern(`(--version|\s-V\b|__version__|\bversion\b)`)

// chatter recognises lines of an edit that say nothing a repair needs: output,
// closing brackets, the marks of a long text.
var chatter = shell.Pattern(`^\s*("""|'''|/\*+|\*+/?|print\(|console\.log|fmt\.Print|echo\b|pass$|[\])}]+[,;]?$)`)

// chats reports whether a line says nothing that a repair needs. One that took the place
// of another does.
func chats(line string) bool {
	_, _, changed := edit.CutChanged(line)
	return chatter().MatchString(line) && (!changed || strings.Contains(line, "DEBUG"))
}

var generated = shell.Pattern(`(^|/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|go\.sum|poetry\.lock|uv\.lock|Gemfile\.lock|composer\.lock|dist/|build/|node_modules/|vendor/|__pycache__/)|\.(min\.js|map|snap|pb\.go)$`)

// cutDelta orders the changes, those that the text names first and generated
// ones last, and keeps at most maxDeltaLines lines.
func cutDelta(changes []edit.Change, named string) []edit.Change {
	rank := func(c edit.Change) int {
		switch {
		case generated().MatchString(c.Path):
			return 2
		case c.Path != "" && strings.Contains(named, c.Path[strings.LastIndexByte(c.Path, '/')+1:]):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(changes, func(a, b edit.Change) int { return rank(a) - rank(b) })
	var out []edit.Change
	left := maxDeltaLines
	for _, c := range changes {
		lines := slices.DeleteFunc(slices.Clone(c.Added), func(l string) bool { return strings.TrimSpace(l) == "" })
		if !slices.ContainsFunc(lines, func(l string) bool { return !chats(l) }) {
			continue
		}
		lines = lines[:min(left, len(lines))]
		if left -= len(lines); len(lines) > 0 {
			out = append(out, edit.Change{Path: c.Path, Added: lines})
		}
	}
	return out
}
