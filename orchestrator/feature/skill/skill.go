// Package skill reads the skills and slash commands that a user and a project keep as markdown
// files. A project's are used only after the user approved their present content.
//
// A skill is a folder with a file SKILL.md. The model is shown its name and description, and gets
// its text when it calls the tool Skill (source.go). A command is one file, whose text becomes a
// request when the user types its name after a slash. A skill can be typed, too.
package skill

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"go.yaml.in/yaml/v4"

	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/userfile"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
)

// Limits of files.
const (
	maxTextBytes   = 100_000 // of a text, which enters the context as a whole
	maxFiles       = 1_000   // of one folder
	maxFolderBytes = 16 << 20
	maxDescription = 4_096
)

// Skill is a skill or a command, or a file that is meant to be one.
type Skill struct {
	Name, Description string
	Hint              string // the arguments, for users
	Path              string // of its file
	Project           string // the directory that brings it; empty: the user's own
	Command           bool   // a command: the model is not shown it
	Body              string
	Err               error  // why it is not used
	Warning           string // a fault that does not keep it from being used

	userOnly bool
	hash     string
}

// frontmatter is what a file says of itself. Other keys are for other programs.
type frontmatter struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Hint        any    `yaml:"argument-hint"` // [issue] is a list
	UserOnly    bool   `yaml:"disable-model-invocation"`
}

// initBody is the text of the command that is built in.
//
//go:embed prompt/init.md
var initBody string

// folder is a root of skills and commands.
type folder struct {
	files         fs.FS
	root, project string
	commands      bool
}

// Read returns the skills and commands that work in a directory: the user's before the project's,
// whose nearest directory comes first. projects are the project's directories, the nearest last. The
// first of a name counts: the others have an Err, unless they say the same.
func Read(config, home string, projects []string) (all []Skill) {
	add := func(files fs.FS, root, project string, places ...string) {
		for _, at := range places {
			for _, s := range slices.Concat(folder{files, root, project, false}.read(at+"/skills", ""),
				folder{files, root, project, true}.read(at+"/commands", "")) {
				i := slices.IndexFunc(all, func(o Skill) bool { return o.Name == s.Name && o.Err == nil })
				if i >= 0 && s.Err == nil && all[i].Body == s.Body && all[i].Project == s.Project {
					continue // .claude is often a link to .agents
				} else if i >= 0 && s.Err == nil {
					s.Err = fmt.Errorf("it has the name of %s", all[i].Path)
				}
				all = append(all, s)
			}
		}
	}
	add(os.DirFS(filepath.Dir(config)), filepath.Dir(config), "", filepath.Base(config))
	add(os.DirFS(home), home, "", ".agents", ".claude")
	for _, dir := range slices.Backward(projects) {
		root, err := os.OpenRoot(dir)  // no link leads out of the project
		if dir == home || err != nil { // opening the task reports it
			continue
		}
		add(root.FS(), dir, dir, ".agents", ".claude")
		root.Close()
	}
	return append(all, Skill{Name: "init", Description: "write or improve AGENTS.md, from the files and from what " +
		"earlier tasks showed", Command: true, Body: strings.TrimSpace(initBody)})
}

// read returns what a directory holds; a missing one holds nothing. Commands in a directory below
// have its name before theirs.
func (f folder) read(at, prefix string) (all []Skill) {
	entries, err := fs.ReadDir(f.files, at)
	if len(entries) > maxFiles {
		entries, err = entries[:maxFiles], fmt.Errorf("more than %d entries; the later ones are not used", maxFiles)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		all = append(all, Skill{Name: at, Path: filepath.Join(f.root, at), Project: f.project, Err: cause(err)})
	}
	for _, e := range entries {
		file := path.Join(at, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
			continue
		case !f.commands:
			file += "/SKILL.md"
		case e.IsDir() && prefix == "":
			all = append(all, f.read(file, e.Name()+":")...)
			continue
		case !strings.HasSuffix(file, ".md"):
			continue
		}
		s := Skill{Path: filepath.Join(f.root, file), Project: f.project, Command: f.commands}
		s.Name = prefix + strings.TrimSuffix(e.Name(), ".md")
		if s.Err = s.read(f.files, file); !errors.Is(s.Err, fs.ErrNotExist) && !errors.Is(s.Err, syscall.ENOTDIR) {
			all = append(all, s)
		}
	}
	return all
}

// cause returns an error without its path.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if err != nil && strings.HasSuffix(err.Error(), "escapes from parent") { // os.Root exports no error for it
		return errors.New("the link leads out of the project")
	}
	return err
}

