package shell

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Heredoc is a text that a shell line holds, and the file it goes to.
type Heredoc struct {
	File     string // empty: the command reads it
	Appended bool
	Head     string // the line that starts it, without the mark
	Lines    []string
}

var (
	heredocStart = Pattern(`<<-?\s*['"]?(\w+)['"]?`)
	copied       = Pattern(`^\s*\$\((?:cat|head|tail|sed|awk)\b.*\)$`) // lines that the shell copies from a file
	redirection  = Pattern(`(>>?)\s*([^\s<>&|;]+)`)
	teeFile      = Pattern(`\btee\s+(-a\s+)?([^\s<>&|;-][^\s<>&|;]*)`)
)

// Pattern compiles a regular expression on first use, not when the program starts.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Heredocs takes the here documents out of a shell line.
func Heredocs(command string) (rest string, docs []Heredoc) {
	lines := strings.Split(command, "\n")
	var kept []string
	for i := 0; i < len(lines); i++ {
		m := heredocStart().FindStringSubmatch(lines[i])
		if m == nil {
			kept = append(kept, lines[i])
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != m[1] {
			end++
		}
		head := heredocStart().ReplaceAllString(lines[i], "")
		text := slices.DeleteFunc(slices.Clone(lines[min(i+1, len(lines)):min(end, len(lines))]), copied().MatchString)
		d := Heredoc{Head: head, Lines: text}
		if r := redirection().FindStringSubmatch(head); r != nil {
			d.File, d.Appended = r[2], r[1] == ">>"
		} else if r := teeFile().FindStringSubmatch(head); r != nil {
			d.File, d.Appended = r[2], r[1] != ""
		}
		docs = append(docs, d)
		kept = append(kept, head)
		i = end
	}
	return strings.Join(kept, "\n"), docs
}

// Part is one command of a shell line.
type Part struct {
	Text  string
	Piped bool // reads another's output
}

// Parts splits a shell line where one command ends, outside of quotes.
func Parts(s string) []Part {
	var out []Part
	var quote byte
	start, piped := 0, false
	cut := func(end, next int, pipe bool) {
		if t := strings.TrimSpace(s[start:end]); t != "" && !strings.HasPrefix(t, "#") {
			out = append(out, Part{t, piped})
		}
		start, piped = next, pipe
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\':
			if i++; i < len(s) && s[i] == '\n' && strings.TrimSpace(s[start:i-1]) == "" {
				start = i + 1 // a line continued after the end of a command
			}
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && strings.TrimSpace(s[start:i]) == "":
			if end := strings.IndexByte(s[i:], '\n'); end >= 0 { // a comment, which may hold quotes
				i += end - 1
			} else {
				i = len(s) - 1
			}
			start = i + 1
		case c == '\n' || c == ';':
			cut(i, i+1, false)
		case (c == '&' || c == '|') && i+1 < len(s) && s[i+1] == c:
			cut(i, i+2, false)
			i++
		case c == '|':
			cut(i, i+1, true)
		}
	}
	cut(len(s), len(s), false)
	return out
}

// Fields splits one command at blanks and takes its quotes off. What
// follows a redirection is left out.
func Fields(s string) []string {
	var out []string
	var b strings.Builder
	var quote byte
	has := false
	flush := func() {
		if has {
			out = append(out, b.String())
		}
		b.Reset()
		has = false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, has = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			flush()
		case c == '\\' && quote != '\'' && i+1 < len(s):
			if i++; quote == '"' && !strings.ContainsRune("$`\"\\\n", rune(s[i])) {
				b.WriteByte(c) // within these quotes it hides few
			}
			b.WriteByte(s[i])
			has = true
		default:
			b.WriteByte(c)
			has = true
		}
	}
	flush()
	if i := slices.IndexFunc(out, func(f string) bool { return strings.HasPrefix(strings.TrimLeft(f, "012&"), ">") }); i > 0 {
		out = out[:i]
	}
	return out
}

// Set returns the names in a list that blanks separate.
func Set(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}
