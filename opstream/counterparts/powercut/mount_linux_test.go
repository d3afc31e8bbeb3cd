package powercut

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// imageBytes is the size of a file system's image.
	imageBytes = 24 << 20
	// loopTries is how often a free loop device is asked for: another process
	// may take it first.
	loopTries = 16
	// busyLimit and busyInterval bound how long an unmount waits for a loop
	// device that is being let go.
	busyLimit    = 10 * time.Second
	busyInterval = 10 * time.Millisecond
)

// makeExt4 makes a file of imageBytes that holds an empty ext4 with mkfs's defaults, except
// that everything is initialised at once: no later write must come from anything but the
// stream.
func makeExt4(ctx context.Context, path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if err := os.Truncate(path, imageBytes); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	out, err := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0",
		"-E", "lazy_itable_init=0,lazy_journal_init=0", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	return nil
}

// mountImage mounts the ext4 of an image file at dir through a loop device,
// which ends with the mount. ext4 replays its journal.
func mountImage(image, dir string) error {
	device, err := attachLoop(image)
	if err != nil {
		return err
	}
	defer device.Close() // the mount holds it
	if err := unix.Mount(device.Name(), dir, "ext4", unix.MS_NOATIME, "noinit_itable,errors=remount-ro"); err != nil {
		return fmt.Errorf("mount ext4 of %s at %s: %w", image, dir, err)
	}
	return nil
}

// attachLoop puts a free loop device on a file. The device is let go when it is
// closed for the last time.
func attachLoop(image string) (*os.File, error) {
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach loop device: %w", err)
	}
	defer backing.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach loop device: %w", err)
	}
	defer control.Close()
	for try := 1; ; try++ {
		device, err := configureFree(control, backing)
		if err == nil {
			return device, nil
		}
		if !errors.Is(err, unix.EBUSY) || try == loopTries {
			return nil, fmt.Errorf("attach loop device to %s: %w", image, err)
		}
	}
}

func configureFree(control, backing *os.File) (*os.File, error) {
	no, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, os.NewSyscallError("LOOP_CTL_GET_FREE", err)
	}
	device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", no), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	config := unix.LoopConfig{Fd: uint32(backing.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopConfigure(int(device.Fd()), &config); err != nil {
		return nil, errors.Join(os.NewSyscallError("LOOP_CONFIGURE", err), device.Close())
	}
	return device, nil
}

// retryBusy retries do while it fails because a device is still being released.
func retryBusy(do func() error) error {
	tick := time.NewTicker(busyInterval)
	defer tick.Stop()
	for deadline := time.Now().Add(busyLimit); ; <-tick.C {
		err := do()
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
	}
}