func (s *Skill) read(files fs.FS, file string) error {
	data, err := readFile(files, file, maxTextBytes)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\r\n", "\n")
	var about frontmatter
	rest, found := strings.CutPrefix(strings.TrimPrefix(text, "\uFEFF"), "---\n")
	head, body, closed := strings.Cut("\n"+rest+"\n", "\n---\n")
	switch {
	case found && !closed:
		return errors.New("the frontmatter has no end; add a line ---")
	case found:
		err := yaml.Load([]byte(head), &about)
		inQuotes := []byte(plain.ReplaceAllStringFunc(head, quoted))
		if err != nil && !userfile.Empty(err) && yaml.Load(inQuotes, &about) != nil {
			line, why := userfile.YAML(err)
			return fmt.Errorf("line %d: %s; put the value in quotes", line, why)
		}
		text = body
	case !s.Command:
		return errors.New("it has no frontmatter; begin it with ---, a line description: …, and ---")
	}
	s.Body, s.userOnly = strings.TrimSpace(text), about.UserOnly
	s.Description = tool.Visible(quote.Squash(quote.CutBytes(about.Description, maxDescription)))
	if about.Hint != nil {
		s.Hint = tool.Visible(quote.Squash(fmt.Sprint(about.Hint)))
	}
	// Other programs describe a command by its first line.
	if first, _, _ := strings.Cut(s.Body, "\n"); s.Command && s.Description == "" {
		s.Description = tool.Visible(strings.TrimLeft(first, "# "))
	}
	switch {
	case s.Body == "":
		return errors.New("it has no text")
	case s.Description == "":
		return errors.New("it has no description, by which the model chooses skills")
	case len(s.Name) > 64 || tool.Visible(s.Name) != s.Name || strings.ContainsAny(s.Name, " \t\n"):
		return fmt.Errorf("the name %q is not one of at most 64 characters without spaces", s.Name)
	case about.Name != "" && about.Name != s.Name && !s.Command:
		s.Warning = fmt.Sprintf("the skill is called %s, as its folder is, and not %q", s.Name, about.Name)
	}
	return s.stamp(files, path.Dir(file), data)
}

// plain matches a value without quotes. Other programs accept there what is no YAML: [issue] [priority],
// or a text with a colon.
var plain = regexp.MustCompile(`(?m)^[\w-]+: +[^\s"'|>].*$`)

func quoted(line string) string {
	key, value, _ := strings.Cut(line, ":")
	return fmt.Sprintf("%s: '%s'", key, strings.ReplaceAll(strings.TrimSpace(value), "'", "''"))
}

// readFile reads a regular file of at most so many bytes.
func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, cause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > most:
		return nil, fmt.Errorf("it has %d bytes, and may have %d", info.Size(), most)
	}
	data, err := fs.ReadFile(files, name)
	return data, cause(err)
}

// stamp makes the hash of a text and, of a project's skill, of all files of its folder: they may be
// scripts that the text tells the model to run.
func (s *Skill) stamp(files fs.FS, dir string, text []byte) error {
	h, room, n := sha256.New(), int64(maxFolderBytes), 0
	h.Write(text)
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if s.Command || s.Project == "" {
			return fs.SkipAll
		} else if err != nil || d.IsDir() {
			return cause(err)
		}
		data, err := readFile(files, name, room)
		room -= int64(len(data))
		if n++; n > maxFiles || err != nil {
			return fmt.Errorf("file %d of its folder, %s: %w", n, name, cmp.Or(err, errors.New("too many files")))
		}
		fmt.Fprintf(h, "%q %d\n%s\n", name, len(data), data)
		return nil
	})
	s.hash = hex.EncodeToString(h.Sum(nil))
	return err
}

// approval describes a project's skill as a user approves it.
func (s *Skill) approval() consent.Approval {
	return consent.Approval{Kind: "skill", Name: s.Path, Dir: s.Project, Hash: s.hash}
}

// Typed returns the skill or command that a line calls by its name after a slash, and the
// arguments; nil if there is none.
func Typed(all []Skill, line string) (*Skill, string) {
	line = strings.TrimSpace(line)
	end := strings.IndexFunc(line, unicode.IsSpace)
	if end < 0 {
		end = len(line)
	}
	name, args := line[:end], line[end:]
	i := slices.IndexFunc(all, func(s Skill) bool { return "/"+s.Name == name && s.Err == nil })
	if i < 0 {
		return nil, ""
	}
	return &all[i], strings.TrimSpace(args)
}

var (
	argument = regexp.MustCompile(`\$ARGUMENTS|\$[1-9]\b`)
	word     = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
)

// Expand returns the text with arguments: $ARGUMENTS are all of them, $1 to $9 one each. They follow
// a text that has no place for them.
func (s *Skill) Expand(args string) string {
	words := word.FindAllString(args, -1)
	if args != "" && !argument.MatchString(s.Body) {
		return s.Body + "\n\nARGUMENTS: " + args
	}
	return argument.ReplaceAllStringFunc(s.Body, func(m string) string {
		if n := int(m[1] - '1'); n >= 9 { // the A of $ARGUMENTS
			return args
		} else if n < len(words) {
			return strings.Trim(words[n], `"'`)
		}
		return ""
	})
}
