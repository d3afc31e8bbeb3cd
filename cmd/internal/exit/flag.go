//go:build unix

package exit

import (
	"anamnesis/opstream"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Flag returns the error of a flag that could not be read: for a bad number, what is wanted
// instead of how it was parsed. A negative number in an argument's place looks like a flag.
func Flag(command string, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if n := unknown.GetSpecifiedShortnames(); n != "" && strings.Trim(n, "0123456789") == "" {
			return Usagef("-%s: no number below 0 is wanted here; see '%s --help'", n, command)
		}
	}
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &value) || !errors.As(err, &number) || value.GetFlag().Value.Type() == "bool" {
		return Usagef("%v; see '%s --help'", err, command)
	}
	problem := "not a number"
	if errors.Is(number, strconv.ErrRange) {
		problem = "a number too large to work with"
	}
	return Usagef("--%s %q: %s; see '%s --help'", value.GetFlag().Name, value.GetValue(), problem, command)
}

// Stream adds an exit code and the remedy to the errors of a stream that have one.
func Stream(err error) error {
	var code int
	var remedy string
	switch {
	case errors.Is(err, opstream.ErrLocked):
		code, remedy = Refused, "wait for it to end, or for longer with --wait"
	case errors.Is(err, opstream.ErrCorrupt):
		code, remedy = Corrupt, "'anamnesis ops verify' lists the damage, 'anamnesis ops cat' prints what is whole; nothing was changed"
	case errors.Is(err, opstream.ErrNotFound):
		code, remedy = Usage, "check --dir; 'anamnesis ops append' makes a new stream"
	case errors.Is(err, opstream.ErrVersion):
		code, remedy = Usage, "use the program that wrote it, or a newer one"
	default:
		return err
	}
	return With(code, fmt.Errorf("%w: %s", err, remedy))
}
