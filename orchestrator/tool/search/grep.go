package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"anamnesis/orchestrator/tool"
)

// The output modes of Grep.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

// maxContext bounds the lines shown around a match.
const maxContext = 50

// maxMatches bounds the matching lines kept of one search, in content mode.
const maxMatches = 100_000

// Grep is the tool that searches text files with a regular expression.
// allowSecrets is as for file.ReadFile.
func Grep(allowSecrets []string) tool.Tool { return grep{MaxFiles, allowSecrets} }

type grep struct {
	maxFiles     int
	allowSecrets []string
}

func (g grep) Spec() tool.Spec {
	lines := func(name, what string) tool.Param {
		return tool.Optional(name, tool.Int(what+" (content mode).", 0, maxContext))
	}
	return tool.Spec{
		Name: "Grep",
		Description: "Search files for lines that match a regular expression (RE2 syntax: no look-around, no " +
			"backreferences). Files are listed newest first. Ignored, binary and very large files and files with " +
			"secrets are excluded.",
		Schema: tool.Params(
			tool.Required("pattern", tool.Text("The regular expression.")),
			tool.Optional("path", tool.String("File or directory to search, default the working directory.")),
			tool.Optional("glob", tool.String("Search only files whose path matches, such as *.go or src/**/*.ts.")),
			tool.Optional("output_mode", tool.OneOf("files_with_matches (default): paths; content: matching lines; "+
				"count: number of matching lines of each file.", modeFiles, modeContent, modeCount)),
			tool.Optional("-i", tool.Bool("Ignore case.")),
			lines("context", "Number of lines before and after each match"),
			lines("-A", "Number of lines after each match"),
			lines("-B", "Number of lines before each match"),
			lines("-C", "Alias of context"),
			tool.Optional("include_ignored", tool.Bool("Include files that .gitignore excludes.")),
			tool.Optional("head_limit", tool.Int(fmt.Sprintf("Maximum number of results (files or matching "+
				"lines), default %d.", DefaultLimit), 1, MaxHeadLimit)),
			tool.Optional("offset", tool.Int("Number of results to skip.", 0, MaxFiles)),
		),
		ReadOnly: true,
	}
}

// query is the arguments of Grep.
type query struct {
	Pattern        string `json:"pattern"`
	Path           string `json:"path"`
	Glob           string `json:"glob"`
	OutputMode     string `json:"output_mode"`
	IgnoreCase     bool   `json:"-i"`
	Context        *int   `json:"context"`
	After          *int   `json:"-A"`
	Before         *int   `json:"-B"`
	Around         *int   `json:"-C"`
	IncludeIgnored bool   `json:"include_ignored"`
	HeadLimit      int    `json:"head_limit"`
	Offset         int    `json:"offset"`
}

func (g grep) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	q, err := tool.Decode[query](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	q.HeadLimit = cmp.Or(q.HeadLimit, DefaultLimit)
	expr := q.Pattern
	re, err := regexp.Compile(expr) // as the model wrote it, which an error quotes
	if err == nil && q.IgnoreCase {
		expr = "(?i)" + expr
		re, err = regexp.Compile(expr)
	}
	if err != nil {
		return tool.Errorf("Grep: the pattern is not a regular expression in RE2 syntax: %v.", err), nil
	}
	match := func(string) bool { return true }
	if q.Glob != "" {
		if match, err = matcher(q.Glob); err != nil {
			return tool.Errorf("Grep: glob: %v.", err), nil
		}
	}
	rel, limited, cancel, refused := start(ctx, env, "Grep", q.Path)
	if refused != nil {
		return *refused, nil
	}
	defer cancel()
	w := &walker{root: env.Root, from: rel, match: match, maxFiles: g.maxFiles, ignored: q.IncludeIgnored}
	walked := w.walk(limited)
	newestFirst(w.found)
	s := &scan{re: re, query: q, allow: g.allowSecrets, want: required(expr)}
	// Files found before the limit are searched all the same, and the result says that there are more.
	if walked == nil || errors.Is(walked, errEnough) {
		if err := s.files(limited, env, w.found); err != nil {
			walked = err
		}
	}
	notes, err := w.ending(ctx, walked)
	if err != nil {
		return failed(ctx, "Grep", err)
	}
	return s.result(notes), nil
}

