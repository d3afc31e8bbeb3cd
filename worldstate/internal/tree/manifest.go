package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"anamnesis/worldstate/internal/fsys"
)

// The manifest is text, one fact a line, paths as Go string literals in ASCII:
//
//	anamnesis-manifest 1 file=0644 exec=0755 dir=0755
//	mode 0600 "secrets/key"        permissions other than its class's usual ones
//	empty 0755 "logs"              a directory with no file or link captured beneath
//	name ".anamnesis-name-git%7e1" "git~1"    a stored path and its true last name
//
// The first line names the usual modes of this tree's files, executable files
// and directories. The manifest is written only when they are not git's own
// (0644, 0755, 0755) or another line is needed. Paths in mode and empty lines
// are true paths; in name lines the stored path is wholly as stored.

type manifest struct {
	usual usualModes
	Modes map[string]uint32 // true path → permissions
	empty map[string]uint32
	Names map[string]string // stored path → true name
}

// usualModes are the permissions of each class that need no line.
type usualModes [classes]uint32

const manifestHead = "anamnesis-manifest 1 file=%04o exec=%04o dir=%04o"

// head returns the first line of a manifest.
func (u usualModes) head() string {
	return fmt.Sprintf(manifestHead, u[classFile], u[classExec], u[classDir])
}

func gitModes() usualModes {
	return usualModes{classFile: 0o644, classExec: 0o755, classDir: 0o755}
}

// usual returns the most frequent mode of each class, the smaller one on a tie.
func (s *summary) usual() usualModes {
	u := gitModes()
	var most [classes]int
	for _, m := range s.modes { // smaller modes first
		if m.n > most[m.class] {
			most[m.class], u[m.class] = m.n, m.perm
		}
	}
	return u
}

// encodeManifest returns a listing's manifest, nil if it needs none. It skips directories that
// need no line.
func encodeManifest(l *Listing) []byte {
	usual := l.Root.Sum.usual()
	var lines []string
	var walk func(n *Node, path, stored string)
	walk = func(n *Node, path, stored string) {
		if n.Sum.plain(usual) {
			return
		}
		for i := range n.Items {
			it := &n.Items[i]
			p, sp := fsys.Join(path, it.Name), fsys.Join(stored, cmp.Or(it.Stored, it.Name))
			switch {
			case it.Kind == KindDir && it.Sub.Sum.Files == 0:
				lines = append(lines, fmt.Sprintf("empty %04o %+q", it.Perm, p))
			case it.Kind != KindLink && it.Perm != usual[it.class()]:
				lines = append(lines, fmt.Sprintf("mode %04o %+q", it.Perm, p))
			}
			if it.Stored != "" {
				lines = append(lines, fmt.Sprintf("name %+q %+q", sp, it.Name))
			}
			if it.Kind == KindDir {
				walk(it.Sub, p, sp)
			}
		}
	}
	walk(l.Root, "", "")
	if len(lines) == 0 && usual == gitModes() {
		return nil
	}
	slices.Sort(lines) // equal worlds need equal bytes, since the manifest is part of the world's id
	return []byte(strings.Join(append([]string{usual.head()}, lines...), "\n") + "\n")
}

// DecodeManifest decodes a manifest and refuses anything unknown.
func DecodeManifest(data []byte) (*manifest, error) {
	m := &manifest{Modes: map[string]uint32{}, empty: map[string]uint32{}, Names: map[string]string{}}
	head, rest, ok := strings.Cut(string(data), "\n")
	u := &m.usual
	_, err := fmt.Sscanf(head, manifestHead, &u[classFile], &u[classExec], &u[classDir])
	if !ok || err != nil || head != u.head() || slices.Max(u[:]) > 0o777 {
		return nil, fmt.Errorf("manifest: bad first line %q, or a newer version", head)
	}
	for n := 2; rest != ""; n++ {
		var line string
		if line, rest, ok = strings.Cut(rest, "\n"); !ok {
			return nil, fmt.Errorf("manifest: line %d is cut short", n)
		}
		if err := m.line(line); err != nil {
			return nil, fmt.Errorf("manifest: line %d: %w", n, err)
		}
	}
	return m, nil
}

func (m *manifest) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "mode", "empty":
		// Two values for one path mean damage: neither is to be restored.
		mode, quoted, _ := strings.Cut(rest, " ")
		perm, err := ParsePerm(mode)
		if err != nil {
			return err
		}
		path, err := UnquotePath(quoted)
		if err != nil {
			return err
		}
		to := m.Modes
		if word == "empty" {
			to = m.empty
		}
		if _, twice := to[path]; twice {
			return fmt.Errorf("%q occurs twice", path)
		}
		to[path] = perm
		return nil
	case "name":
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return fmt.Errorf("bad path in %q", line)
		}
		stored, err := UnquotePath(quoted)
		if err != nil {
			return err
		}
		name, err := UnquotePath(strings.TrimPrefix(rest[len(quoted):], " "))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(fsys.Base(stored), StoredPrefix) || !fsys.ValidName(name) {
			return fmt.Errorf("%q cannot be the stored name of %q", stored, name)
		}
		if _, twice := m.Names[stored]; twice {
			return fmt.Errorf("%q occurs twice", stored)
		}
		m.Names[stored] = name
		return nil
	}
	return fmt.Errorf("unknown word %q", word)
}

func ParsePerm(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 || len(s) != 4 {
		return 0, fmt.Errorf("bad mode %q", s)
	}
	return uint32(n), nil
}

// UnquotePath decodes one quoted path, which must be quoted exactly as this package does.
func UnquotePath(quoted string) (string, error) {
	path, err := strconv.Unquote(quoted)
	if err != nil || strconv.QuoteToASCII(path) != quoted {
		return "", fmt.Errorf("bad path %s", quoted)
	}
	if !fsys.ValidPath(path) {
		return "", fmt.Errorf("path %q cannot be in a world", path)
	}
	return path, nil
}
