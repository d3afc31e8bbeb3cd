package powercut

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// programVariable names the built program for the process that runs it.
const programVariable = "POWERCUT_PROGRAM"

// repository is where the program's module lies from here.
const repository = "../../.."

// appendedKind is the kind of what the program appends.
const appendedKind = "test.op"

// TestProgramOnFailingDisk is TestExt4Fails for the program as people build it:
// one that appends ends with one line that names the sync and why, what it had
// printed the number of can be read from the failed disk, and is whole when the
// disk works again.
func TestProgramOnFailingDisk(t *testing.T) {
	if !isolated(t) {
		return
	}
	program := filepath.Join(t.TempDir(), "anamnesis")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", repository, "-o", program, "./cmd/anamnesis").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	t.Setenv(programVariable, program)
	for after := 1; after < callsPerLife; after += 4 {
		l := newLife(freshImage(t), nil, 0)
		l.breakAfter = after
		l.run(t, roleProgram)
		if len(l.acked) != after || l.read < after {
			t.Errorf("after %d acknowledgements: %d operations can be read", len(l.acked), l.read)
		}
		got, err := readBack(t, l.disk.Cut(l.disk.Events(), 512, rand.New(rand.NewPCG(uint64(after), 11))))
		if err == nil {
			err = l.compare(l.disk.Events(), got)
		}
		if err != nil {
			t.Errorf("disk broken after %d acknowledgements: %v", after, err)
		}
		t.Logf("broken after %d: %s", after, strings.Join(l.reports, "\n  "))
	}
}

// programLife has the program append until the disk fails under it, and then
// read.
func programLife() error {
	dir := os.Getenv(dirVariable)
	if err := mountImage(os.Getenv(imageVariable), dir); err != nil {
		return err
	}
	stream := filepath.Join(dir, streamDirName)
	if err := os.Mkdir(stream, 0o700); err != nil {
		return err
	}
	complaint, err := appendLines(stream)
	if err != nil {
		return err
	}
	fmt.Println("report", complaint)
	if strings.Count(complaint, "\n") != 0 || !strings.Contains(complaint, "fdatasync") || !strings.Contains(complaint, unix.EIO.Error()) {
		return fmt.Errorf("want one line that names fdatasync and the input/output error, got: %s", complaint)
	}
	out, err := exec.Command(os.Getenv(programVariable), "ops", "cat", "--json", "--dir", stream).Output()
	if err != nil {
		return fmt.Errorf("read from the failed disk: %w", err)
	}
	last := 0
	for line := range bytes.Lines(out) {
		var o struct {
			Kind string
			Body json.RawMessage
		}
		if err := json.Unmarshal(line, &o); err != nil {
			return err
		}
		if o.Kind == appendedKind {
			if last, err = serialOf(o.Body); err != nil {
				return err
			}
		}
	}
	fmt.Println("read", last)
	return nil
}

// appendLines returns the program one operation after the other until it ends, and
// returns its complaint.
func appendLines(stream string) (complaint string, err error) {
	cmd := exec.Command(os.Getenv(programVariable), "ops", "append", "--dir", stream, "--kind", appendedKind)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	answers, numbers := bufio.NewReader(os.Stdin), bufio.NewScanner(out)
	for serial := 1; serial <= callsPerLife; serial++ {
		fmt.Println("begun", serial)
		if _, err := answers.ReadString('\n'); err != nil {
			return "", err
		}
		if _, err := fmt.Fprintf(in, "%s\n", bodyOf(serial)); err != nil || !numbers.Scan() {
			break
		}
		if n, err := strconv.Atoi(numbers.Text()); err != nil || n < serial {
			return "", fmt.Errorf("operation %d was acknowledged as %q", serial, numbers.Text())
		}
		fmt.Println("acked", serial)
		if _, err := answers.ReadString('\n'); err != nil {
			return "", err
		}
	}
	in.Close()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return "", fmt.Errorf("want exit 1 from a program whose disk failed, got %v: %s", err, stderr.String())
	}
	return strings.TrimSpace(stderr.String()), nil
}
