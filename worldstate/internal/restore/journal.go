package restore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// A Journal is a restore's intent, made durable before the first change and removed after the
// last check. It is text, one fact a line; the last line is the SHA-256 of those before it:
//
//	anamnesis-journal 1
//	world 0123456789abcdef
//	source COMMIT
//	target COMMIT
//	head COMMIT              the value of the world's ref after the restore
//	nonce 0123456789abcdef   begins the names of temporary files
//	boot ID                  identifies the machine's boot, if that is known
//	act BEFORE AFTER "path"
//	sum HEX
type Journal struct {
	World          string
	Source, Target gitfmt.Hash
	Head           gitfmt.Hash
	Nonce          string
	Boot           string
	Actions        []Action
}

const (
	journalMagic  = "anamnesis-journal 1"
	journalPrefix = "journal-"
)

// File locates one world's journal in a store.
type File struct {
	Path  string
	World string // its key
}

// JournalOf returns the location of a world's journal.
func JournalOf(store, world string) File {
	return File{filepath.Join(store, fsys.StateDir, journalPrefix+world), world}
}

// Exists reports whether there is a journal, and thus an interrupted restore.
func (f File) Exists() (bool, error) { return fsys.Exists(f.Path) }

func (f File) Write(j *Journal) error { return fsys.WriteFileDurably(f.Path, j.Encode()) }

// Read returns the journal, nil if there is none.
func (f File) Read() (*Journal, error) {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	j, err := DecodeJournal(data)
	if err == nil && j.World != f.World {
		err = errors.New("it belongs to another world")
	}
	if err != nil {
		return nil, fmt.Errorf("read journal %s: %w: %w", f.Path, gitfmt.ErrCorrupt, err)
	}
	return j, nil
}

func (f File) Remove() error {
	if err := os.Remove(f.Path); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return durable.Sync(filepath.Dir(f.Path))
}

// JournalRoots returns the snapshots that a store's journals name.
func JournalRoots(store string) ([]gitfmt.Hash, error) {
	list, err := os.ReadDir(filepath.Join(store, fsys.StateDir))
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	var roots []gitfmt.Hash
	for _, e := range list {
		world, is := strings.CutPrefix(e.Name(), journalPrefix)
		if !is {
			continue
		}
		j, err := JournalOf(store, world).Read()
		if err != nil {
			return nil, err
		}
		if j != nil {
			roots = append(roots, j.Source, j.Target, j.Head)
		}
	}
	return roots, nil
}

func (j *Journal) Encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nworld %s\nsource %s\ntarget %s\nhead %s\nnonce %s\n",
		journalMagic, j.World, j.Source, j.Target, j.Head, j.Nonce)
	if j.Boot != "" {
		fmt.Fprintf(&b, "boot %s\n", j.Boot)
	}
	for _, a := range j.Actions {
		fmt.Fprintf(&b, "act %s %s %s\n", a.Before, a.After, strconv.QuoteToASCII(a.Path))
	}
	sum := sha256.Sum256([]byte(b.String()))
	fmt.Fprintf(&b, "sum %x\n", sum)
	return []byte(b.String())
}

// DecodeJournal decodes a journal. Only what Encode returns is valid, its checksum included.
func DecodeJournal(data []byte) (*Journal, error) {
	j := &Journal{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		switch key, value, _ := strings.Cut(line, " "); key {
		case "world":
			j.World = value
		case "source":
			j.Source, _ = gitfmt.ParseHash(value)
		case "target":
			j.Target, _ = gitfmt.ParseHash(value)
		case "head":
			j.Head, _ = gitfmt.ParseHash(value)
		case "nonce":
			j.Nonce = value
		case "boot":
			j.Boot = value
		case "act":
			a, err := parseAction(line)
			if err != nil {
				return nil, err
			}
			j.Actions = append(j.Actions, a)
		}
	}
	// This finds all that the switch accepts and Encode does not write: unknown keys, another order, a torn end.
	if !bytes.Equal(j.Encode(), data) {
		return nil, errors.New("damaged, or in an unknown format")
	}
	if _, err := hex.DecodeString(j.Nonce); err != nil || len(j.Nonce) != fsys.NonceDigits {
		return nil, fmt.Errorf("bad nonce %q", j.Nonce)
	}
	return j, nil
}

func parseAction(line string) (Action, error) {
	f := strings.SplitN(line, " ", 4)
	if len(f) != 4 || f[0] != "act" {
		return Action{}, fmt.Errorf("bad line %q", line)
	}
	before, err := parseState(f[1])
	if err != nil {
		return Action{}, err
	}
	after, err := parseState(f[2])
	if err != nil {
		return Action{}, err
	}
	path, err := tree.UnquotePath(f[3])
	return Action{path, before, after}, err
}

// parseState parses the result of State.String.
func parseState(s string) (out tree.State, err error) {
	var id string
	switch {
	case strings.HasPrefix(s, "f"):
		out.Kind = tree.KindFile
		_, err = fmt.Sscanf(s, "f%04o:%s", &out.Perm, &id)
	case strings.HasPrefix(s, "l:"):
		out.Kind, id = tree.KindLink, s[2:]
	case strings.HasPrefix(s, "d"):
		out.Kind = tree.KindDir
		_, err = fmt.Sscanf(s, "d%04o", &out.Perm)
	}
	out.Hash, _ = gitfmt.ParseHash(id)
	if err != nil || out.String() != s || out.Perm > 0o777 {
		return tree.State{}, fmt.Errorf("bad state %q", s)
	}
	return out, nil
}
