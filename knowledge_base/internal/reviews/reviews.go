// Package reviews keeps the list of the lessons that were reviewed on this machine, and of
// those that arrived from elsewhere.
package reviews

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"anamnesis/knowledge_base/internal/disk"
)

// What a line says.
const (
	Reviewed = 1
	Arrived  = 2
)

// Line is one line of the list.
type Line struct {
	V     int       `json:"v"`    // 1: a review; 2: the lesson arrived from elsewhere
	Hash  string    `json:"hash"` // card.Card.Hash
	At    time.Time `json:"at"`
	Topic string    `json:"topic"`
}

// Read returns the hashes of the lessons reviewed here, and of those that
// arrived from elsewhere. A line that a crash tore is no review.
func Read(path string) (out, arrived map[string]bool, err error) {
	out, arrived = make(map[string]bool), make(map[string]bool)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read reviews: %w", err)
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		switch r := parse(sc.Bytes()); r.V {
		case Reviewed:
			out[r.Hash] = true
		case Arrived:
			arrived[r.Hash] = true
		}
	}
	if err := sc.Err(); err != nil {
		return nil, nil, fmt.Errorf("read reviews %s: %w", path, err)
	}
	return out, arrived, nil
}

// parse returns what a line says of which lesson; nothing for one that is torn. A line as
// this package writes it is not decoded: each opening reads them all.
func parse(line []byte) (r Line) {
	const hash, at, end = `,"hash":"`, `","at":"`, `"}`
	if rest, ok := bytes.CutPrefix(line, []byte(`{"v":`)); ok && len(rest) > 1+len(hash)+sha256.Size*2 && bytes.HasSuffix(line, []byte(end)) && !bytes.HasSuffix(line, []byte(`\`+end)) {
		name := rest[1+len(hash):][:sha256.Size*2]
		if bytes.HasPrefix(rest[1:], []byte(hash)) && bytes.HasPrefix(rest[1+len(hash)+len(name):], []byte(at)) {
			return Line{V: int(rest[0] - '0'), Hash: string(name)}
		}
	}
	if json.Unmarshal(line, &r) != nil {
		return Line{}
	}
	return r
}

// Append appends to the list, durably.
func Append(fsys disk.FS, path string, lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	data, err := encode("\n", lines) // an empty line ends what was torn before
	if err != nil {
		return err
	}
	if err := disk.MakeDir(fsys, filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, disk.FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// Begin writes a list anew.
func Begin(fsys disk.FS, path string, lines []Line) error {
	data, err := encode("", lines)
	if err != nil {
		return err
	}
	return disk.WriteAtomic(fsys, path, data)
}

func encode(before string, lines []Line) ([]byte, error) {
	var b bytes.Buffer
	for _, r := range lines {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		b.WriteString(before + string(line) + "\n")
	}
	return b.Bytes(), nil
}
