// Package dream finds cards of different tasks that say one thing about different places, and lets a
// model word one general card for them. A proposal is a draft that names its instances. It replaces no
// card, and no task is shown it, until a user approves it.
package dream
