package quarantine

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"anamnesis/anamnesis/shell"
)

// named is the reason why a path of the world is examined although no repository contains it:
// the user's configuration of git names it.
type named string

const (
	namedConfig  named = "config"  // git reads it: include.path, includeIf
	namedProgram named = "program" // git runs it: core.fsmonitor, filter.*.clean
	namedHooks   named = "hooks"   // git runs what is in it: core.hooksPath
)

const (
	maxIncludes     = 10    // files one in another, as in git
	maxNamed        = 2_000 // paths; more are ignored
	maxConfigOfEnv  = 1_000 // settings in the environment
	systemGitConfig = "/etc/gitconfig /usr/local/etc/gitconfig"
)

// programKeys are the last words of settings whose value is a command that git runs unasked, as
// opposed to an alias, which users run by its name.
const programKeys = `alternaterefscommand askpass clean cmd command driver editor external fsmonitor gitproxy helper
	difffilter packobjectshook pager path process program receivepack smudge sshcommand textconv tunnel uploadpack`

// namedPaths returns what the user's configuration of git makes it read or run in the world:
// the configurations of the user, of the repositories of a tree and of one around the world,
// with what they include. Conditions of includes count as true, because a command could make
// them so.
func (q *Quarantine) namedPaths(tree gitTree) map[string]named {
	r := configReader{world: q.o.World, found: map[string]named{}, seen: map[string]bool{}}
	dirs := map[string]string{} // git directories, with their work tree
	for rel := range tree.Dirs {
		if name := repositoryName(rel); name == "" || name == ".git" {
			dir := filepath.Join(q.o.World, rel)
			dirs[dir] = dir
			if name == ".git" {
				dirs[dir] = filepath.Dir(dir)
			}
		}
	}
	for rel, f := range tree.Files {
		if strings.EqualFold(filepath.Base(rel), ".git") && f.Leads != "" {
			dirs[f.Leads] = filepath.Dir(filepath.Join(q.o.World, rel))
		}
	}
	for top := filepath.Dir(q.o.World); ; top = filepath.Dir(top) {
		at := filepath.Join(top, ".git")
		if info, err := os.Stat(at); err == nil {
			if !info.IsDir() {
				text, _ := readConfig(at)
				at = leadsTo(top, ".git", gitFile{Kind: "file", Text: text})
			}
			dirs[at] = top
			break
		}
		if top == "/" {
			break
		}
	}
	tops := map[string]bool{q.o.World: true}
	for dir, top := range dirs {
		tops[top] = true
		common := dir
		if text, ok := readConfig(filepath.Join(dir, "commondir")); ok {
			common = resolve(strings.TrimRight(text, "\r\n"), dir)
		}
		for _, file := range []string{filepath.Join(common, "config"), filepath.Join(dir, "config.worktree")} {
			r.read(file, top, 0)
		}
	}
	for top := range tops {
		r.readUser(top)
	}
	maps.DeleteFunc(r.found, func(rel string, _ named) bool { // of a repository, whose own rules hold
		_, in := tree.Dirs[filepath.Dir(rel)]
		return in && isConfig(rel)
	})
	return r.found
}

// configReader follows configurations of git.
type configReader struct {
	world string
	found map[string]named
	seen  map[string]bool
}

// readUser reads the configurations that apply to all repositories, for one work tree.
func (r *configReader) readUser(top string) {
	home := os.Getenv("HOME")
	files := strings.Fields(systemGitConfig)
	if file := os.Getenv("GIT_CONFIG_SYSTEM"); file != "" {
		files = []string{file}
	}
	xdg := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	if file := os.Getenv("GIT_CONFIG_GLOBAL"); file != "" {
		files = append(files, file)
	} else {
		files = append(files, filepath.Join(xdg, "git", "config"), filepath.Join(home, ".gitconfig"))
	}
	for _, file := range files {
		r.name(file, namedConfig)
		r.read(file, top, 0)
	}
	count, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT"))
	for i := range min(max(count, 0), maxConfigOfEnv) {
		key, value := os.Getenv("GIT_CONFIG_KEY_"+strconv.Itoa(i)), os.Getenv("GIT_CONFIG_VALUE_"+strconv.Itoa(i))
		if at, last := strings.Index(key, "."), strings.LastIndex(key, "."); at >= 0 {
			r.setting(setting{key[:at], key[min(at+1, last):last], key[last+1:], value}, top, top, 0)
		}
	}
}

// read reads a configuration for one work tree, with what it includes.
func (r *configReader) read(file, top string, depth int) {
	id := file + "\x00" + top
	if depth > maxIncludes || r.seen[id] {
		return
	}
	r.seen[id] = true
	text, ok := readConfig(file)
	if !ok {
		return
	}
	for _, s := range settings(text) {
		r.setting(s, filepath.Dir(file), top, depth)
	}
}

