package gitdir

import "golang.org/x/sys/unix"

// Exchange swaps two paths at once.
func Exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }
