package refs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// packedHeader begins packed-refs as git writes it, without "peeled": the targets of tags are
// not written, and git looks them up.
const packedHeader = "# pack-refs with: sorted \n"

func encodePacked(refs map[string]gitfmt.Hash) []byte {
	var b bytes.Buffer
	b.WriteString(packedHeader)
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&b, "%s %s\n", refs[name], name)
	}
	return b.Bytes()
}

// readPacked reads a packed-refs file. It skips comments and the targets of tags.
func readPacked(path string) (map[string]gitfmt.Hash, error) {
	refs := make(map[string]gitfmt.Hash)
	f, err := fsys.OpenFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return refs, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read refs: %w", err)
	}
	defer f.Close()
	lines := 0
	for in := bufio.NewReader(f); ; lines++ {
		line, err := in.ReadString('\n')
		if line == "" && err != nil {
			if lines == 0 { // git always writes a first line
				return nil, fmt.Errorf("read refs: %w: packed-refs is empty", gitfmt.ErrCorrupt)
			}
			return refs, nil
		}
		if line[0] == '#' || line[0] == '^' || line == "\n" {
			continue
		}
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		h, isID := gitfmt.ParseHash(id)
		if !ok || !isID || err != nil || !strings.HasPrefix(name, "refs/") {
			return nil, fmt.Errorf("read refs: %w: bad line %.200q in packed-refs", gitfmt.ErrCorrupt, line)
		}
		refs[name] = h
	}
}
