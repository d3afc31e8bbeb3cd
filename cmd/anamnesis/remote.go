//go:build unix

package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
)

// mirrored lets a verb that reads tasks read those of a bucket, from copies that are brought up to date first.
func (a *app) mirrored(cmd *cobra.Command) *cobra.Command {
	var address string
	cmd.Flags().StringVar(&address, "remote", "", "the tasks of a bucket: s3://BUCKET/PREFIX or a directory")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if address == "" {
			return nil
		}
		task := ""
		if strings.Contains(cmd.Use, "TASK") {
			// A number is the step of a task that is left out, but only this home's own tasks have a last one.
			if len(args) == 0 || strings.Trim(args[0], "0123456789") == "" {
				return exit.Usagef("%s --remote: name a task; 'anamnesis tasks --remote %s' lists them",
					cmd.Name(), address)
			}
			task = args[0]
		}
		svc, err := a.service()
		if err != nil {
			return err
		}
		copies, failed, err := svc.Mirror(cmd.Context(), address, task)
		if err != nil {
			return err
		}
		for _, f := range failed {
			a.warn(f.Error())
		}
		a.out().Remote = copies.Home.Remote
		a.copies, a.mirror = copies, func(ctx context.Context, task string) error {
			_, _, err := svc.Mirror(ctx, address, task)
			return err
		}
		return nil
	}
	return cmd
}

// steers lets a verb that steers tasks steer those of a bucket.
func (a *app) steers(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.by, "as", "", "your `NAME` in the record of a bucket's task (default: USER@HOST)")
	return a.mirrored(cmd)
}

func (a *app) remoteCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "remote",
		Short: "Check a bucket that keeps tasks, copy a task from it, or remove one",
		Long: `Check a bucket that keeps tasks, copy a task from it, or remove one. It is an S3-compatible bucket,
or a directory that machines share. 'run --remote' keeps a task there, 'resume --remote' continues it on any
machine, and 'tasks --remote' lists them.

Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from ~/.aws/credentials or from the machine's
role; AWS_ENDPOINT_URL names another server than Amazon's. With ANAMNESIS_REMOTE_KEY, a key that 'openssl rand
-base64 32' makes, everything is encrypted before it is sent.`,
	}
	cmd.PersistentFlags().StringVar(&address, "remote", "",
		"the bucket: s3://BUCKET/PREFIX or a directory (default: the setting remote)")
	// The bucket is opened by the verb that runs, since only then its flags are known.
	open := func() (bucket.Bucket, error) {
		svc, set, err := a.configured(".")
		if err != nil {
			return nil, err
		}
		address = cmp.Or(address, set.Text("remote"))
		if address == "" {
			return nil, exit.Usagef("name a bucket with --remote, or with the setting remote")
		}
		b, _, err := svc.Bucket(address)
		return b, err
	}
	cmd.AddCommand(&cobra.Command{
		Use: "check", Short: "Find out whether a bucket can keep tasks", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := open()
			if err != nil {
				return err
			}
			if err := replica.Check(cmd.Context(), b); err != nil {
				return err
			}
			a.printf("%s can keep tasks: of two processes that create one object, one succeeds\n", b)
			return nil
		},
	}, &cobra.Command{
		Use: "pull TASK", Short: "Copy a task into this home, to be read", Args: cobra.ExactArgs(1),
		Long: `Copy a task, its subagents and their snapshots into this home, or bring the copy up to date. All
verbs that read tasks work with the copy.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := open()
			if err != nil {
				return err
			}
			svc, err := a.service()
			if err != nil {
				return err
			}
			lock, err := replica.Lock(svc.Home, args[0])
			if err != nil {
				return err
			}
			defer lock.Close()
			p, err := replica.Pull(cmd.Context(), b, svc.Home, args[0])
			if err != nil {
				return err
			}
			a.printf("%s is here up to object %d, which a process on %s wrote at %s\n", args[0], p.Last.N, p.Last.Host,
				p.Last.Time.Local().Format("2006-01-02 15:04:05"))
			for _, path := range p.Aside {
				a.printf("what this home had recorded last and another process did not know is in %s\n", path)
			}
			return nil
		},
	}, &cobra.Command{
		Use: "rm TASK", Short: "Remove a task from a bucket; copies in homes stay", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := open()
			if err != nil {
				return err
			}
			n, err := replica.Remove(cmd.Context(), b, args[0], func(text string) { a.notef("%s", text) })
			if err != nil {
				return err
			}
			a.printf("%s: %d objects removed\n", args[0], n)
			return nil
		},
	})
	return cmd
}
