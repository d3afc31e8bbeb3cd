package confine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mount is one line of /proc/self/mountinfo.
type Mount struct {
	id      uint64
	device  string // major:minor
	Root    string // the directory of the device that is mounted
	Place   string // where
	Kind    string // of file system
	Options string // of the file system
}

// ParseMounts reads the text of /proc/self/mountinfo.
func ParseMounts(table string) (all []Mount, err error) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line) // id, parent, device, root, place, … "-", kind, source, options
		at := slices.Index(f, "-")
		first, _, _ := strings.Cut(line, " ")
		id, err := strconv.ParseUint(first, 10, 64)
		if err != nil || at < 5 || len(f) < at+3 {
			return nil, fmt.Errorf("list mounts: unexpected line %q", line)
		}
		all = append(all, Mount{id: id, device: f[2], Root: unescapeMount(f[3]), Place: unescapeMount(f[4]),
			Kind: f[at+1], Options: f[len(f)-1]})
	}
	return all, nil
}

func unescapeMount(s string) string {
	for _, c := range []string{" ", "\t", "\n", "#", `\`} {
		s = strings.ReplaceAll(s, fmt.Sprintf(`\%03o`, c[0]), c)
	}
	return s
}
