package worldstate

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
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

// manifest is a manifest decoded.
type manifest struct {
	usual usualModes
	modes map[string]uint32 // true path → permissions
	empty map[string]uint32
	names map[string]string // stored path → true name
}

type usualModes struct{ file, exec, dir uint32 }

func gitModes() usualModes { return usualModes{0o644, 0o755, 0o755} }

func (u usualModes) of(s state) uint32 {
	switch {
	case s.kind == kindDir:
		return u.dir
	case s.kind == kindLink:
		return 0
	case s.perm&0o100 != 0:
		return u.exec
	}
	return u.file
}

// usualOf counts a listing's modes; the most frequent of each class wins,
// the smaller one on a tie.
func usualOf(l *listing) usualModes {
	var counts [3]map[uint32]int
	for i := range counts {
		counts[i] = make(map[uint32]int)
	}
	for i := range l.entries {
		switch s := l.entries[i].state; {
		case s.kind == kindDir:
			counts[2][s.perm]++
		case s.kind == kindFile && s.perm&0o100 != 0:
			counts[1][s.perm]++
		case s.kind == kindFile:
			counts[0][s.perm]++
		}
	}
	pick := func(count map[uint32]int, mode uint32) uint32 {
		best := 0
		for m, n := range count {
			if n > best || n == best && m < mode {
				mode, best = m, n
			}
		}
		return mode
	}
	u := gitModes()
	return usualModes{pick(counts[0], u.file), pick(counts[1], u.exec), pick(counts[2], u.dir)}
}

// encodeManifest gives a listing's manifest, nil when it needs none.
func encodeManifest(l *listing) []byte {
	usual := usualOf(l)
	full := make(map[string]bool) // directories with a file or link somewhere beneath
	for i := range l.entries {
		if l.entries[i].kind == kindDir {
			continue
		}
		for d := dir(l.entries[i].path); d != "" && !full[d]; d = dir(d) {
			full[d] = true
		}
	}
	var lines []string
	stored := storedPaths(l)
	for i := range l.entries {
		e := &l.entries[i]
		switch {
		case e.kind == kindDir && !full[e.path]:
			lines = append(lines, fmt.Sprintf("empty %04o %s", e.perm, strconv.QuoteToASCII(e.path)))
		case e.kind != kindLink && e.perm != usual.of(e.state):
			lines = append(lines, fmt.Sprintf("mode %04o %s", e.perm, strconv.QuoteToASCII(e.path)))
		}
		if e.stored != "" {
			lines = append(lines, fmt.Sprintf("name %s %s", strconv.QuoteToASCII(stored[i]), strconv.QuoteToASCII(base(e.path))))
		}
	}
	if len(lines) == 0 && usual == gitModes() {
		return nil
	}
	sort.Strings(lines)
	var b bytes.Buffer
	fmt.Fprintf(&b, "anamnesis-manifest 1 file=%04o exec=%04o dir=%04o\n", usual.file, usual.exec, usual.dir)
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// storedPaths gives each entry's path as it stands in the git tree.
func storedPaths(l *listing) []string {
	out := make([]string, len(l.entries))
	for i := range l.entries {
		e := &l.entries[i]
		parent := dir(e.path)
		if j, ok := l.index[parent]; ok && parent != "" {
			parent = out[j] // parents sort before their children
		}
		out[i] = join(parent, e.storedBase())
	}
	return out
}

// decodeManifest reads a manifest and refuses anything it does not know.
func decodeManifest(data []byte) (*manifest, error) {
	m := &manifest{modes: map[string]uint32{}, empty: map[string]uint32{}, names: map[string]string{}}
	head, rest, ok := strings.Cut(string(data), "\n")
	fields := strings.Fields(head)
	if !ok || len(fields) != 5 || fields[0] != "anamnesis-manifest" {
		return nil, fmt.Errorf("manifest: bad first line")
	}
	if fields[1] != "1" {
		return nil, fmt.Errorf("manifest: version %q is not known to this program", fields[1])
	}
	for i, f := range []struct {
		key string
		to  *uint32
	}{{"file=", &m.usual.file}, {"exec=", &m.usual.exec}, {"dir=", &m.usual.dir}} {
		v, ok := strings.CutPrefix(fields[2+i], f.key)
		perm, err := parsePerm(v)
		if !ok || err != nil {
			return nil, fmt.Errorf("manifest: bad usual mode %q", fields[2+i])
		}
		*f.to = perm
	}
	for n := 2; rest != ""; n++ {
		var line string
		if line, rest, ok = strings.Cut(rest, "\n"); !ok {
			return nil, fmt.Errorf("manifest: line %d is cut", n)
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
		mode, quoted, _ := strings.Cut(rest, " ")
		perm, err := parsePerm(mode)
		if err != nil {
			return err
		}
		path, err := unquotePath(quoted)
		if err != nil {
			return err
		}
		to := m.modes
		if word == "empty" {
			to = m.empty
		}
		if _, twice := to[path]; twice {
			return fmt.Errorf("%q stands twice", path)
		}
		to[path] = perm
		return nil
	case "name":
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return fmt.Errorf("bad path in %q", line)
		}
		stored, err := unquotePath(quoted)
		if err != nil {
			return err
		}
		name, err := unquotePath(strings.TrimPrefix(rest[len(quoted):], " "))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(base(stored), storedPrefix) || !validName(name) {
			return fmt.Errorf("%q cannot stand for %q", stored, name)
		}
		if _, twice := m.names[stored]; twice {
			return fmt.Errorf("%q stands twice", stored)
		}
		m.names[stored] = name
		return nil
	}
	return fmt.Errorf("unknown word %q", word)
}

func parsePerm(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 || len(s) != 4 {
		return 0, fmt.Errorf("bad mode %q", s)
	}
	return uint32(n), nil
}

// unquotePath reads one quoted path, which must be in the writer's own form.
func unquotePath(quoted string) (string, error) {
	path, err := strconv.Unquote(quoted)
	if err != nil || strconv.QuoteToASCII(path) != quoted {
		return "", fmt.Errorf("bad path %s", quoted)
	}
	if !validPath(path) {
		return "", fmt.Errorf("path %q cannot be in a world", path)
	}
	return path, nil
}