func (r *configReader) setting(s setting, dir, top string, depth int) {
	section, key := strings.ToLower(s.section), strings.ToLower(s.key)
	switch name := settingName(section, s.sub, key); {
	case name == "include.path", name == "includeif.*.path":
		file := expand(s.value, dir)
		r.name(file, namedConfig)
		r.read(file, top, depth+1)
	case name == "core.hookspath":
		r.name(expand(s.value, top), namedHooks)
	case name == "init.templatedir":
		r.name(filepath.Join(expand(s.value, top), "hooks"), namedHooks)
	case section == "pager", shell.InList(programKeys, key):
		for word := range strings.FieldsSeq(s.value) {
			path := expand(strings.Trim(word, `"'!;&|()`), top)
			info, err := os.Stat(path)
			if err == nil && info.Mode().IsRegular() || os.IsNotExist(err) && strings.Contains(word, "/") {
				r.name(path, namedProgram)
			}
		}
	}
}

// name records a path, and where it leads, if they are in the world.
func (r *configReader) name(path string, what named) {
	for _, p := range []string{filepath.Clean(path), FollowLinks(path)} {
		rel, err := filepath.Rel(r.world, p)
		if err == nil && filepath.IsLocal(rel) && rel != "." && len(r.found) < maxNamed {
			r.found[rel] = what
		}
	}
}

func expand(value, dir string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		return os.Getenv("HOME") + "/" + rest
	}
	if rest, ok := strings.CutPrefix(value, "%(prefix)/"); ok {
		return "/usr/" + rest
	}
	return resolve(value, dir)
}

func readConfig(file string) (text string, ok bool) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxGitFileBytes {
		return "", false
	}
	data, err := os.ReadFile(file)
	return string(data), err == nil
}

// setting is one of a configuration of git.
type setting struct{ section, sub, key, value string }

// configToken matches what a configuration of git has next: a section, a setting, or else white space or a line.
// Its groups are the section, its subsection, and a setting's name and value.
var configToken = shell.Pattern(`^(?:\s+|\[([^\]"\n]+)(?:"((?:[^"\\\n]|\\.)*)"[^\]\n]*)?\]|([0-9A-Za-z-]+)[ \t]*` +
	`(?:=(?:[ \t]|\\\r?\n)*((?:[^"\\\n#;]|\\\r?\n|\\.|"(?:[^"\\\n]|\\\r?\n|\\.)*"?)*)[^\n]*)?|[^\n]+)`)

// configEscape matches what of a value, or of a subsection, does not stand for itself.
var configEscape = shell.Pattern(`\\\r?\n|\\.|"`)

// settings parses a configuration as git does, except that an error ends a line and not the
// file.
func settings(text string) (out []setting) {
	plain := func(m string) string {
		if m == `"` || strings.HasSuffix(m, "\n") {
			return ""
		}
		if i := strings.IndexByte("ntb", m[1]); i >= 0 {
			return "\n\t\b"[i : i+1]
		}
		return m[1:]
	}
	section, sub := "", ""
	for text = strings.TrimPrefix(text, "\uFEFF"); text != ""; {
		m := configToken().FindStringSubmatch(text)
		text = text[len(m[0]):]
		switch {
		case m[1] != "":
			section, sub, _ = strings.Cut(strings.TrimSpace(m[1]), ".") // the old form of a subsection
			if m[2] != "" {
				sub = subEscape().ReplaceAllString(m[2], "$1")
			}
		case m[3] != "":
			value := configEscape().ReplaceAllStringFunc(strings.TrimRight(m[4], " \t\r"), plain)
			out = append(out, setting{section, sub, m[3], value})
		}
	}
	return out
}

// subEscape matches an escape in the name of a subsection.
var subEscape = shell.Pattern(`\\(.)`)

// Named returns how git reads or runs a file of a world: because the user's configuration names it,
// by a repository that contains the file, or because the file is, or would make, a repository's own.
// Empty: it does not.
func Named(world, path string) (by string) {
	q := &Quarantine{o: Options{World: world}}
	if !filepath.IsAbs(path) {
		path = filepath.Join(world, path)
	}
	path = FollowLinks(path)
	repository := gitDirOf(path)
	head := strings.EqualFold(filepath.Base(path), "HEAD")
	if Within(path, world) && (head || isGitDir(repository, listDir(repository))) {
		return "git, as a file of a repository"
	}
	tree := gitTree{Dirs: map[string]string{}, Files: map[string]gitFile{}}
	for dir := filepath.Dir(path); Within(dir, world); dir = filepath.Dir(dir) {
		rel, _ := filepath.Rel(world, filepath.Join(dir, ".git"))
		if isDir(filepath.Join(dir, ".git")) {
			tree.Dirs[rel] = ""
		} else if text, ok := readConfig(filepath.Join(dir, ".git")); ok {
			tree.Files[rel] = gitFile{Leads: leadsTo(world, rel, gitFile{Kind: "file", Text: text})}
		}
	}
	for rel, what := range q.namedPaths(tree) {
		if at := FollowLinks(filepath.Join(world, rel)); at == path || what == namedHooks && Within(path, at) {
			return "git, as your configuration names it"
		}
	}
	return ""
}
