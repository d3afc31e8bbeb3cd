// Package mention finds the files that a text names, and attaches those that a user's words name: images, and text
// files of the directory after an @.
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
	maxImages    = 8
	maxTexts     = 8
	maxBytes     = 32 << 10 // of a text; the rest is left out
	maxReadBytes = 1 << 20
)

var (
	// named matches a word that may name a file: after an @, absolute, or of the home directory; quoted, or with
	// escaped spaces, as terminals insert a file that is dropped on them. marks may follow it.
	named  = regexp.MustCompile(`(?:^|[\s(])(?:"((?:file://)?[/~@][^"\n]+)"|'((?:file://)?[/~@][^'\n]+)'|((?:file://)?[/~@](?:\\.|[^\s\\"])(?:\\.|[^\s\\])*)|(@"[^"\n]+)")`)
	pixels = regexp.MustCompile(`(?i)\.(?:png|jpe?g|webp|gif)$`)
	told   = regexp.MustCompile(`(?m)\n\n(\[file [^\n]+\])$`)
)

const marks = ".,;:!?)"

// File is a regular file that a text names.
type File struct {
	Word, Path, Real string // as it is named, its path, and its path without links
	At               bool   // after an @
}

// Files returns the files that a text names. Relative paths are of dir. A word without a file is none.
func Files(dir, text string) (found []File) {
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		word := strings.TrimPrefix(m[1]+m[2]+regexp.MustCompile(`\\(.)`).ReplaceAllString(m[3], "$1")+strings.Replace(m[4], `"`, "", 1), "file://")
		word, at := strings.CutPrefix(word, "@")
		for _, word := range []string{word, strings.TrimRight(word, marks)} {
			path := word
			if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
				path = filepath.Join(home, path[2:])
			} else if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			real, err := filepath.EvalSymlinks(path)
			if info, missing := os.Stat(real); err == nil && missing == nil && info.Mode().IsRegular() {
				found = append(found, File{word, path, real, at})
				break
			}
		}
	}
	return found
}

// Attach returns a user's words with the text files that they name and a line for each image at their end, and the
// images.
func Attach(dir, text string) (string, []op.Part) {
	var parts []op.Part
	var texts, lines []string
	seen := make(map[string]bool)
	root, _ := filepath.EvalSymlinks(dir) // without it no file is below it
	for _, f := range Files(dir, text) {
		rel, err := filepath.Rel(root, f.Real)
		below := err == nil && filepath.IsLocal(rel)
		switch {
		case seen[f.Path]:
		case pixels.MatchString(f.Path):
			part, line, err := readImage(f.Path, len(parts))
			if lines = append(lines, line); err == nil {
				parts = append(parts, part)
			}
		case f.At && below:
			texts = append(texts, readText(root, rel, f.Word, len(texts)))
		}
		seen[f.Path] = true
	}
	if len(texts)+len(lines) == 0 {
		return text, nil
	}
	if len(lines) > 0 {
		texts = append(texts, strings.Join(lines, "\n"))
	}
	return strings.TrimRight(text, "\n") + "\n\n" + strings.Join(texts, "\n\n"), parts
}

// readImage returns the image after n others, and the line about it.
func readImage(path string, n int) (part op.Part, line string, err error) {
	data, err := durable.ReadFile(path, picture.MaxFileBytes)
	if err == nil {
		part, line, err = picture.Fit(data)
	}
	if err == nil && n == maxImages {
		err = fmt.Errorf("at most %d are in one message", maxImages)
	}
	if err != nil {
		return part, fmt.Sprintf("[image %s: not attached: %v]", path, err), err
	}
	part.Name = path
	return part, fmt.Sprintf("[image %d: %s: %s]", n+1, path, line), nil
}

// readText returns the text of a file after n others.
func readText(root, rel, word string, n int) string {
	data, err := durable.ReadWithin(root, rel, maxReadBytes)
	switch {
	case n >= maxTexts:
		err = fmt.Errorf("at most %d are in one message", maxTexts)
	case tool.SecretFile(rel, nil) || tool.SecretFile(word, nil):
		err = errors.New("it looks like a file of secrets")
	case err == nil && (!utf8.Valid(data) || strings.Contains(string(data), "\x00")):
		err = errors.New("it is no text")
	}
	if err != nil {
		return fmt.Sprintf("[file %s: not attached: %v]", word, err)
	}
	shown, note := quote.CutBytes(string(data), min(len(data), maxBytes)), quote.Number(strings.Count(string(data), "\n"), "line")
	if len(shown) < len(data) {
		note = fmt.Sprintf("the first %d of its %d bytes; ReadFile shows the others", len(shown), len(data))
	}
	return fmt.Sprintf("[file %s: %s]\n%s", word, note, strings.TrimRight(shown, "\n"))
}

// Attached returns the lines about files and images that Attach added to a user's words.
func Attached(text string) (lines []string) {
	for _, m := range told.FindAllStringSubmatch(text, -1) {
		lines = append(lines, m[1])
	}
	if _, after, ok := strings.Cut(text[max(0, strings.LastIndex(text, "\n\n")):], "\n\n[image "); ok {
		lines = append(lines, strings.Split("[image "+after, "\n")...)
	}
	return lines
}
