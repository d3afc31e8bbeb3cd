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

// earlierJobs reads the commands of earlier processes from the stream, oldest first. They have
// ended, with their process at the latest.
func earlierJobs(h taskdir.Home, task string, upTo int) ([]Job, error) {
	var list []Job
	at := make(map[string]int)
	err := taskdir.EachOp(h, task, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.JobStarted:
			if state.JobNumber(b.Job) <= upTo {
				at[b.Job] = len(list)
				list = append(list, Job{ID: b.Job, Command: b.Command, Why: Lost})
			}
		case *op.JobEnded:
			if i, known := at[b.Job]; known {
				j := &list[i]
				j.Why, j.Exit, j.Bytes, j.Network = b.Why, b.Exit, b.Bytes, b.Network
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read which background commands there were: %w", err)
	}
	return list, nil
}

// past returns the earlier jobs and the size of their kept output. They are read from the
// stream once. The caller holds js.mu.
func (js *Jobs) past() ([]*job, error) {
	if js.before == 0 || js.earlier != nil {
		return js.earlier, nil
	}
	found, err := earlierJobs(js.ledger.Home, js.ledger.ID, js.before)
	if err != nil {
		return nil, err
	}
	js.earlier = make([]*job, 0, len(found))
	for _, f := range found {
		j := &job{Job: f, done: make(chan struct{}), stop: func() {}}
		close(j.done)
		info, err := os.Stat(js.output(f.ID))
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
		js.earlier = append(js.earlier, j)
	}
	return js.earlier, nil
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
