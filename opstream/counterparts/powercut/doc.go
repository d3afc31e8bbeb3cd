// Package powercut cuts the power of a real ext4.
//
// A file system image is served through FUSE by a Recorder, which records every write and
// every flush. On that file are a loop device, ext4, and a process that writes a stream.
// Everything ext4 sends to its disk is thus known, and with it every state in which a disk
// with a volatile cache may be left: at a point of the record, all flushed writes, and any
// sectors of those written since.
//
// Such a state is mounted, so that ext4 replays its journal; then the stream is opened and
// compared with what had been acknowledged at that point. A control run omits the stream's
// syncs and must lose data, or the record proves nothing.
//
// The tests need Linux, root, /dev/fuse, loop devices and mkfs.ext4, and run with -nightly
// only. Mounts and loop devices belong to the mount namespace of a child process and end with
// it.
package powercut
