package gitfmt

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func EncodeTree(items []TreeItem, size int) []byte {
	if !slices.IsSortedFunc(items, treeOrder) {
		slices.SortFunc(items, treeOrder)
	}
	out := make([]byte, 0, size)
	for i := range items {
		it := &items[i]
		out = append(out, it.Mode...)
		out = append(out, ' ')
		out = append(out, it.Name...)
		out = append(out, 0)
		out = append(out, it.Hash[:]...)
	}
	return out
}

// TreeItem is one entry of a git tree.
type TreeItem struct {
	Mode string
	Name string
	Hash Hash
}

const TreeMode = "40000"

// treeOrder compares names as git orders them in a tree.
func treeOrder(a, b TreeItem) int {
	n := min(len(a.Name), len(b.Name))
	return cmp.Or(strings.Compare(a.Name[:n], b.Name[:n]), int(a.byteAt(n))-int(b.byteAt(n)))
}

func (t *TreeItem) byteAt(i int) byte {
	switch {
	case i < len(t.Name):
		return t.Name[i]
	case t.Mode == TreeMode:
		return '/'
	}
	return 0
}

func DecodeTree(data []byte) ([]TreeItem, error) {
	var items []TreeItem
	for len(data) > 0 {
		sp := bytes.IndexByte(data, ' ')
		nul := bytes.IndexByte(data, 0)
		if sp < 1 || nul < sp+2 || len(data) < nul+21 {
			return nil, fmt.Errorf("cut short")
		}
		it := TreeItem{Mode: string(data[:sp]), Name: string(data[sp+1 : nul])}
		copy(it.Hash[:], data[nul+1:])
		items = append(items, it)
		data = data[nul+21:]
	}
	return items, nil
}

// GitlinkMode is the mode of a submodule in a user's commit; its object is not in the store.
const GitlinkMode = "160000"

// MaxTreeDepth bounds the nesting of a tree read from a store.
const MaxTreeDepth = 4096
