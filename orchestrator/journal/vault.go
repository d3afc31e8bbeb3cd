package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unicode/utf8"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/redact"
)

// Vault is the one file of a task that holds secrets. It holds the value of each marker for
// each file of the world it was found in, so that a file tool can restore it there, and the
// values that are known since a pattern recognised them. Of a secret found elsewhere it keeps
// the marker only. The first line holds the key of the markers' hashes, each other line one
// entry. Entries are durable when Add returns. It is safe for concurrent use.
type Vault struct {
	Key []byte

	mu      sync.Mutex
	file    *os.File
	size    int64
	broken  error // a write failed and could not be taken back
	entries map[string][]vaultEntry
	Learned []redact.Secret // in the order of their lines
	shared  int             // how many of the family's values were handled
}

// vaultEntry is a line of the file. An empty File means elsewhere.
type vaultEntry struct {
	Marker string `json:"marker"`
	File   string `json:"file,omitempty"`
	Text   string `json:"text,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"` // in place of Text where that is not UTF-8
	// Learned is the kind of a known value; Marker is learnedMarker then.
	Learned string `json:"learned,omitempty"`
}

type vaultHead struct {
	V   int    `json:"v"`
	Key []byte `json:"key"`
}

// learnedMarker is the marker of entries that hold a known value: older programs take them for
// entries of a marker that never occurs.
const learnedMarker = "learned"

// maxVaultBytes bounds the file: beyond it secrets are redacted and their values not kept.
const maxVaultBytes = 64 << 20

// OpenVault opens a task's vault and creates it if there is none. It cuts off an incomplete
// last line: no operation names it yet.
func OpenVault(path string) (_ *Vault, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the vault: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open the vault %s: %w", path, err), f.Close())
		}
	}()
	v := &Vault{file: f, entries: map[string][]vaultEntry{}}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if len(whole) < len(data) {
		if err := f.Truncate(int64(len(whole))); err != nil {
			return nil, err
		}
	}
	v.size = int64(len(whole))
	if len(whole) > 0 {
		return v, v.parse(whole)
	}
	v.Key = make([]byte, redact.KeyBytes)
	rand.Read(v.Key) // never fails
	if err := v.write(vaultHead{V: 1, Key: v.Key}); err != nil {
		return nil, err
	}
	return v, durable.Sync(filepath.Dir(path))
}

// CheckVault returns what is damaged of a vault's file, apart from an incomplete last line.
func CheckVault(data []byte) error {
	v := &Vault{entries: map[string][]vaultEntry{}}
	return v.parse(data[:bytes.LastIndexByte(data, '\n')+1])
}

func (v *Vault) parse(data []byte) error {
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if n == 1 {
			var head vaultHead
			if err := json.Unmarshal(line, &head); err != nil || head.V != 1 || len(head.Key) != redact.KeyBytes {
				return errors.New("its first line has no key; if you move the file away, existing markers can no " +
					"longer be replaced by their values")
			}
			v.Key = head.Key
			continue
		}
		var e vaultEntry
		if err := json.Unmarshal(line, &e); err != nil || e.Marker == "" {
			return fmt.Errorf("line %d is damaged; without it, its marker can no longer be replaced by its value", n)
		}
		v.index(e)
	}
	return nil
}

// Learn records the family's known values that are not recorded yet.
func (v *Vault) Learn(l *redact.Learned) error {
	if all := l.Values(0); len(all) == 0 {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	more := l.Values(v.shared)
	for _, s := range more {
		if !slices.Contains(v.Learned, s) && v.size <= maxVaultBytes {
			e := vaultEntry{Marker: learnedMarker, Learned: s.Kind}
			e.put(s.Value)
			if err := v.write(e); err != nil {
				return fmt.Errorf("keep a secret in the vault: %w", err)
			}
			v.Learned = append(v.Learned, s)
		}
		v.shared++
	}
	return nil
}

func (v *Vault) index(e vaultEntry) {
	if e.Learned != "" {
		v.Learned = append(v.Learned, redact.Secret{Kind: e.Learned, Value: e.secretBytes()})
		return
	}
	v.entries[e.Marker] = append(v.entries[e.Marker], e)
}

func (e *vaultEntry) put(secret string) {
	if utf8.ValidString(secret) {
		e.Text = secret
	} else {
		e.Bytes = []byte(secret)
	}
}

func (e *vaultEntry) secretBytes() string {
	if e.Bytes != nil {
		return string(e.Bytes)
	}
	return e.Text
}

// Add records the value of a marker in a file; an empty file means elsewhere.
func (v *Vault) Add(marker, file, secret string) error {
	e := vaultEntry{Marker: marker, File: file}
	if file != "" {
		e.put(secret)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	known := slices.ContainsFunc(v.entries[marker], func(k vaultEntry) bool {
		return k.File == file && k.secretBytes() == e.secretBytes()
	})
	if known || v.size > maxVaultBytes {
		return nil
	}
	if err := v.write(e); err != nil {
		return fmt.Errorf("keep a secret in the vault: %w", err)
	}
	v.index(e)
	return nil
}

// write appends a line durably; v.mu is held or v is not shared yet. A line that failed is
// removed.
func (v *Vault) write(line any) error {
	if v.broken != nil {
		return v.broken
	}
	data, err := op.PlainJSON(line)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	_, err = v.file.WriteAt(data, v.size)
	if err == nil {
		err = v.file.Sync()
	}
	if err != nil {
		// The next line would be joined to a partial one that cannot be cut off, so that nothing more is written.
		v.broken = v.file.Truncate(v.size)
		return err
	}
	v.size += int64(len(data))
	return nil
}

// Lookup returns the value of a marker in a file. The error, written for the model, says why
// it cannot be used there.
func (v *Vault) Lookup(marker, file string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.entries[marker]
	var here []vaultEntry
	from := ""
	for _, e := range all {
		if e.File == file {
			here = append(here, e)
		} else if e.File != "" {
			from = e.File
		}
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%s is not known in this task", marker)
	}
	if len(here) > 1 {
		return "", fmt.Errorf("%s is the marker of several values in %s", marker, file)
	}
	if len(here) == 1 {
		return here[0].secretBytes(), nil
	}
	if from != "" {
		return "", fmt.Errorf("%s comes from %s and can be put back only there", marker, from)
	}
	return "", fmt.Errorf("%s does not come from a file; a user must put the value there", marker)
}

func (v *Vault) Close() error { return v.file.Close() }
