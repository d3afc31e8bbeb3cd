package secrets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/opstream/durable"
)

// Scrubber returns texts, files and names of the folder without secrets. A secret that it finds in
// one place it replaces in all later ones, so it must read everything before anything is written.
type Scrubber struct {
	redact Redactor
	names  map[string]string // path to the new last part of it
	swaps  map[string]string // ids and names that hold a secret, to what they become
	swap   *strings.Replacer // of swaps; nil: to be made
}

func NewScrubber(r Redactor) *Scrubber {
	return &Scrubber{redact: r, names: map[string]string{}, swaps: map[string]string{}}
}

// Learn makes the scrubber replace a name by another.
func (b *Scrubber) Learn(was, is string) {
	if was != is && b.swaps[was] == "" {
		b.swaps[was], b.swap = is, nil
	}
}

// Text returns a text without secrets, and the kinds of what was replaced.
func (b *Scrubber) Text(text string) (string, []string) {
	if b.swap == nil {
		longest := func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }
		var pairs []string
		for _, was := range slices.SortedFunc(maps.Keys(b.swaps), longest) {
			pairs = append(pairs, was, b.swaps[was])
		}
		b.swap = strings.NewReplacer(pairs...)
	}
	var kinds []string
	swapped := b.swap.Replace(text)
	if swapped != text {
		kinds = append(kinds, "name")
	}
	var markers []string
	out := b.redact.Text(swapped, &markers)
	return out, append(kinds, kindsOf(markers)...)
}

// Name returns the new last part of a path, and the kinds of what was replaced.
func (b *Scrubber) Name(p string) (string, []string) {
	base := path.Base(p)
	if is, ok := b.names[p]; ok {
		return is, []string{"name"}
	}
	var markers []string
	out := b.redact.Text(base, &markers)
	if len(markers) == 0 {
		return base, nil
	}
	// A marker's brackets and colons are not for file names.
	out = strings.NewReplacer("[redacted:", "redacted-", ":", "-", "]", "").Replace(out)
	b.names[p] = out
	b.Learn(base, out)
	return out, kindsOf(markers)
}

// Blob returns the new bytes of a file, and the kinds of what was replaced. The name of a card's
// file follows its topic.
func (b *Scrubber) Blob(p string, data []byte) ([]byte, []string) {
	text, kinds := b.Text(string(data))
	if len(kinds) == 0 || !folder.IsCardFile(p) && p != "" {
		return []byte(text), kinds
	}
	was, err := card.Parse(data)
	if err != nil {
		return []byte(text), kinds
	}
	var markers []string
	// The new id derives from the old one, so that files in which the id occurs agree, and repeated runs as well.
	if b.redact.Text(was.ID, &markers); len(markers) > 0 {
		b.Learn(was.ID, card.NewID("redacted", was.ID))
	}
	b.Text("") // makes the replacer
	// Field by field, the result is a valid card. A marker in the text could break its front matter.
	c, err := card.Parse([]byte(b.swap.Replace(string(data))))
	if err != nil {
		return []byte(text), kinds
	}
	clean, _, err := b.redact.Card(c)
	if err != nil {
		return []byte(text), kinds
	}
	old, now := folder.FileName(was.Topic, was.ID), folder.FileName(clean.Topic, clean.ID)
	if p != "" && path.Base(p) == old && now != old {
		b.names[p] = now
		b.Learn(old, now)
	}
	return clean.Markdown(), kinds
}

// Path returns what a path is called afterwards.
func (b *Scrubber) Path(p string) string {
	var parts []string
	for at := p; at != "." && at != "/"; at = path.Dir(at) {
		base, _ := b.Name(at)
		parts = append(parts, base)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

func kindsOf(markers []string) (kinds []string) {
	for _, m := range markers {
		parts := strings.Split(strings.Trim(m, "[]"), ":")
		kinds = append(kinds, parts[min(1, len(parts)-1)])
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Place is where secrets were found.
type Place struct {
	Path  string   `json:"path"`  // as it is called without them
	Kinds []string `json:"kinds"` // of secrets, sorted
}

// Plan is what the files of the folder become.
type Plan struct {
	Places []Place
	Unread []string // files that are too long, or no text, and stay as they are
	Files  []intent.File
}

// NameConflictError is returned if a file has the name that another is to get.
type NameConflictError struct{ Name, Path string }

func (e *NameConflictError) Error() string {
	return fmt.Sprintf("a file of the name %s is there", e.Path)
}

// Plan plans what the files of the folder dir become; paths are within it, with slashes.
func (b *Scrubber) Plan(dir string, paths []string) (*Plan, error) {
	out := new(Plan)
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		full := filepath.Join(dir, filepath.FromSlash(p))
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(p, ".") {
			continue
		}
		// What is not read as a whole cannot be redacted, so the user gets a note.
		if info.Size() > history.MaxBlobBytes {
			out.Unread = append(out.Unread, b.Path(p))
			continue
		}
		data, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		clean, kinds := b.Blob(p, data)
		to := b.Path(p)
		if to != p {
			kinds = append(kinds, "name")
		}
		if len(kinds) == 0 {
			continue
		}
		if !utf8.Valid(clean) {
			out.Unread = append(out.Unread, to)
			continue
		}
		slices.Sort(kinds)
		out.Places = append(out.Places, Place{Path: to, Kinds: slices.Compact(kinds)})
		if to == p {
			out.Files = append(out.Files, intent.File{Path: p, Before: intent.Sum(data), Data: string(clean)})
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(to))); err == nil {
			return nil, &NameConflictError{to, filepath.Join(dir, filepath.FromSlash(to))}
		}
		out.Files = append(out.Files, intent.File{Path: to, Data: string(clean)},
			intent.File{Path: p, Before: intent.Sum(data), Gone: true})
	}
	return out, nil
}

// List takes secrets out of a file beside the cards, line by line. A file of JSON stays
// JSON.
func (b *Scrubber) List(fsys durable.FS, list string) error {
	data, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for line := range strings.Lines(string(data)) {
		clean, kinds := b.Text(line)
		if strings.HasSuffix(list, ".jsonl") && len(kinds) > 0 && !json.Valid([]byte(clean)) {
			continue // such a line is lost: its secret must go, and its readers skip what is no JSON
		}
		out.WriteString(clean)
	}
	if bytes.Equal(out.Bytes(), data) {
		return nil
	}
	return durable.WriteFile(fsys, list, out.Bytes())
}