// hit is one file with matches.
type hit struct {
	rel   string
	lines []int // numbers of the matching lines, from 1
}

// scan searches files one after the other.
type scan struct {
	re    *regexp.Regexp
	query query
	allow []string
	want  texts // texts that matches contain

	env     *tool.Env
	hits    []hit
	matches int
	large   []string
	secret  []string
	stray   []string
	stopped bool // maxMatches reached
}

func (s *scan) files(ctx context.Context, env *tool.Env, files []found) error {
	s.env = env
	for _, f := range s.readable(files) {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := readRegular(env.Root, f.rel, MaxFileBytes)
		if errors.Is(err, errLarge) {
			s.large = append(s.large, f.rel)
			continue
		}
		if err != nil || binary(data) || !s.want.in(data) {
			continue // gone or unreadable meanwhile, no text, or without what a match contains
		}
		lines, err := s.matching(ctx, data)
		if err != nil {
			return err
		}
		if len(lines) > 0 {
			s.hits = append(s.hits, hit{f.rel, lines})
			s.matches += len(lines)
		}
		if s.matches >= maxMatches {
			s.stopped = true
			return nil
		}
	}
	return nil
}

// readable drops the files that may not be read, and counts them.
func (s *scan) readable(files []found) []found {
	infos := make([]fs.FileInfo, len(files))
	for i, f := range files {
		infos[i] = f.info
	}
	// All at once: the search for the other names of files has one time limit.
	stray := s.env.Stray(infos...)
	kept := make([]found, 0, len(files))
	for i, f := range files {
		switch {
		case stray[i]:
			s.stray = append(s.stray, f.rel)
		case tool.SecretFile(f.rel, s.allow):
			s.secret = append(s.secret, f.rel)
		default:
			kept = append(kept, f)
		}
	}
	return kept
}

// binary reports whether data is binary, by its first 8,000 bytes as in git.
func binary(data []byte) bool {
	const probe = 8000
	return bytes.IndexByte(data[:min(len(data), probe)], 0) >= 0
}

func (s *scan) matching(ctx context.Context, data []byte) ([]int, error) {
	const checkEvery = 1 << 14
	var lines []int
	for number := 1; len(data) > 0; number++ {
		if number%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		if s.re.Match(bytes.TrimSuffix(line, []byte{'\r'})) {
			lines = append(lines, number)
			if len(lines) >= maxMatches {
				break
			}
		}
	}
	return lines, nil
}

// result shows the hits in the requested mode.
func (s *scan) result(notes []string) tool.Result {
	var text, note string
	var reads []string
	secrets := s.env.Redaction()
	switch s.query.OutputMode {
	case modeContent:
		text, note, reads = s.content(secrets)
	default:
		part, pageNote := pageOf(s.hits, s.query.Offset, s.query.HeadLimit)
		var b strings.Builder
		for _, h := range part {
			if s.query.OutputMode == modeCount {
				fmt.Fprintf(&b, "%s:%d\n", h.rel, len(h.lines))
			} else {
				b.WriteString(h.rel + "\n")
			}
		}
		text, note = b.String(), pageNote
	}
	if len(s.hits) == 0 {
		text = "No line matches.\n"
	}
	if note != "" {
		notes = append([]string{note}, notes...)
	}
	// A text that is only in files that were passed over would look absent, so each kind of them is named.
	if s.stopped {
		notes = append(notes,
			fmt.Sprintf("incomplete: stopped after %d matching lines; use a narrower pattern", maxMatches))
	}
	if len(s.large) > 0 {
		notes = append(notes, fmt.Sprintf("not searched, over %d MB: %s", MaxFileBytes>>20, some(s.large)))
	}
	if len(s.secret) > 0 {
		notes = append(notes, "not searched, they look like files of secrets: "+some(s.secret))
	}
	if len(s.stray) > 0 {
		notes = append(notes, "not searched, they have another name (hard link) outside the world: "+some(s.stray))
	}
	return tool.Result{
		Text: withNotes(text, notes), Reads: reads, Secrets: secrets.Found(),
		Display: fmt.Sprintf("%d lines in %d files", s.matches, len(s.hits)),
	}
}

