//go:build unix

package exit

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"anamnesis/anamnesis/shell"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// Text words an error for the command line: what, where and the remedy.
func Text(err error) string { return TextOf(err, "") }

// TextOf is Text of an error about a bucket's task, whose remedy must work there; an empty bucket: about this home's.
func TextOf(err error, bucket string) string {
	text := err.Error()
	if set, ok := errors.AsType[*session.SettingError](err); ok {
		text = strings.Replace(text, set.Error(), "--"+set.Error(), 1)
	}
	help := remedyOf(err)
	if help != "" && (bucket == "" || !strings.Contains(help, "'anamnesis doctor")) { // doctor knows no buckets
		text += "; " + InBucket(help, bucket)
	}
	return text
}

// onTasks finds the commands that can be about a bucket's tasks.
var onTasks = regexp.MustCompile(`\banamnesis (answer|jump|report|resume|run|say|show|tasks|timeline)\b`)

// InBucket makes the commands that a text names be about a bucket's tasks; an empty bucket: this home's.
func InBucket(text, bucket string) string {
	if bucket == "" {
		return text
	}
	flag := " --remote " + shell.QuoteIfNeeded(bucket)
	return onTasks.ReplaceAllStringFunc(text, func(verb string) string { return verb + flag })
}

// remedyOf returns the remedy for an error in verbs and flags; empty if none is known.
func remedyOf(err error) string {
	var with *remedy.Error
	var busy *taskdir.BusyError
	var unfinished *worldstate.UnfinishedError
	switch {
	case errors.As(err, &with):
		return strings.ReplaceAll(words(with.Kind), "%", with.Name)
	case errors.As(err, &busy) && busy.Home != "":
		return "wait for it, or use another --dir"
	case errors.As(err, &busy):
		return fmt.Sprintf("wait for it; 'anamnesis say %[1]s \"…\"' steers it, 'anamnesis answer %[1]s' answers "+
			"what it asks; or work beside it with --worktree or another --dir", busy.Task)
	case errors.As(err, &unfinished):
		task := ""
		if unfinished.Task != "" {
			task = "--task " + unfinished.Task + " "
		}
		return fmt.Sprintf("remove the cause, or give the restore up and leave the files as they are: "+
			"anamnesis world abandon %s--dir %s --store %s",
			task, shell.QuoteIfNeeded(unfinished.Dir), shell.QuoteIfNeeded(unfinished.Store))
	case errors.Is(err, knowledgebase.ErrNotFound):
		return "'anamnesis kb list' lists them, 'anamnesis kb repairs' what is no card yet"
	case errors.Is(err, retrieval.ErrBuilding):
		return "'anamnesis kb rebuild' waits for them"
	}
	return ""
}

// words says what a remedy is on the command line; % stands for the name.
func words(k remedy.Kind) string {
	return map[remedy.Kind]string{
		remedy.ListTasks:    "'anamnesis tasks' lists them",
		remedy.FindStream:   "'anamnesis doctor %' searches for a lost one",
		remedy.ShowTimeline: "'anamnesis timeline %' shows that",
		remedy.ReadImported: "'anamnesis timeline %' shows it",
		remedy.Salvage:      "'anamnesis doctor %' lists what is intact, and copies it",
		remedy.Resume:       "'anamnesis resume %' continues it",
		remedy.Request:      "'anamnesis resume % \"…\"' continues it with your words",
		remedy.Relocate:     "'anamnesis resume % --dir DIR' continues in a directory that you name",
		remedy.ContinueKept: "'anamnesis resume %' continues it there, " +
			"'anamnesis resume --detach %' a copy without the bucket",
		remedy.Detach: "'anamnesis resume --detach %' continues a copy without the bucket",
		remedy.RelocateOrMake: "if it was moved, 'anamnesis resume % --dir DIR' continues there; " +
			"else put it back, or 'anamnesis world restore --task % STEP' recreates it",
		remedy.FinishJump: "'anamnesis resume %' makes it, " +
			"'anamnesis world abandon --task %' ends it and leaves the files",
		remedy.RestoreFiles:   "'anamnesis world restore --task % STEP' brings the files alone back",
		remedy.JumpOther:      "'anamnesis jump % STEP' takes its files back",
		remedy.OtherDirectory: "use another --dir",
		remedy.OtherModel:     "--model names another",
		remedy.OtherReflect:   "--reflect-model names another",
		remedy.NameModel:      "add --model NAME (for example --model gpt-5)",
		remedy.NameServer: "set %, or OPENAI_BASE_URL (--base-url) for another server, or start Ollama; " +
			"'anamnesis config' shows where a name is set",
		remedy.SetUpModel: "set %, or OPENAI_BASE_URL (--base-url) for another server, " +
			"and name the model with --model; or start Ollama with a model pulled; " +
			"'anamnesis demo' needs neither",
		remedy.ListAgents:      "'anamnesis agent list' shows those there are",
		remedy.ApproveSkills:   "'anamnesis skills approve' shows it and asks",
		remedy.ApproveAgent:    "'anamnesis agent approve %' shows it and asks",
		remedy.ListServers:     "'anamnesis mcp list' shows them",
		remedy.AddServer:       "'anamnesis mcp add' adds one",
		remedy.ApproveServer:   "'anamnesis mcp approve %' shows it and asks",
		remedy.GrantServer:     "it runs in a sandbox; 'anamnesis mcp approve %' grants more: --network, --read, …",
		remedy.SandboxOff:      "--sandbox off runs it all the same",
		remedy.SandboxReadOnly: "give commands a smaller directory, or --sandbox read-only",
		remedy.SaveStore:       "'anamnesis world save --store %' begins one",
		remedy.FindStore: "go to a directory in which a task ran, name a task with --task or a store with --store, " +
			"or begin one with 'anamnesis world save'",
		remedy.AddressAgain:  "give it again with --base-url",
		remedy.JumpAlone:     "jump without --continue",
		remedy.Search:        "remove the file, --search creates it again",
		remedy.ListProposals: "'anamnesis eas reflect' lists them",
	}[k]
}
