package consent

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/guard/quarantine"
)

// EnvironOutside returns an environment whose PATH has no directory within dir: files that an
// agent may write there are not run by name.
func EnvironOutside(env []string, dir string) []string {
	out := slices.Clone(env)
	for i, kv := range out {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			out[i] = "PATH=" + strings.Join(pathOutside(path, dir), string(filepath.ListSeparator))
		}
	}
	return out
}

// EnvironApart returns an environment without values that lead into dir, so that a program finds
// no code there (PYTHONPATH, NODE_OPTIONS, GIT_DIR, …): of a list of paths only its entries are
// removed. HOME stays, also if dir is the home.
func EnvironApart(env []string, dir string) []string {
	real := quarantine.FollowLinks(dir)
	names := regexp.MustCompile(`(?:^|[^/\w.-])(?:` + regexp.QuoteMeta(dir) + "|" + regexp.QuoteMeta(real) +
		`)(?:/|$|[^\w.-])`)
	separates := func(r rune) bool { return strings.ContainsRune(" \t\n\"'`=,;:|(){}[]<>", r) } // paths in options
	relative := func(entry string) bool { return entry != "" && !strings.HasPrefix(entry, "/") }
	var out []string
	for _, kv := range EnvironOutside(env, dir) {
		name, value, _ := strings.Cut(kv, "=")
		list := filepath.SplitList(value)
		named := func(word string) bool { // -I/dir, file:///dir, file://host/dir; by a link, too
			_, rest, ok := strings.Cut(word, "/")
			host := strings.IndexByte(strings.TrimPrefix(rest, "/"), '/') + 1
			return ok && (InWorld("/"+rest, dir) || strings.HasPrefix(rest, "/") && InWorld(rest[host:], dir))
		}
		within := names.MatchString(value) || slices.ContainsFunc(strings.FieldsFunc(value, separates), named)
		paths := !slices.ContainsFunc(list, relative)
		switch kept := pathOutside(value, dir); {
		case name == "HOME":
		case paths && len(kept) == 0 && len(list) > 0, !paths && within:
			continue
		case paths && len(list) > 0:
			kv = name + "=" + strings.Join(kept, string(filepath.ListSeparator))
		}
		out = append(out, kv)
	}
	return out
}

// pathOutside returns the absolute entries of a PATH that are outside a directory, links
// included.
func pathOutside(path, dir string) []string {
	return slices.DeleteFunc(filepath.SplitList(path), func(entry string) bool {
		return !filepath.IsAbs(entry) || InWorld(entry, dir)
	})
}

// InWorld reports whether a path is in a directory, by its name or where its links lead. What is missing may be
// made, or be found with an extension.
func InWorld(path, dir string) bool {
	real := quarantine.FollowLinks(dir)
	if here, err := os.Getwd(); err == nil && !filepath.IsAbs(path) {
		path = here + "/" + path // links are resolved before ".."
	}
	return quarantine.WithinAny(path, []string{dir, real}) || quarantine.Within(quarantine.FollowLinks(path), real)
}

// FindProgram returns the path of a program as a shell in dir would find it. A program found
// by its bare name is never in dir, by name or by link, nor hidden by the sandbox. path is a
// PATH; hides may be nil.
func FindProgram(name, dir, path string, hides func(path string) bool) (string, error) {
	if hides == nil {
		hides = func(string) bool { return false }
	}
	if strings.ContainsRune(name, '/') {
		name = absolute(name, dir)
		if real, err := filepath.EvalSymlinks(name); err == nil && hides(real) {
			return "", fmt.Errorf("%s is in %s, which the sandbox hides", name, filepath.Dir(real))
		}
		return name, nil
	}
	hidden := ""
	for _, entry := range pathOutside(path, dir) {
		file := filepath.Join(entry, name)
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || unix.Access(file, unix.X_OK) != nil || InWorld(file, dir) {
			continue
		}
		if real, err := filepath.EvalSymlinks(file); err == nil && (hides(real) || hides(filepath.Clean(entry))) {
			hidden = filepath.Dir(real)
			continue
		}
		return file, nil
	}
	if hidden != "" {
		return "", fmt.Errorf("%s is installed in %s, which the sandbox hides; grant it reading the directory of that "+
			"installation", name, hidden)
	}
	return "", fmt.Errorf("%s is not installed, or not in PATH", name)
}

// Bounds of what HashPrograms reads.
const (
	maxProgramBytes = 1 << 30
	maxInterpreters = 8     // of one script, each a script itself
	maxShebangBytes = 4_096 // of a script's first line
)

// HashPrograms adds to a hash the files of a directory that a command runs or names, so that
// an approval of the command covers them: files among its words and in texts for a shell, what
// npx and the like find in node_modules, and the interpreters that scripts name. A program in
// the directory is never found by its bare name; see FindProgram. path is a PATH. It does not
// cover what these programs load in turn.
func HashPrograms(h io.Writer, dir string, words []string, path string) error {
	seen := make(map[string]bool)
	for _, file := range namedFiles(dir, words) {
		for range maxInterpreters {
			if file == "" || seen[file] {
				break
			}
			seen[file] = true
			if InWorld(file, dir) {
				if err := hashFile(h, file); err != nil {
					return fmt.Errorf("hash %s: %w", file, err)
				}
			}
			file = interpreterOf(file, dir, path)
		}
	}
	return nil
}

// namedFiles lists what the words of a command may name as files of a directory.
func namedFiles(dir string, words []string) []string {
	var out []string
	add := func(name string) { out = append(out, absolute(name, dir)) }
	var line []string
	for _, w := range words {
		if w == "" {
			continue
		}
		add(w)
		if _, value, ok := strings.Cut(w, "="); ok && value != "" { // --config=FILE
			add(value)
		}
		if !filepath.IsAbs(w) {
			name := w
			if i := strings.LastIndexByte(w, '@'); i > 0 { // a package's version
				name = w[:i]
			}
			add(filepath.Join("node_modules/.bin", filepath.Base(name)))
			add(filepath.Join("node_modules", name, "package.json"))
		}
		line = append(line, shell.Quote(w))
	}
	return append(out, scripts(strings.Join(line, " "), dir)...)
}

// interpreterOf returns the program that runs a script, from its first line; empty if it is
// not a script or the program is not found.
func interpreterOf(file, dir, path string) string {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // do not wait for a FIFO
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	first, _ := bufio.NewReader(io.LimitReader(f, maxShebangBytes)).ReadString('\n')
	line, ok := strings.CutPrefix(first, "#!")
	words := strings.Fields(line)
	if !ok || len(words) == 0 || !utf8.ValidString(line) {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return absolute(words[0], dir)
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") || strings.ContainsRune(w, '=') {
			continue
		}
		if found, err := FindProgram(w, dir, path, nil); err == nil {
			return found
		}
		break
	}
	return ""
}

// hashFile adds a regular file's content. Anything else adds nothing.
func hashFile(h io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if info.Size() > maxProgramBytes {
		return fmt.Errorf("%d bytes, at most %d are possible", info.Size(), maxProgramBytes)
	}
	fmt.Fprintf(h, "%q %d\n", path, info.Size())
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(h, f)
	return err
}
