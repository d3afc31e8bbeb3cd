module anamnesis/opstream/counterparts

go 1.26.0

require (
	anamnesis v0.0.0
	github.com/hanwen/go-fuse/v2 v2.12.1
	golang.org/x/sys v0.49.0
)

replace anamnesis => ../..
