//go:build !unix

package file

import (
	"io/fs"
	"os"
)

// keepOwner does nothing where files have no Unix owner.
func keepOwner(*os.File, fs.FileInfo) {}

// links is the number of names a file has, as far as it is known.
func links(fs.FileInfo) uint64 { return 1 }