func some(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// place is one matching line.
type place struct {
	rel  string
	line int
}

// content shows the matching lines as path:number:text, lines around them as path-number-text.
// It reads the files again, since only line numbers were kept. A file is redacted as a whole,
// before its lines are cut.
func (s *scan) content(secrets *tool.Redaction) (text, note string, reads []string) {
	var all []place
	for _, h := range s.hits {
		for _, l := range h.lines {
			all = append(all, place{h.rel, l})
		}
	}
	part, note := pageOf(all, s.query.Offset, s.query.HeadLimit)
	var b strings.Builder
	for i := 0; i < len(part); {
		j := i
		wanted := make(map[int]bool)
		for ; j < len(part) && part[j].rel == part[i].rel; j++ {
			wanted[part[j].line] = true
		}
		rel := part[i].rel
		i = j
		data, err := readRegular(s.env.Root, rel, MaxFileBytes)
		if err != nil {
			fmt.Fprintf(&b, "%s: could not be read again\n", rel)
			continue
		}
		reads = append(reads, rel)
		if b.Len() > 0 && s.before()+s.after() > 0 {
			b.WriteString("--\n")
		}
		if !s.show(&b, rel, strings.Split(strings.TrimSuffix(secrets.Text(string(data)), "\n"), "\n"), wanted) {
			note = strings.TrimPrefix(note+"; ", "; ") +
				fmt.Sprintf("cut after %d KB; use a smaller head_limit and offset", MaxOutputBytes/1000)
			return b.String(), note, reads
		}
	}
	return b.String(), note, reads
}

func (s *scan) before() int {
	return *cmp.Or(s.query.Before, s.query.Context, s.query.Around, new(int))
}
func (s *scan) after() int { return *cmp.Or(s.query.After, s.query.Context, s.query.Around, new(int)) }

// show writes the wanted lines of a file and those around them. It returns false if the output
// is full.
func (s *scan) show(b *strings.Builder, rel string, lines []string, wanted map[int]bool) bool {
	before, after := s.before(), s.after()
	near := make(map[int]bool, len(wanted))
	for w := range wanted {
		for n := max(1, w-before); n <= min(len(lines), w+after); n++ {
			near[n] = true
		}
	}
	last := 0
	for n := 1; n <= len(lines); n++ {
		if !near[n] {
			continue
		}
		mark := "-"
		if wanted[n] {
			mark = ":"
		}
		if last > 0 && n != last+1 && before+after > 0 {
			b.WriteString("--\n")
		}
		last = n
		fmt.Fprintf(b, "%s%s%d%s%s\n", rel, mark, n, mark, clipLine(lines[n-1]))
		if b.Len() > MaxOutputBytes {
			return false
		}
	}
	return true
}

// clipLine returns a line as valid text of at most MaxLineRunes.
func clipLine(line string) string {
	line = strings.TrimSuffix(line, "\r")
	if utf8.RuneCountInString(line) > MaxLineRunes {
		kept := string([]rune(line)[:MaxLineRunes])
		line = fmt.Sprintf("%s […%d bytes of this line cut]", kept, max(0, len(line)-len(kept)))
	}
	return strings.ToValidUTF8(line, "\uFFFD")
}
