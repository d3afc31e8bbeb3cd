//go:build unix

package worldstate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// The journal is a restore's intent, made durable before the first byte moves
// and removed after the last check. Text, one fact a line, the last line the
// SHA-256 of all before it:
//
//	anamnesis-journal 1
//	world 0123456789abcdef
//	source COMMIT
//	target COMMIT
//	head COMMIT              what the world's ref will name afterwards
//	nonce 0123456789abcdef   begins the names of temporary files
//	boot ID                  of the machine's run, where that is known
//	act BEFORE AFTER "path"
//	sum HEX
type journal struct {
	world          string
	source, target gitfmt.Hash
	head           gitfmt.Hash
	nonce          string
	boot           string
	actions        []action
}

const (
	journalMagic  = "anamnesis-journal 1"
	journalPrefix = "journal-"
)

// stateFiles lists a store's files of ours whose names begin so. A pattern would
// not do: the path is a person's, and may hold what patterns mean something by.
func stateFiles(store, prefix string) ([]string, error) {
	dir := filepath.Join(store, fsys.StateDir)
	list, err := os.ReadDir(dir)
	var out []string
	for _, e := range list {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, err
}

// journalRoots returns the snapshots that the journals in a store name.
func journalRoots(store string) ([]gitfmt.Hash, error) {
	journals, err := stateFiles(store, journalPrefix)
	if err != nil {
		return nil, fmt.Errorf("look for journals: %w", err)
	}
	var roots []gitfmt.Hash
	for _, path := range journals {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		j, err := decodeJournal(data)
		if err != nil {
			return nil, fmt.Errorf("read journal %s: %w: %w", path, gitfmt.ErrCorrupt, err)
		}
		roots = append(roots, j.source, j.target, j.head)
	}
	return roots, nil
}

func (w *World) journalPath() string {
	return filepath.Join(w.store, fsys.StateDir, journalPrefix+w.key)
}

// checkNoJournal refuses to go on over an interrupted restore.
func (w *World) checkNoJournal() error {
	switch _, err := fsys.Lstatat(unix.AT_FDCWD, w.journalPath()); {
	case err == nil:
		return fmt.Errorf("world %s: %w", w.dir, ErrUnfinished)
	case !errors.Is(err, unix.ENOENT):
		return fmt.Errorf("world %s: read journal: %w", w.dir, err)
	}
	return nil
}

func (w *World) writeJournal(j *journal) error {
	return fsys.WriteFileDurably(w.journalPath(), j.encode())
}

// readJournal gives the interrupted restore's journal, nil when there is none.
func (w *World) readJournal() (*journal, error) {
	data, err := os.ReadFile(w.journalPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	j, err := decodeJournal(data)
	if err == nil && j.world != w.key {
		err = errors.New("it is another world's")
	}
	if err != nil {
		return nil, fmt.Errorf("read journal %s: %w: %w", w.journalPath(), gitfmt.ErrCorrupt, err)
	}
	return j, nil
}

func (w *World) removeJournal() error {
	if err := os.Remove(w.journalPath()); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return fsys.SyncDir(filepath.Dir(w.journalPath()))
}

func (j *journal) encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nworld %s\nsource %s\ntarget %s\nhead %s\nnonce %s\n", journalMagic, j.world, j.source, j.target, j.head, j.nonce)
	if j.boot != "" {
		fmt.Fprintf(&b, "boot %s\n", j.boot)
	}
	for _, a := range j.actions {
		fmt.Fprintf(&b, "act %s %s %s\n", a.before, a.after, strconv.QuoteToASCII(a.path))
	}
	sum := sha256.Sum256([]byte(b.String()))
	fmt.Fprintf(&b, "sum %x\n", sum)
	return []byte(b.String())
}

func decodeJournal(data []byte) (*journal, error) {
	text := string(data)
	i := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")
	if i < 0 {
		return nil, errors.New("cut short")
	}
	body, last := text[:i+1], text[i+1:]
	sum := sha256.Sum256([]byte(body))
	if last != fmt.Sprintf("sum %x\n", sum) {
		return nil, errors.New("bad checksum")
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if len(lines) < 6 || lines[0] != journalMagic {
		return nil, errors.New("not a journal this program knows")
	}
	j := &journal{}
	var ids [3]gitfmt.Hash
	var texts [5]string
	for i, key := range []string{"world ", "source ", "target ", "head ", "nonce "} {
		v, ok := strings.CutPrefix(lines[1+i], key)
		if !ok {
			return nil, fmt.Errorf("no %sline", key)
		}
		texts[i] = v
		if i >= 1 && i <= 3 {
			if ids[i-1], ok = gitfmt.ParseHash(v); !ok {
				return nil, fmt.Errorf("bad %s%q", key, v)
			}
		}
	}
	j.world, j.nonce = texts[0], texts[4]
	j.source, j.target, j.head = ids[0], ids[1], ids[2]
	if _, err := hex.DecodeString(j.nonce); err != nil || len(j.nonce) != fsys.NonceDigits {
		return nil, fmt.Errorf("bad nonce %q", j.nonce)
	}
	lines = lines[6:]
	if len(lines) > 0 {
		var there bool
		if j.boot, there = strings.CutPrefix(lines[0], "boot "); there {
			lines = lines[1:]
		} else {
			j.boot = ""
		}
	}
	for _, line := range lines {
		a, err := parseAction(line)
		if err != nil {
			return nil, err
		}
		j.actions = append(j.actions, a)
	}
	return j, nil
}

func parseAction(line string) (action, error) {
	f := strings.SplitN(line, " ", 4)
	if len(f) != 4 || f[0] != "act" {
		return action{}, fmt.Errorf("bad line %q", line)
	}
	before, err := parseState(f[1])
	if err != nil {
		return action{}, err
	}
	after, err := parseState(f[2])
	if err != nil {
		return action{}, err
	}
	path, err := tree.UnquotePath(f[3])
	return action{path, before, after}, err
}

// parseState reads what state.String wrote.
func parseState(s string) (tree.State, error) {
	bad := fmt.Errorf("bad state %q", s)
	if s == "-" {
		return tree.State{}, nil
	}
	var out tree.State
	var perm, id string
	switch {
	case strings.HasPrefix(s, "f"):
		out.Kind = tree.KindFile
		perm, id, _ = strings.Cut(s[1:], ":")
	case strings.HasPrefix(s, "l:"):
		out.Kind, id = tree.KindLink, s[2:]
	case strings.HasPrefix(s, "d"):
		out.Kind, perm = tree.KindDir, s[1:]
	default:
		return tree.State{}, bad
	}
	if out.Kind != tree.KindLink {
		p, err := tree.ParsePerm(perm)
		if err != nil {
			return tree.State{}, bad
		}
		out.Perm = p
	}
	if out.Kind != tree.KindDir {
		h, ok := gitfmt.ParseHash(id)
		if !ok {
			return tree.State{}, bad
		}
		out.Hash = h
	}
	return out, nil
}
