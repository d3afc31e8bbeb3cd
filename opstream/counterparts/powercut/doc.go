// Package powercut cuts the power of a real ext4.
//
// A file system is made in an image, and the image is served through FUSE by a
// Recorder, which keeps every write and every flush it is asked for. On top of
// that file stand a loop device, ext4, and a process that writes a stream. What
// ext4 asks of its disk is thus known in full, and with it every state a disk
// with a volatile cache may have been left in: at a point of the record, all
// that was flushed, and of what was written since any sectors.
//
// Such a state is mounted, so that ext4 replays its journal, the stream is
// opened, and what it holds is compared with what had been acknowledged at that
// point. A control run leaves out the stream's syncs and must lose, or the
// record proves nothing.
//
// The tests need Linux, root, /dev/fuse, loop devices and mkfs.ext4, and run
// with -nightly only. Mounts and loop devices live in a mount namespace of a
// child process and end with it, whatever ends it.
package powercut
