package powercut

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// imageName is the one file of the FUSE file system.
const imageName = "disk.img"

// Serve mounts a file system at dir whose one file is the recorded disk. It returns that
// file's path and a function that unmounts it. The serving process must not itself use
// anything on the file: if killed, it would wait for itself.
func Serve(dir string, r *Recorder) (path string, unmount func() error, err error) {
	server, err := fs.Mount(dir, &rootNode{r: r}, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "powercut", Name: "powercut"},
	})
	if err != nil {
		return "", nil, fmt.Errorf("mount FUSE at %s: %w", dir, err)
	}
	return filepath.Join(dir, imageName), server.Unmount, nil
}

// rootNode is the directory.
type rootNode struct {
	fs.Inode
	r *Recorder
}

var _ fs.NodeOnAdder = (*rootNode)(nil)

func (n *rootNode) OnAdd(ctx context.Context) {
	child := n.NewPersistentInode(ctx, &imageNode{r: n.r}, fs.StableAttr{Mode: syscall.S_IFREG})
	n.AddChild(imageName, child, true)
}

// imageNode is the disk's file.
type imageNode struct {
	fs.Inode
	r *Recorder
}

var (
	_ fs.NodeGetattrer = (*imageNode)(nil)
	_ fs.NodeOpener    = (*imageNode)(nil)
	_ fs.NodeReader    = (*imageNode)(nil)
	_ fs.NodeWriter    = (*imageNode)(nil)
	_ fs.NodeFsyncer   = (*imageNode)(nil)
	_ fs.NodeFlusher   = (*imageNode)(nil)
)

func (n *imageNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = syscall.S_IFREG | 0o600
	out.Size = uint64(n.r.SizeBytes())
	return fs.OK
}

// Open turns the page cache off, so that the recorder sees each write at once.
func (n *imageNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, fs.OK
}

func (n *imageNode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return fuse.ReadResultData(dest[:n.r.ReadAt(dest, off)]), fs.OK
}

func (n *imageNode) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	if err := n.r.WriteAt(data, off); err != nil {
		return 0, fs.ToErrno(err)
	}
	return uint32(len(data)), fs.OK
}

// Fsync is what a flush of the loop device becomes.
func (n *imageNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return fs.ToErrno(n.r.Flush())
}

// Flush is close(2), which promises nothing.
func (n *imageNode) Flush(context.Context, fs.FileHandle) syscall.Errno { return fs.OK }
