// Package mention finds the files that a text names after an @, and attaches those that a user's words name.
package mention

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/picture"
	"anamnesis/orchestrator/tool"
)

// Limits of what one message attaches.
const (
	maxFiles     = 8
	maxBytes     = 32 << 10 // of a file; the rest is left out
	maxReadBytes = 1 << 20
)

// named matches a word after an @, with escaped spaces; marks may follow it.
var named = regexp.MustCompile(`(?:^|[\s(])@((?:\\.|[^\s\\])+)`)

const marks = ".,;:!?)"

// File is a file that a text names.
type File struct{ Word, Path string } // Path has no links

// Files returns the regular files that a text names: in dir, absolute, or of the home directory. Other words are none.
func Files(dir, text string) (found []File) {
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		word := regexp.MustCompile(`\\(.)`).ReplaceAllString(m[1], "$1")
		for _, word := range []string{word, strings.TrimRight(word, marks)} {
			path := word
			if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
				path = filepath.Join(home, path[2:])
			} else if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			real, err := filepath.EvalSymlinks(path)
			if info, missing := os.Stat(real); err == nil && missing == nil && info.Mode().IsRegular() {
				found = append(found, File{word, real})
				break
			}
		}
	}
	return found
}

// Attach returns a user's words with the files of dir that they name, whose texts follow them, and with the images.
func Attach(dir, text string) (string, []op.Part) {
	words, parts := picture.Attach(dir, text)
	lines, attached, seen := strings.TrimPrefix(words, strings.TrimRight(text, "\n")), "", map[string]bool{}
	real, _ := filepath.EvalSymlinks(dir) // without it no file is below it
	for _, f := range Files(dir, text) {
		rel, err := filepath.Rel(real, f.Path)
		if err != nil || !filepath.IsLocal(rel) || seen[rel] || strings.Contains(lines, filepath.Base(f.Path)+": ") {
			continue
		}
		seen[rel] = true
		data, err := durable.ReadWithin(real, rel, maxReadBytes)
		switch {
		case len(seen) > maxFiles:
			err = fmt.Errorf("at most %d are in one message", maxFiles)
		case tool.SecretFile(rel, nil) || tool.SecretFile(f.Word, nil):
			err = errors.New("it looks like a file of secrets")
		case err == nil && (!utf8.Valid(data) || strings.Contains(string(data), "\x00")):
			err = errors.New("it is no text")
		}
		if err != nil {
			attached += fmt.Sprintf("\n\n[file %s: not attached: %v]", f.Word, err)
			continue
		}
		shown, note := quote.CutBytes(string(data), min(len(data), maxBytes)), quote.Number(strings.Count(string(data), "\n"), "line")
		if len(shown) < len(data) {
			note = fmt.Sprintf("the first %d of its %d bytes; ReadFile shows the others", len(shown), len(data))
		}
		attached += fmt.Sprintf("\n\n[file %s: %s]\n%s", f.Word, note, strings.TrimRight(shown, "\n"))
	}
	if attached == "" {
		return words, parts
	}
	return strings.TrimRight(text, "\n") + attached + strings.TrimRight(lines, "\n"), parts
}

// Attached returns the lines about files and images that Attach added to a user's words.
func Attached(text string) (lines []string) {
	for _, m := range regexp.MustCompile(`(?m)\n\n(\[file [^\n]+\])$`).FindAllStringSubmatch(text, -1) {
		lines = append(lines, m[1])
	}
	return append(lines, picture.Attached(text)...)
}
