package notice

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// Changed informs the model of files that it did not change, or perhaps not; during: while calls
// of its own ran.
func Changed(by string, list []worldstate.Change, during bool) string {
	if len(list) == 0 {
		return ""
	}
	var sb strings.Builder
	switch {
	case by == state.ChangedByUser && during:
		sb.WriteString("[FILES] The user or another program changed files while a call of yours ran. They are the " +
			"user's: a jump keeps them.")
	case during:
		sb.WriteString("[FILES] A call of yours may have changed files that others change, too. Whose these changes " +
			"are is not known. A jump keeps them.")
	case by == state.ChangedByUser:
		sb.WriteString("[FILES] The user changed files while no call of yours ran. They are the user's: a jump keeps " +
			"them.")
	default:
		sb.WriteString("[FILES] Files changed between your calls, while something ran in the background; who changed " +
			"them is not known. A jump keeps them.")
	}
	writeKinds(&sb, list, "New", "Changed", "Deleted")
	sb.WriteString("\nWhat you read of these files before may be out of date.")
	return sb.String()
}

// Mixed informs the model of files that changed in a step while another program worked in the
// directory.
func Mixed(other string, paths []string, n int) string {
	return fmt.Sprintf("[FILES] %s worked in this directory during your last step. Whose changes these are is not "+
		"known, and a jump keeps them: %s.",
		other, List(paths, n))
}

// Moved informs the model of the directory that the task continues in.
func Moved(from, to string) string {
	return fmt.Sprintf("[DIRECTORY] You now work in %s. It takes the place of %s, where you worked before: use paths "+
		"in %[1]s only.", to, from)
}

// Replaced informs the model of files that differ because another directory was put at the
// world's path during a step.
func Replaced(dir string, paths []string, n int) string {
	return fmt.Sprintf("[FILES] Another directory is at %s since your last step: the one before was moved, removed "+
		"or linked. Whose changes these are is not known, and a jump keeps them: %s.",
		dir, List(paths, n))
}

// writeKinds lists changes by kind.
func writeKinds(sb *strings.Builder, list []worldstate.Change, added, changed, deleted string) {
	for _, group := range []struct {
		label string
		kinds []worldstate.ChangeKind
	}{
		{deleted, []worldstate.ChangeKind{worldstate.Deleted}},
		{added, []worldstate.ChangeKind{worldstate.Added}},
		{changed, []worldstate.ChangeKind{worldstate.Modified, worldstate.Mode, worldstate.Type}},
	} {
		var names []string
		for _, c := range list {
			if slices.Contains(group.kinds, c.Kind) {
				names = append(names, c.Path)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(sb, "\n%s (%d): %s.", group.label, len(names), List(names, len(names)))
		}
	}
}

// Restored informs the model of files that a user restored.
func Restored(b *op.WorldRestored, current int, res worldstate.Result) string {
	var sb strings.Builder
	state := "an older snapshot"
	if b.ToStep >= 0 {
		state = fmt.Sprintf("the end of step %d", b.ToStep)
	}
	what := "the directory's files"
	if len(b.Paths) > 0 {
		what = List(b.Paths, len(b.Paths))
	}
	changed, gone := "Changed back", "Gone"
	if b.Interrupted {
		changed, gone = "Changed since", "Gone since"
		fmt.Fprintf(&sb, "[WORLD] The user began to bring %s back to %s, and it was interrupted.", what, state)
	} else {
		fmt.Fprintf(&sb, "[WORLD] The user brought %s back to %s.", what, state)
	}
	fmt.Fprintf(&sb, " No step was undone: you go on from step %d, and what was said and done above stands.", current)
	if len(res.Written) > 0 {
		fmt.Fprintf(&sb, "\n%s: %s.", changed, List(res.Written, len(res.Written)))
	}
	if len(res.Deleted) > 0 {
		fmt.Fprintf(&sb, "\n%s: %s.", gone, List(res.Deleted, len(res.Deleted)))
	}
	if len(b.Kept) > 0 {
		names := make([]string, len(b.Kept))
		for i, k := range b.Kept {
			names[i] = k.Path
		}
		fmt.Fprintf(&sb, "\nKept as they were: %s.", List(names, len(names)))
	}
	sb.WriteString(lostAttributes(b.LostAttributes))
	sb.WriteString("\nWhat you read of these files before may be out of date: read them again before you rely on it.")
	return sb.String()
}
