//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"

	knowledgebase "anamnesis/knowledge_base"
)

// projectKB is the folder of the cards of the project one is in: that of the
// working directory or the nearest above it; "" where there is none.
func projectKB() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		own := filepath.Join(dir, filepath.FromSlash(knowledgebase.ProjectDir))
		if info, err := os.Stat(own); err == nil && info.IsDir() {
			return own
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// isProjectKB reports whether a folder is a project's own, however it was
// named.
func isProjectKB(dir string) bool {
	abs, err := filepath.Abs(dir)
	return err == nil && strings.HasSuffix(filepath.ToSlash(abs), "/"+knowledgebase.ProjectDir)
}
