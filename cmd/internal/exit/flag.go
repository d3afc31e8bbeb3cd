//go:build unix

package exit

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"anamnesis/opstream"
	"anamnesis/orchestrator/tool/spelling"
)

// minNearFlag is the length from which an unknown flag is compared with all flags. A shorter one is
// similar to most: it is compared only with flags of its first letter and length.
const minNearFlag = 5

// optional matches the parts of a usage line that may be left out.
var optional = regexp.MustCompile(`\[[^]]*\]|--[a-z]+ [A-Z]+|-- `)

// Args returns check with errors that name what is missing or too much, and the usage line.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		path, n := cmd.CommandPath(), len(args)
		_, name, _ := strings.Cut(path+": ", " ")
		_, operands, _ := strings.Cut(cmd.Use, " ")
		required := strings.Fields(optional.ReplaceAllString(operands, " "))
		most := len(required) + strings.Count(operands, "[") // few commands have optional flags there
		switch {
		case cmd.HasSubCommands() && n > 0:
			cmd.SuggestionsMinimumDistance = min(2, len(args[0])/2) // everything is near a short word
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return Usagef("%sunknown command %q; did you mean %s?", name, args[0], strings.Join(near, " or "))
			} else if !cmd.HasParent() {
				return Usagef("unknown command %q; put a request of several words in quotes, or use '%s run %s'; "+
					"see '%s --help'", args[0], path, args[0], path)
			}
			return Usagef("%sunknown command %q; see '%s --help'", name, args[0], path)
		case n < len(required):
			return Usagef("%smissing %s; usage: %s %s", name, strings.Join(required[n:], " and "), path, operands)
		case n > most:
			return Usagef("%sunexpected argument %q; usage: %s", name, args[most], strings.TrimSpace(path+" "+operands))
		}
		return Usagef("%v; see '%s --help'", err, path)
	}
}

// Help makes the command help refuse unknown commands, as the program does.
func Help(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was added above
	}
	help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err == nil && len(rest) > 0 && cmd.HasSubCommands() {
			err = cmd.Args(cmd, rest[:1])
		}
		if err != nil {
			return err
		}
		return cmd.Help()
	}
}

// Flag returns the error of a flag that could not be read: for a bad number, what is wanted
// instead of how it was parsed. A negative number in an argument's place looks like a flag.
func Flag(cmd *cobra.Command, err error) error {
	command := cmd.CommandPath()
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if n := unknown.GetSpecifiedShortnames(); n != "" && strings.Trim(n, "0123456789") == "" {
			return Usagef("-%s: number must not be negative; see '%s --help'", n, command)
		}
		var names []string
		name := unknown.GetSpecifiedName()
		if len(name) > 2 {
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if far := len(f.Name) - len(name); len(name) >= minNearFlag ||
					f.Name[0] == name[0] && far <= 1 && far >= -1 {
					names = append(names, f.Name)
				}
			})
			if near := spelling.Nearest(name, names); near != "" {
				return Usagef("%v; did you mean --%s? see '%s --help'", err, near, command)
			}
		}
	}
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	problem := "not a number"
	switch {
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "duration":
		problem = "not a time such as 90s, 30m or 2h"
	case value == nil || !errors.As(err, &number) || value.GetFlag().Value.Type() == "bool":
		return Usagef("%v; see '%s --help'", err, command)
	case errors.Is(number, strconv.ErrRange):
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
		code, remedy = Refused, "wait for it to end"
	case errors.Is(err, opstream.ErrCorrupt):
		code, remedy = Corrupt, "'anamnesis ops verify' lists the damage, 'anamnesis ops cat' prints the intact "+
			"part; nothing was changed"
	case errors.Is(err, opstream.ErrNotFound):
		code, remedy = Usage, "check --dir; a task's stream is in the folder tasks/TASK of the state folder"
	case errors.Is(err, opstream.ErrVersion):
		code, remedy = Usage, "use the program that wrote it, or a newer one"
	default:
		return err
	}
	return With(code, fmt.Errorf("%w: %s", err, remedy))
}
