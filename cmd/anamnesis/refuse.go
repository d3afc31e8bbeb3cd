//go:build !unix

package main

import (
	"fmt"
	"os"
)

// The program needs features of Unix systems: flock, process groups, descriptors of
// directories.
func main() {
	fmt.Fprintln(os.Stderr, "anamnesis: this platform is not supported: use Linux, or WSL 2 on Windows")
	os.Exit(2)
}
