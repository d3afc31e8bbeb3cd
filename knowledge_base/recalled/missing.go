package recalled

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/durable"
)

// namedFile matches a relative path with a folder and an extension. What precedes it tells URLs and absolute
// paths apart.
var namedFile = regexp.MustCompile(`(^|[^\w./~:@$-])((?:[\w.-]+/)+[\w-][\w.-]*\.[A-Za-z]\w{0,5})\b`)

// maxMissing bounds what is looked up of a card.
const maxMissing = 8

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
		case "cd", "export", "source", "set", "unset", "ulimit", "umask", "alias",
			"for", "if", "while", "until", "case", "eval", "exec", "type":
		default:
			names = append(names, m[1])
		}
	}
	return names
}

// Missing returns the files that a card names and that a directory does not have, the programs that its solution ran
// and that are not installed, and the versions that it names of what the directory has in other versions only. removed
// returns those of some symbols that the directory had and has no more; nil: they are not looked up.
func Missing(c *card.Card, dir string, removed func(symbols []string) []string) []string {
	missing := slices.DeleteFunc(namedPrograms(c), func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
	missing = slices.Concat(missing, missingFiles(c, dir), otherVersions(c, dir))
	if removed != nil {
		missing = append(missing, removed(symbols(texts(c)...))...)
	}
	return missing
}

func texts(c *card.Card) []string {
	return slices.Concat([]string{c.Topic}, c.Issue, c.Solution, c.Constraint)
}

var (
	// aSymbol matches a name in backticks; mixed what makes it one of code without a call behind it.
	aSymbol = regexp.MustCompile("`((?:[A-Za-z_]\\w*\\.)*[A-Za-z_]\\w{3,})(\\([^()`\n]{0,80}\\))?`")
	mixed   = regexp.MustCompile(`[A-Za-z0-9]_\w|[a-z0-9][A-Z]`)
)

// symbols returns the functions, types and variables that texts have in backticks.
func symbols(texts ...string) (names []string) {
	for _, m := range aSymbol.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		named := m[2] != "" || mixed.MatchString(m[1])
		if named && !slices.Contains(names, m[1]) && len(names) < maxMissing {
			names = append(names, m[1])
		}
	}
	return names
}

// locks are the files that say which versions a project has. Those that only say a range decide nothing.
var locks = []string{"go.mod", "package.json", "package-lock.json", "yarn.lock", "pyproject.toml", "poetry.lock",
	"uv.lock", "requirements.txt", "Cargo.lock", ".tool-versions"}

// maxLockBytes is how much of such a file is read.
const maxLockBytes = 4 << 20

var (
	aVersionOf = regexp.MustCompile(`([A-Za-z@][\w./@-]*\w)(?:==|@| v?| version )v?(\d+(?:\.\d+){1,3})\b`)
	aVersion   = regexp.MustCompile(`\d+(?:\.\d+)+`)
)

// otherVersions returns the versions that a card names, of tools and dependencies that a directory has in others only.
func otherVersions(c *card.Card, dir string) (gone []string) {
	text := strings.Join(append(texts(c), c.Scope.Tool+" "+c.Scope.Version), "\n")
	for _, m := range aVersionOf.FindAllStringSubmatch(text, maxMissing) {
		has := versionsOf(dir, strings.ToLower(m[1]))
		same := func(v string) bool { return strings.HasPrefix(v+".", m[2]+".") || strings.HasPrefix(m[2]+".", v+".") }
		if name := m[1] + " " + m[2]; len(has) > 0 && !slices.ContainsFunc(has, same) && !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	return gone
}

// versionsOf returns a project's versions of a tool or dependency: behind its name in a lock, or in the next line.
func versionsOf(dir, name string) (has []string) {
	named := regexp.MustCompile(`(?:^|[\s"'/])` + regexp.QuoteMeta(name) + `(["'\s=@:].*)$`)
	for _, lock := range locks {
		data, _ := durable.ReadFile(filepath.Join(dir, lock), maxLockBytes) // one that cannot be read says nothing
		lines := strings.Split(strings.ToLower(string(data)), "\n")
		for i, line := range lines {
			if !strings.Contains(line, name) {
				continue
			}
			m := named.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			if v := aVersion.FindAllString(m[1], -1); v != nil && !strings.ContainsAny(m[1], "^~<>*|") {
				has = append(has, v...)
			} else if i+1 < len(lines) && strings.HasPrefix(strings.Trim(lines[i+1], " \t\""), "version") {
				has = append(has, aVersion.FindAllString(lines[i+1], -1)...)
			}
		}
	}
	return has
}

func missingFiles(c *card.Card, dir string) []string {
	return slices.DeleteFunc(namedFiles(texts(c)...), func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		return err == nil
	})
}

// SubjectGone reports whether all files and programs that a card's solution names, or else all symbols, are missing:
// there is nothing left that it could be applied to, or by.
func SubjectGone(c *card.Card, missing []string) bool {
	named := append(namedPrograms(c), namedFiles(strings.Join(c.Solution, "\n"))...)
	if len(named) == 0 {
		named = symbols(c.Solution...)
	}
	present := func(name string) bool { return !slices.Contains(missing, name) }
	return len(named) > 0 && !slices.ContainsFunc(named, present)
}
