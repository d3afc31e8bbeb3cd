package history

import (
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// header is the text of a commit or a tag, split into its parts.
type header struct {
	lines []string // each with its continuation lines
	text  string
}

func parseHeader(data []byte) (header, error) {
	head, text, ok := strings.Cut(string(data), "\n\n")
	if !ok {
		head, text = strings.TrimSuffix(string(data), "\n"), ""
	}
	var h header
	for line := range strings.SplitSeq(head, "\n") {
		switch {
		case !strings.HasPrefix(line, " "):
			h.lines = append(h.lines, line)
		case len(h.lines) == 0:
			return h, errors.New("its first line continues another")
		default:
			h.lines[len(h.lines)-1] += "\n" + line
		}
	}
	h.text = text
	return h, nil
}

func (h header) ids(field string) (out []plumbing.Hash) {
	for _, l := range h.lines {
		if value, ok := strings.CutPrefix(l, field+" "); ok {
			out = append(out, plumbing.NewHash(value))
		}
	}
	return out
}

// with returns the bytes with another text and other ids, without signatures; nil if
// nothing changes.
func (h header) with(text string, id func(field string, was plumbing.Hash) plumbing.Hash) []byte {
	same := text == h.text
	var b strings.Builder
	for _, l := range h.lines {
		field, value, _ := strings.Cut(l, " ")
		switch field {
		case "tree", "parent", "object":
			was := plumbing.NewHash(value)
			is := id(field, was)
			same = same && was == is
			b.WriteString(field + " " + is.String() + "\n")
		case "gpgsig", "gpgsig-sha256", "mergetag":
		default:
			b.WriteString(l + "\n")
		}
	}
	if same {
		return nil
	}
	return []byte(b.String() + "\n" + text)
}
