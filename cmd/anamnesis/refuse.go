//go:build !unix

package main

import (
	"fmt"
	"os"
)

// The program's promises rest on what only Unix systems give: flock, process
// groups, descriptors of directories.
func main() {
	fmt.Fprintln(os.Stderr, "anamnesis: this platform is not supported: use Linux, or WSL 2 on Windows")
	os.Exit(2)
}
