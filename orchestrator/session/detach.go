package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"anamnesis/opstream"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// resumeDetached resumes a copy of a task that a bucket keeps, without the bucket. If that fails, there is no copy.
func (s *Service) resumeDetached(ctx context.Context, task, message string, set Settings, c Client) (
	_ *Session, err error) {
	kept, err := replica.ReadCursor(s.Home, task)
	if err == nil && kept == nil {
		if _, err := taskdir.ReadState(s.Home, task); err != nil {
			return nil, err
		}
		err = remedy.With(Usagef("task %s is not kept in a bucket", task), remedy.Resume, task)
	}
	if err != nil {
		return nil, err
	}
	lock, err := replica.Lock(s.Home, task) // nothing is pulled into the task meanwhile
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	st, err := taskdir.ReadState(s.Home, task)
	if err == nil {
		_, err = continues(st, message)
	}
	if err != nil {
		return nil, err
	}
	id, err := taskdir.NewTaskID(s.Home, st.Said.First, "")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = JoinClose(err, os.RemoveAll(s.Home.Task(id)))
		}
	}()
	if err := s.copyRecord(ctx, task, id); err != nil {
		return nil, fmt.Errorf("copy task %s: %w", task, err)
	}
	set.Remote = Remote{copied: kept}
	resumed, err := s.Resume(ctx, id, message, set, c)
	if err == nil {
		resumed.Opening = append(resumed.Opening, fmt.Sprintf("task %s is a copy of %s that no bucket keeps; "+
			"%[2]s stays as it is, and what others do in it is not in the copy", id, task))
	}
	return resumed, err
}

// copyRecord copies a task's record to another name, whose folder is empty.
func (s *Service) copyRecord(ctx context.Context, task, id string) error {
	from, to := s.Home.Task(task), s.Home.Task(id)
	if err := os.Remove(to); err != nil { // the copy appears whole
		return err
	}
	got, err := opstream.Salvage(ctx, from, to)
	if err == nil && got.Why != "" {
		err = remedy.With(fmt.Errorf("%w: %s", opstream.ErrCorrupt, got.Why), remedy.Salvage, task)
	}
	var vault []byte
	if err == nil {
		vault, err = os.ReadFile(s.Home.Vault(task))
	}
	if err == nil {
		err = durable.WriteFile(durable.OS{}, s.Home.Vault(id), vault)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.CopyFS(filepath.Join(to, taskdir.BundlesName), os.DirFS(filepath.Join(from, taskdir.BundlesName)))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there are no commits
	}
	return err
}

// nameCopy records the name of a task whose record is a copy of another one's.
func (s *Service) nameCopy(ctx context.Context, id string, st *state.State) (*state.State, error) {
	l, err := s.openIdle(id, st)
	if err != nil {
		return nil, err
	}
	was := st.Opened.Task
	err = l.Record(ctx, &op.TaskResumed{Program: s.Program(), Task: id, Notice: fmt.Sprintf(
		"[TASK] From here on this is %s, a copy of task %s without its bucket. What others do in %s is not known here.",
		id, was, was)})
	if err = JoinClose(err, l.Journal.Close()); err != nil {
		return nil, err
	}
	return taskdir.ReadState(s.Home, id)
}
