package history

import "golang.org/x/sys/unix"

// exchange swaps two paths at once.
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
