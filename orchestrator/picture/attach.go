package picture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
)

// maxAttached bounds the images of one message.
const maxAttached = 8

// named matches the path of an image in a user's words: absolute, of the home directory, or after
// an @; quoted, or with escaped spaces, as terminals insert a file that is dropped on them.
var named = regexp.MustCompile(`(?i)(?:^|[\s(])(?:"((?:file://)?[/~@][^"\n]*\.(?:png|jpe?g|webp|gif))"|'((?:file://)?[/~@][^'\n]*\.(?:png|jpe?g|webp|gif))'|` +
	`((?:file://)?[/~@](?:\\.|[^\s\\"'])*\.(?:png|jpe?g|webp|gif))\b)`)

// longer matches what follows a name that does not end there, as in a.png.bak.
var longer = regexp.MustCompile(`^[./-]\w`)

// Attach returns the images that a user's words name, and the words with a line for each at their
// end. Relative paths are of dir. A path without a file stays a word.
func Attach(dir, text string) (string, []op.Part) {
	var parts []op.Part
	var lines []string
	seen := make(map[string]bool)
	for _, at := range named.FindAllStringSubmatchIndex(text, -1) {
		if longer.MatchString(text[at[1]:]) {
			continue
		}
		m := named.FindStringSubmatch(text[at[0]:at[1]])
		path := m[1] + m[2] + regexp.MustCompile(`\\(.)`).ReplaceAllString(m[3], "$1")
		path = strings.TrimPrefix(strings.TrimPrefix(path, "file://"), "@")
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
			path = filepath.Join(home, path[2:])
		} else if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if _, err := os.Stat(path); seen[path] || err != nil {
			continue
		}
		seen[path] = true
		part, description, err := read(path)
		if err == nil && len(parts) == maxAttached {
			err = fmt.Errorf("at most %d are in one message", maxAttached)
		}
		if err != nil {
			lines = append(lines, fmt.Sprintf("[image %s: not attached: %v]", path, err))
			continue
		}
		part.Name = path
		parts = append(parts, part)
		lines = append(lines, fmt.Sprintf("[image %d: %s: %s]", len(parts), path, description))
	}
	if len(lines) == 0 {
		return text, nil
	}
	return strings.TrimRight(text, "\n") + "\n\n" + strings.Join(lines, "\n"), parts
}

func read(path string) (op.Part, string, error) {
	data, err := durable.ReadFile(path, MaxFileBytes)
	var failed *fs.PathError // it names the path again
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		return op.Part{}, "", err
	}
	return Fit(data)
}

// Attached returns the lines that Attach added to a user's words.
func Attached(text string) []string {
	_, after, ok := strings.Cut(text[max(0, strings.LastIndex(text, "\n\n")):], "\n\n[image ")
	if !ok {
		return nil
	}
	return strings.Split("[image "+after, "\n")
}
