// Package worldstate keeps a directory tree as git commits and brings it back.
//
// A World is one directory and one store. The store is a bare git repository
// outside the directory: plain git can log, diff and check it. The user's own
// repository is read, for what it ignores, and never written. No git binary,
// identity or configuration is needed. The package knows nothing of agents.
//
// # Snapshots
//
// Save reads the tree (a stat cache spares files that have not changed), and
// writes what the store lacks as one pack with one sync. Bytes are stored as
// they are: no attributes, filters or line endings apply, links are stored as
// links. What a git tree cannot hold is in an entry of the tree called
// .anamnesis-manifest, which is written only when it is needed: permissions
// other than the usual ones, empty directories, and names git forbids. The
// tree's id is therefore the world's id.
//
// Where the user has a git repository, the first save takes from its index which blob
// each file is, reads only what git itself would read, and copies the blobs from there as
// they are; see usergit/seed.go.
//
// What git ignores is left out, unless the user's index tracks it: by .gitignore files,
// those above the world included, and info/exclude, not by the user's global excludes; in
// a repository inside, its own index and info/exclude count. So are .git and .anamnesis
// at every depth, the store, and Options.Exclude. The rules are frozen into the snapshot:
// the files are in the tree, the rest is in the commit message. Of an ignored directory
// nothing is held, its mode included, unless the index has files of it.
//
// FIFOs, sockets and devices are listed. A path makes the snapshot incomplete, and is left
// as it is by every restore to or from it, if it cannot be read, is nested more deeply
// than MaxDepth directories or MaxPathBytes, or is a file larger than
// Options.FileLimitBytes. Holes come back as holes where the file system has them; blocks
// of zeros become holes. Owners, time stamps, setuid bits, extended attributes and hard
// links are not kept.
//
// # Going back
//
// Plan is a dry run; Restore takes only a plan, and refuses a stale one. A path
// is deleted only if it was ignored at neither end, could be read at both, and
// a durable snapshot holds its present bytes; otherwise it stays, and is listed
// in Keep. Unchanged files are not touched.
//
// A change since PlanOptions.Base counts as a user's edit and is kept,
// unless OverwriteEdits. The default base is the snapshot the world was last
// known at (Last): a save sets it, and so does a restore. This makes both uses
// come out right:
//
//   - A jump calls Save, then Plan, then Restore. The save has made the
//     present the base, so what the agent did before it is reverted, and what
//     a user changes after it is kept.
//   - A user at the command line (RestoreTo) has not said that the present
//     is to be given up: the base is the snapshot before, the present is saved
//     all the same, and edits since then stay.
//
// After a restore the world is known at the target. After a restore of some
// paths it is known at the base with these paths changed.
//
// # Looking
//
// Log, Describe, List, Stat and Content read snapshots; Diff compares two,
// Renames finds what only moved, Patch prints it. Fork makes a new directory of
// a snapshot. None of them looks at the world's own directory.
//
// # Names in JSON
//
// Names are bytes, and JSON text is UTF-8. A name that is not UTF-8 is in JSON
// twice: as text, with U+FFFD for each byte that is none, and exactly, in base64,
// under the same key with _bytes appended: "path_bytes". Beside a list of names
// that is an object from the place in the list, counted from 0, to the bytes:
// "write_bytes":{"3":"/w=="}. Where all names are UTF-8 there are no such keys.
//
// # Crashes
//
// Both ends are durable and were read back before the first byte moves, and the
// intent is in a journal, which is removed when all that was written is
// durable. A file is written in place, or beside and renamed over where a
// half-written one could do harm (executable, large, hard-linked). After a
// kill at any moment, Recover finishes the restore or, if it cannot, rolls it
// back; it knows a half-written file by its bytes, all of which are one end's
// or the other's, and leaves what a user has written since. Where the directory
// was removed since, it drops the restore: what is gone as a whole was edited
// nowhere, and the next plan brings all of it back. Until then Save,
// Plan and Restore return ErrUnfinished. A failure the process survives, such
// as a full disk, is rolled back at once. Where Recover can neither finish nor
// roll back, its error names the command that gives the restore up; see
// World.Abandon.
//
// Restore returns when the world is as planned and was checked again;
// making that durable and removing the journal continue under the lock. Whatever
// is asked next waits for it; Settle and Close do, and say whether it was done.
// A process that ends before leaves the journal to Recover.
//
// # Watching
//
// With Options.Watch a World that stays open learns from the kernel which names
// have changed (inotify, on Linux and local file systems; anywhere else, and
// where directories or the system's watches are too many, it scans). Events are
// read when a save or a plan begins, so nothing that happened before is missed:
// a queue that ran over, an unmount or a replaced root lead to a scan. After 200
// saves, or ten minutes, a save scans everything and compares; a change that no
// event reported is noted in its Snapshot, and ends the watching. Each directory
// takes about a KiB of the kernel's memory, for at most 65,536 of them.
//
// # The store's size
//
// A save adds one pack, with a .keep beside it that holds the word anamnesis. By it
// git's own gc leaves the pack alone, and consolidations and collections know it for
// ours; they change no other pack and no loose object. Past fifty, small packs of
// ours are put together as they are.
// GC makes one pack of all that is needed of our packs, older versions of a path as
// differences to newer ones; measured, that is about what `git gc` makes of the
// same history. What git has derived from the packs goes with any of them:
// multi-pack-index, commit-graph. Options.SizeLimitBytes refuses a save that would
// pass it (*LimitError) and never removes anything; GCOptions.MaxBytes removes the
// snapshots of tasks that no longer exist, the oldest first.
//
// A ref names a snapshot from which no later one was saved. Saving from it moves the
// ref; what is left behind by a jump keeps its own. Each snapshot carries the name it
// was saved as in a trailer, Anamnesis-Step: TASK@STEP.
//
// The file anamnesis/format in the store says "3". An older store is read as it is. In
// one of format 2 the first update of refs moves them from files of their own, and from
// a log, to packed-refs; programs that know only format 2 refuse the store afterwards.
// In one without the file our packs have no .keep: who first takes the store's lock adds
// it to those that may be written, since git makes its own read-only.
//
// # Blind spots
//
// A file changed on a server with a clock behind ours, within the granularity
// of its time stamps, can be missed by a save until its next change. So can a
// write through a shared memory map to a page that was written through it
// before: the file's time stamps do not move until the page was written back.
// A restore reads each file it would overwrite or remove, and keeps what no
// snapshot holds. Between the last look at a path and the rename over it, or its
// removal, lie some microseconds in which a change is lost. A link put there in
// that time is not followed: modes and owners change through a descriptor. What a
// save finds in a pack that git made it does not write again,
// and a `git gc --prune=now` in the moment before the ref is set may take it away. The
// next save has no parent then (Snapshot.ParentLost).
//
// A watching World does not learn of a write through a shared memory map before
// the file is closed, and of a write under a hard link that was made after the
// file was last looked at and lies outside, in an ignored directory, or is gone
// again. The next check finds them. Files known to have several names, and file
// systems mounted inside, are looked at every time; the list of mounts is asked
// at each look, restores included, and where a file system came or went inside,
// everything is looked at. A restore reads every file again before it touches it,
// watching or not.
package worldstate
