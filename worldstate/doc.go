// Package worldstate saves a directory tree as git commits and restores it.
//
// A World is one directory and one store. The store is a bare git repository outside the
// directory: plain git can log, diff and check it. The user's own repository is read for its
// ignore rules, and never written. No git binary, identity or configuration is needed. The
// package knows nothing of agents.
//
// # Snapshots
//
// Save reads the tree (a stat cache avoids reading unchanged files) and writes the objects that
// the store lacks as one pack with one sync. Bytes are stored as they are: no attributes,
// filters or line endings apply, and links are stored as links. An entry of the tree called
// .anamnesis-manifest records what a git tree cannot: unusual permissions, empty directories,
// and names that git forbids. It is written only if it is needed. So the tree's id is the
// world's id.
//
// A snapshot leaves out what git ignores, unless the user's index tracks it or its name is one of
// Options.Secrets. The rules are
// those of .gitignore files, including those above the world, and of info/exclude, not the
// user's global excludes; in a nested repository, its own index and info/exclude count. A
// snapshot also leaves out .git and .anamnesis at every depth, the store, and Options.Exclude.
// The rules are frozen into the snapshot: rule files are in the tree, the rest is in the commit
// message. Of an ignored directory nothing is recorded, not even its mode, unless the index has
// files in it.
//
// FIFOs, sockets and devices are only listed. A path makes the snapshot incomplete, and every
// restore to or from it leaves the path as it is, if it cannot be read, is nested more deeply
// than MaxDepth directories or MaxPathBytes, or is a file larger than Options.FileLimitBytes.
// In a file written anew blocks of zeros become holes if the file system has them. Owners, time
// stamps, setuid bits, extended attributes and hard links are not restored; see
// Result.LostAttributes.
//
// # Going back
//
// Plan is a dry run; Restore takes only a plan, and refuses a stale one. A path is deleted only
// if it was ignored at neither end, could be read at both, and a durable snapshot holds its
// present bytes; otherwise it is kept and listed in Keep. Unchanged files are not touched.
//
// A change since PlanOptions.Base counts as a user's edit and is kept, unless OverwriteEdits is
// set. The default base is the snapshot that the world was last known at (Commit.Current),
// which saves and restores set. This suits both uses:
//
//   - A jump calls Save, then Plan, then Restore. The save has made the present the
//     base, so that the agent's earlier changes are reverted, and a user's later ones
//     are kept.
//   - A user at the command line (RestoreTo) has not agreed to lose the present: the
//     base is the previous snapshot. The present is saved, and edits since the base
//     are kept.
//
// After a restore the world is known at the target. After a restore of some paths it is known
// at the base with these paths changed.
//
// # Names in JSON
//
// Names are bytes, and JSON text is UTF-8. A name that is not UTF-8 occurs twice: as text, with
// U+FFFD for each invalid byte, and exactly, in base64, under the same key with _bytes
// appended: "path_bytes". Beside a list of names, that is an object from the index in the list,
// counted from 0, to the bytes: "write_bytes":{"3":"/w=="}. If all names are UTF-8, there are
// no such keys.
//
// # Crashes
//
// Before the first change both ends are durable and were read back, and the intent is in a
// journal, which is removed once everything written is durable. A file is overwritten in place,
// or replaced by rename if a half-written one could do harm (executable, large, hard-linked).
// After a kill at any moment, Recover completes the restore or, if it cannot, rolls it back. It
// recognises a half-written file, since each of its bytes is that of one end or the other, and
// keeps what a user has written since. If the directory was removed since, Recover drops the
// restore: nothing in it counts as an edit, and the next plan restores all of it. Until then
// Save, Plan and Restore return ErrUnfinished. A failure that the process survives, such as a
// full disk, is rolled back at once. If Recover can neither complete nor roll back, its error
// names the command that gives the restore up; see World.Abandon.
//
// # The store's size
//
// A save adds one pack, with a .keep beside it that holds the word anamnesis. Because of it
// git's own gc leaves the pack alone, and consolidations and collections recognise it as ours;
// they change no other pack and no loose object. Above fifty packs, the small ones that the
// program wrote are merged as they are. GC makes one pack of all needed objects in our packs, with older versions
// of a path as deltas to newer ones; measured, its size is about what `git gc` makes of the
// same history. Removing a pack also removes what git derived from it: multi-pack-index,
// commit-graph. Options.SizeLimitBytes refuses a save that would exceed it (*LimitError) and
// never removes anything; GCOptions.MaxBytes removes the snapshots of tasks that no longer
// exist, the oldest first.
//
// A ref names a snapshot from which no later one was saved. Saving from it moves the ref; a
// branch that a jump abandons keeps its own. Each snapshot records the name it was saved as in
// a trailer, Anamnesis-Step: TASK@STEP.
//
// The file anamnesis/format in the store contains "3". An older store is read as it is. In one
// of format 2 the first update of refs moves them from files of their own, and from a log, to
// packed-refs; programs that know only format 2 refuse the store afterwards. In one without the
// file our packs have no .keep, so that they are read and otherwise count as the user's.
//
// # Blind spots
//
// If a file changes on a server whose clock is behind, within the granularity of its time
// stamps, a save can miss the change until the next one. A save can also miss a write through a
// shared memory map to a page that was already written through it: the time stamps do not
// change until the kernel writes the page back. A restore reads each file that it would
// overwrite or remove, and keeps content that no snapshot holds. Between the last look at a
// path and its rename or removal are some microseconds in which a change is lost. A link
// created in that time is not followed: modes and owners change through a descriptor. A save
// does not write objects again that it finds in a pack of git's, and a `git gc --prune=now`
// just before the ref is set may remove them. The next save then has no parent
// (Snapshot.ParentLost).
package worldstate
