package sealed

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeFrom is the size from which memory is worth large pages.
const hugeFrom = 4 << 20

// useHugePages asks the kernel for large pages below b, which must not have been
// written: in a virtual machine, a fault for each small page takes longer than reading
// the file. Where it fails, small pages are used.
func useHugePages[E byte | float32](b []E) {
	if size := uintptr(len(b)) * unsafe.Sizeof(*new(E)); size >= hugeFrom {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		skip := -at & uintptr(unix.Getpagesize()-1)
		_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), skip)), size-skip), unix.MADV_HUGEPAGE)
	}
}
