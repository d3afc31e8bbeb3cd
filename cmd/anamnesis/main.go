//go:build unix

// Command anamnesis runs agents that can go back without forgetting.
//
// This package holds flags and wiring only: one file per verb family.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/about"
	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/quarantine"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// app is the environment of every verb, so that no verb uses a global.
type app struct {
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
	getenv   func(string) string
	console  *console.Console // over them; see tty
	progress *view.Progress   // on stderr; see line

	json bool // --json is given
	// mirror brings the copies of a bucket's tasks up to date; the service is then that of the copies' home. It is
	// nil unless a verb that reads has --remote.
	mirror  func(ctx context.Context, task string) error
	copies  *session.Service
	by      string // the user's name in the record of a bucket's task
	printer show.Printer

	// Only tests set these, to kill the process at a counted append or point of a restore. A kill from
	// outside could hit such a point on Linux alone.
	store runtime.Store
}

func main() {
	guard.SuperviseMain() // returns at once, unless this process is a command's supervisor
	os.Exit(newApp().main(os.Args[1:]))
}

func newApp() *app {
	return &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
}

// main runs one command line and returns the exit code.
func (a *app) main(args []string) int {
	ctx, stop := console.UntilSignal(context.Background())
	defer stop()
	root := a.rootCommand()
	root.SetArgs(withTreeNames(args))
	err := root.ExecuteContext(ctx)
	code := a.exit(cmp.Or(err, a.printer.Failed))
	if notice.Evicted(ctx) && (code == exit.Interrupted || errors.Is(err, context.Cause(ctx))) { // before a turn began
		code = exit.Evicted
	}
	return code
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "anamnesis",
		Short:         "Agents that go back without forgetting",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.DisableNoDescFlag = true
	root.SetFlagErrorFunc(exit.Flag)
	families := []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Work", []*cobra.Command{a.runCommand(), a.resumeCommand(), a.attachCommand(), a.sayCommand(),
			a.answerCommand(), a.jumpCommand(), a.applyCommand(), a.stopCommand(), a.demoCommand()}},
		{"Look", []*cobra.Command{a.mirrored(a.tasksCommand()), a.searchCommand(), a.mirrored(a.timelineCommand()),
			a.mirrored(a.showCommand()), a.mirrored(a.reportCommand()), a.mirrored(a.diffCommand()), a.blameCommand(),
			a.mirrored(a.explainCommand()), a.doctorCommand()}},
		{"Remember", []*cobra.Command{a.mirrored(a.serveCommand()), a.kbCommand(), a.verdictCommand()}},
		{"Beside other agents", []*cobra.Command{a.importCommand(), a.installCommand(), a.uninstallCommand(),
			a.pauseCommand(), a.acpCommand(), a.hookCommand(), a.recorderCommand()}},
		{"Set up", []*cobra.Command{a.configCommand(), a.agentCommand(), a.mcpCommand(), a.rulesCommand(),
			a.skillsCommand(), a.easCommand(), a.versionCommand()}},
		{"Stores", []*cobra.Command{a.worldCommand(), a.opsCommand(), a.remoteCommand()}},
	}
	for _, f := range families {
		root.AddGroup(&cobra.Group{ID: f.title, Title: f.title + ":"})
		for _, c := range f.commands {
			c.GroupID = f.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("Set up")
	root.SetCompletionCommandGroupID("Set up")
	root.InitDefaultCompletionCmd()
	a.configureSession(root)
	complete(root)
	exit.Help(root)
	names.Source{Service: a.service, Models: func() []string {
		t, _, _ := a.easTable() // nil: no names
		return names.Models(t)
	}}.Complete(root)
	return root
}

// complete sets what most commands share: without a rule of its own a command takes no
// arguments, a family of commands shows its help, and wrong arguments are usage errors.
func complete(cmd *cobra.Command) {
	if cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if cmd.Args == nil {
		cmd.Args = cobra.NoArgs
	}
	cmd.Args = exit.Args(cmd.Args)
	for _, sub := range cmd.Commands() {
		complete(sub)
	}
}

// onTask makes a command one on a task, which may be omitted, with a range of further
// arguments.
func (a *app) onTask(cmd *cobra.Command, least, most int, do func(cmd *cobra.Command, svc *session.Service, task string,
	rest []string) error) *cobra.Command {
	cmd.Args = cobra.RangeArgs(least, most+1)
	cmd.RunE = a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
		task, rest, err := names.OnTask(svc, args, least, most)
		if err != nil {
			return err
		}
		return do(cmd, svc, task, rest)
	})
	return cmd
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, its commit and how it was built",
		RunE: func(*cobra.Command, []string) error {
			b := about.Read(version)
			return a.show(b, func() { a.printf("%s", b) })
		},
	}
	return a.jsonFlag(cmd, "one JSON object")
}

// runE is what cobra runs for a verb.
type runE = func(*cobra.Command, []string) error

// withHome and withService call a verb's function with the program's state.
func (a *app) withHome(do func(*cobra.Command, []string, taskdir.Home) error) runE {
	return a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
		return do(cmd, args, svc.Home)
	})
}

func (a *app) withService(do func(*cobra.Command, []string, *session.Service) error) runE {
	return func(cmd *cobra.Command, args []string) error {
		svc, err := a.service()
		if err != nil {
			return err
		}
		a.sayUnexamined(svc.Home)
		return do(cmd, args, svc)
	}
}

// sayUnexamined names the directories where a command ran when its program died.
func (a *app) sayUnexamined(h taskdir.Home) {
	for _, r := range quarantine.Unexamined(h.Runs()) {
		fmt.Fprintf(a.stderr, "anamnesis: a command in %s was cut off when its program died; do not use git there "+
			"until a task, a resume, a jump or a recording in that directory has examined what it left\n",
			view.Line(r.World, 500))
	}
}
