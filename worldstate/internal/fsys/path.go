package fsys

import (
	"slices"
	"strings"
)

// Dir returns the parent of a path, "" for one at the top.
func Dir(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// Base returns a path's last component.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func Join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "/" + name
}

// Beneath reports whether path is root or inside it.
func Beneath(path, root string) bool {
	return root == "" || path == root || strings.HasPrefix(path, root) && path[len(root)] == '/'
}

// Ancestors calls f for each proper ancestor of path, the top one first, until f returns false.
func Ancestors(path string, f func(dir string) bool) {
	for i := 0; i < len(path); i++ {
		if path[i] == '/' && !f(path[:i]) {
			return
		}
	}
}

// ValidPath reports whether a path from outside (a tree, a manifest, a journal, a caller) may
// name something in a world: relative, clean, and not in a git directory.
func ValidPath(path string) bool {
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return false
	}
	return !slices.ContainsFunc(strings.Split(path, "/"), func(name string) bool { return !ValidName(name) })
}

func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && name != ".git" && !strings.ContainsAny(name, "/\x00")
}
