// Package mention finds the files that a text names, and attaches the images that a user's words name.
package mention

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/picture"
)

const maxImages = 8

var (
	// named matches a word that may name a file: after an @, absolute, or of the home directory; quoted, or with
	// escaped spaces, as terminals insert a file that is dropped on them. marks may follow it.
	named = regexp.MustCompile(`(?:^|[\s(])(?:"((?:file://)?[/~@][^"\n]+)"|'((?:file://)?[/~@][^'\n]+)'|` +
		`((?:file://)?[/~@](?:\\.|[^\s\\"])(?:\\.|[^\s\\])*)|(@"[^"\n]+)")`)
	escaped = regexp.MustCompile(`\\(.)`)
	pixels  = regexp.MustCompile(`(?i)\.(?:png|jpe?g|webp|gif)$`)
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
		bare := escaped.ReplaceAllString(m[3], "$1")
		word := strings.TrimPrefix(m[1]+m[2]+bare+strings.Replace(m[4], `"`, "", 1), "file://")
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

// Attach returns the images that a user's words name, and the words with a line for each at their end.
func Attach(dir, text string) (string, []op.Part) {
	var parts []op.Part
	var lines []string
	seen := make(map[string]bool)
	for _, f := range Files(dir, text) {
		if seen[f.Path] || !pixels.MatchString(f.Path) {
			continue
		}
		seen[f.Path] = true
		part, line, err := read(f.Path, len(parts))
		if lines = append(lines, line); err == nil {
			parts = append(parts, part)
		}
	}
	if len(lines) == 0 {
		return text, nil
	}
	return strings.TrimRight(text, "\n") + "\n\n" + strings.Join(lines, "\n"), parts
}

// read returns the image after n others, and the line about it.
func read(path string, n int) (part op.Part, line string, err error) {
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

// Attached returns the lines that Attach added to a user's words.
func Attached(text string) []string {
	_, after, ok := strings.Cut(text[max(0, strings.LastIndex(text, "\n\n")):], "\n\n[image ")
	if !ok {
		return nil
	}
	return strings.Split("[image "+after, "\n")
}
