//go:build !unix

package file

import (
	"io/fs"
	"os"
)

// keepOwner does nothing if files have no Unix owner.
func keepOwner(*os.File, fs.FileInfo) {}
