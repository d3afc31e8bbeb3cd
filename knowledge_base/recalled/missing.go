package recalled

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
)

// namedFile matches a relative path with a folder and an extension. What precedes it tells URLs and absolute
// paths apart.
var namedFile = regexp.MustCompile(`(^|[^\w./~:@$-])((?:[\w.-]+/)+[\w-][\w.-]*\.[A-Za-z]\w{0,5})\b`)

// maxMissing bounds what is looked up of a card.
const maxMissing = 8

// namedFiles returns the files that texts name.
func namedFiles(texts ...string) (names []string) {
	for _, text := range texts {
		for _, m := range namedFile.FindAllStringSubmatch(text, -1) {
			if name := m[2]; filepath.IsLocal(name) && !slices.Contains(names, name) && len(names) < maxMissing {
				names = append(names, name)
			}
		}
	}
	return names
}

// ranProgram matches the program of a command that a card says was run, behind a change of the directory.
var ranProgram = regexp.MustCompile("^Run before: `(?:cd [^&;`]+(?:&&|;) *)?([A-Za-z][\\w.+-]*)[ `]")

// namedPrograms returns the programs that a card says were run, without words of the shell.
func namedPrograms(c *card.Card) (names []string) {
	for _, s := range c.Solution {
		m := ranProgram.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		switch m[1] {
		case "cd", "export", "source", "set", "unset", "ulimit", "umask", "alias", "for", "if", "while", "until", "case", "eval", "exec", "type":
		default:
			names = append(names, m[1])
		}
	}
	return names
}

// Missing returns the files that a card names and that a directory does not have, and the programs that its
// solution ran and that are not installed.
func Missing(c *card.Card, dir string) []string {
	missing := slices.DeleteFunc(namedPrograms(c), func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
	return append(missing, missingFiles(c, dir)...)
}

func missingFiles(c *card.Card, dir string) []string {
	return slices.DeleteFunc(namedFiles(slices.Concat([]string{c.Topic}, c.Issue, c.Solution, c.Constraint)...), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		return err == nil
	})
}

// SubjectGone reports whether all files and programs that a card's solution names are missing: there is nothing
// left that it could be applied to, or by.
func SubjectGone(c *card.Card, missing []string) bool {
	named := append(namedPrograms(c), namedFiles(strings.Join(c.Solution, "\n"))...)
	return len(named) > 0 && !slices.ContainsFunc(named, func(name string) bool { return !slices.Contains(missing, name) })
}
