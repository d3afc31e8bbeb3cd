package facts

import "anamnesis/anamnesis/failure"

// call is a call of a shell that ended with an exit code.
func call(exit int, command, text string) Call {
	return Call{Output: failure.Output{Command: command, Text: text, Exit: exit, HasExit: true}}
}
