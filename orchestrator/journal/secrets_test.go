package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

func TestVault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.jsonl")
	open := func() *Vault {
		t.Helper()
		v, err := OpenVault(path)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := open()
	key := v.Key
	const m, two, bin, loose = "[redacted:a:000001]", "[redacted:a:000002]", "[redacted:a:000003]",
		"[redacted:a:000004]"
	add := func(marker, file, secret string) {
		t.Helper()
		if err := v.Add(marker, file, secret); err != nil {
			t.Fatal(err)
		}
	}
	add(m, "a.ini", "one\n<&>")
	add(m, "b.ini", "one\\n")
	add(two, "a.ini", "x")
	add(two, "a.ini", "y")
	add(bin, "a.ini", "\xff\x00")
	add(loose, "", "never kept")
	before := v.size
	add(m, "a.ini", "one\n<&>")
	if v.size != before {
		t.Error("the same entry was written twice")
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	// A crash leaves half a line.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(`{"marker":"[reda`)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	v = open()
	add("[redacted:a:000005]", "c", "later")
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = open()
	defer v.Close()
	if !bytes.Equal(key, v.Key) {
		t.Error("another key")
	}
	for _, tt := range []struct{ marker, file, want, err string }{
		{m, "a.ini", "one\n<&>", ""}, {m, "b.ini", "one\\n", ""}, {bin, "a.ini", "\xff\x00", ""},
		{"[redacted:a:000005]", "c", "later", ""},
		{m, "c.ini", "", "only there"}, {two, "a.ini", "", "several values"}, {loose, "a.ini", "", "a user must"},
		{"[redacted:a:ffffff]", "a.ini", "", "not known in this task"},
	} {
		got, err := v.Lookup(tt.marker, tt.file)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s in %s: %q, %v", tt.marker, tt.file, got, err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), "never kept") {
		t.Errorf("a secret from elsewhere is kept: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestDamagedVaultIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vault.jsonl")
	for _, text := range []string{"{}\n", "no\n", `{"v":1,"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}` + "\nno\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenVault(path); err == nil {
			t.Errorf("opened %q", text)
		}
	}
}

// TestKeptFields lists the texts in which no secret is looked for: what this
// program made up itself, and what is refused at a task's start. A field of the
// same name that a model, a tool or a user fills does not belong there.
func TestKeptFields(t *testing.T) {
	want := strings.Fields(`TaskOpened.task TaskOpened.dir TaskOpened.store TaskOpened.model TaskOpened.eas_from TaskOpened.encoding
		TaskOpened.approval TaskOpened.kb TaskOpened.program TaskResumed.task TaskResumed.dir TaskResumed.store TaskResumed.model TaskResumed.eas_from TaskResumed.program TaskResumed.approval UserSaid.source
		ModeSet.approval ModelAsked.hash ModelReplied.finish ModelReplied.model ApprovalDecided.decision HookRan.decision ApprovalDecided.by ToolStarted.boot_id JobStarted.boot_id Part.kind
		Part.base64 WorldSaved.commit WorldSaved.tree WorldChanged.by WorldChanged.from_commit WorldChanged.to_commit WorldChanged.tree WorldChanged.task WorldRestored.tree JumpDone.base JumpDone.tree WorldRestored.by WorldRestored.base RestoreIntended.by RestoreIntended.from_commit RestoreIntended.to_commit JumpRequested.by PassBegun.trigger PassDone.trigger PassDone.writer
		JumpIntended.by JumpIntended.from_commit JumpIntended.base JumpIntended.to_commit ReflectAsked.model QuestionAnswered.by QuestionAsked.task ReflectAsked.by ReflectFailed.by StrategyGiven.by
		SubagentStarted.task SubagentStarted.dir SubagentEnded.task Parent.task
		Agent.hash Agent.model Agent.approval SourceFile.hash GitAt.commit GitSeen.bundle QuestionAsked.task QuestionAnswered.by ReflectAsked.by ReflectFailed.by StrategyGiven.by`)
	kept, got, seen := strings.Fields(keptNames), map[string]bool{}, map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if slices.Contains(kept, name) {
				got[typ.Name()+"."+name] = true
			}
			look(f.Type)
		}
	}
	for _, b := range op.Bodies() {
		look(reflect.TypeOf(b))
	}
	for name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s is recorded as it comes", name)
		}
	}
	for _, name := range want {
		if !got[name] {
			t.Errorf("%s is redacted or gone", name)
		}
	}
}
