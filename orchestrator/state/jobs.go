package state

import (
	"slices"
	"strconv"
	"strings"

	"anamnesis/opstream/op"
)

// RunningJob is a background command that has not ended.
type RunningJob struct {
	op.JobStarted
	Step int // in which it began
}

// Jobs are the background commands of a task.
type Jobs struct {
	Running []RunningJob // those that have not ended
	Begun   int          // the highest number one was given
}

// fold applies the beginning or the end of a background command.
func (j *Jobs) fold(o op.Op) {
	switch b := o.Body.(type) {
	case *op.JobStarted:
		j.Running = append(j.Running, RunningJob{JobStarted: *b, Step: o.Step})
		j.Begun = max(j.Begun+1, JobNumber(b.Job)) // a command that failed to begin also used a number
	case *op.JobEnded:
		j.Running = slices.DeleteFunc(j.Running, func(r RunningJob) bool { return r.Job == b.Job })
		if len(j.Running) == 0 {
			j.Running = nil
		}
	}
}

const JobPrefix = "bg_"

// JobNumber returns the number in a job's id, 0 if the id is not of that form.
func JobNumber(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, JobPrefix))
	if err != nil {
		return 0
	}
	return max(n, 0)
}
