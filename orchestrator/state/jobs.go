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

// job applies the beginning or the end of a background command.
func (s *State) job(o op.Op) {
	switch b := o.Body.(type) {
	case *op.JobStarted:
		s.Jobs = append(s.Jobs, RunningJob{JobStarted: *b, Step: o.Step})
		s.JobsBegun = max(s.JobsBegun+1, JobNumber(b.Job)) // a command that failed to begin also used a number
	case *op.JobEnded:
		s.Jobs = slices.DeleteFunc(s.Jobs, func(j RunningJob) bool { return j.Job == b.Job })
		if len(s.Jobs) == 0 {
			s.Jobs = nil
		}
	}
}

const JobPrefix = "bg_"

// JobNumber returns the number in a job's id, 0 if the id is not of that form.
func JobNumber(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, JobPrefix))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
