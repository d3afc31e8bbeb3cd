package jobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// past returns the commands of earlier processes, oldest first, and the size of their kept output. They have ended,
// with their process at the latest, and are read from the stream once. The caller holds js.mu.
func (js *Jobs) past() ([]*job, error) {
	if js.before == 0 || js.earlier != nil {
		return js.earlier, nil
	}
	list, byID := []*job{}, make(map[string]*job)
	err := taskdir.EachOp(js.ledger.Home, js.ledger.ID, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.JobStarted:
			if state.JobNumber(b.Job) <= js.before {
				ended := make(chan struct{}) // whoever waits for it would wait for a dead process
				close(ended)
				j := &job{Job: Job{ID: b.Job, Command: b.Command, Why: Lost}, done: ended, stop: func() {}}
				list, byID[b.Job] = append(list, j), j
			}
		case *op.JobEnded:
			if j := byID[b.Job]; j != nil {
				j.Why, j.Exit, j.Bytes, j.Network = b.Why, b.Exit, b.Bytes, b.Network
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read which background commands there were: %w", err)
	}
	for _, j := range list {
		info, err := os.Stat(js.output(j.ID))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			j.dropped = j.Bytes
			j.Note = strings.TrimSpace(j.Note + " its output is gone")
		case err != nil:
			return nil, err
		default:
			j.Bytes = max(j.Bytes, info.Size())
			j.dropped = j.Bytes - info.Size()
		}
	}
	js.earlier = list
	return list, nil
}

func (js *Jobs) output(id string) string { return filepath.Join(js.dir, id+".log") }

// readOutput fills data with a part of a job's output, as far as there is so much.
func (js *Jobs) readOutput(id string, data []byte, from int64) error {
	f, err := os.Open(js.output(id))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadAt(data, from); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
