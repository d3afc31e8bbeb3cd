#!/bin/sh
# Installs a released program of Anamnesis for this user, after its checksum was compared:
#   curl -fsSL URL/install.sh | sh
# ANAMNESIS_URL names the folder with the archives and SHA256SUMS that .ci/release writes, ANAMNESIS_BIN where the
# program goes (default: ~/.local/bin).
set -eu

fail() {
	echo "install.sh: $1" >&2
	exit 1
}

fetch() { # address, file
	if command -v curl >/dev/null; then
		curl -fsSL --retry 2 -o "$2" "$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1"
	else
		fail "neither curl nor wget is installed: install one of them"
	fi
}

sum() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

main() { # a script that was cut off in the middle does nothing
	url="${ANAMNESIS_URL:-@URL@}" bin="${ANAMNESIS_BIN:-$HOME/.local/bin}"
	case "$url" in @*) fail "set ANAMNESIS_URL to the address of the archives" ;; esac
	url="${url%/}"
	os="$(uname -s)" arch="$(uname -m)"
	case "$os" in Linux) system=linux ;; Darwin) system=darwin ;; *) system= ;; esac
	case "$arch" in x86_64 | amd64) system="$system-amd64" ;; aarch64 | arm64) system="$system-arm64" ;; *) system= ;; esac
	case "$system" in linux-* | darwin-*) ;; *)
		fail "there is no program for $os on $arch: with Go, 'go install ./cmd/anamnesis' in a clone builds one for Linux and macOS" ;;
	esac
	tmp="$(mktemp -d)" new=
	trap 'rm -rf "$tmp" ${new:+"$new"}' EXIT
	trap 'exit 1' INT TERM HUP
	fetch "$url/SHA256SUMS" "$tmp/SHA256SUMS" || fail "cannot read $url/SHA256SUMS: nothing was installed"
	line="$(grep "  anamnesis-[^/ ]*-$system\.tar\.gz\$" "$tmp/SHA256SUMS" | head -n 1)" || true
	[ -n "$line" ] || fail "$url has no program for $system: nothing was installed"
	want="${line%% *}" name="${line##* }"
	fetch "$url/$name" "$tmp/$name" || fail "$url/$name cannot be read whole: nothing was installed; try again"
	[ "$(sum "$tmp/$name")" = "$want" ] ||
		fail "$name is not the file that SHA256SUMS names: it was cut or changed on the way, and nothing was installed; try again, and if that repeats do not use it"
	tar -xzf "$tmp/$name" -C "$tmp" || fail "$name cannot be unpacked: nothing was installed"
	mkdir -p "$bin" 2>/dev/null && new="$(mktemp "$bin/.anamnesis.XXXXXX" 2>/dev/null)" ||
		fail "cannot write to $bin: set ANAMNESIS_BIN to a folder of yours"
	cp "$tmp/${name%.tar.gz}/anamnesis" "$new" && chmod 755 "$new" && mv -f "$new" "$bin/anamnesis" ||
		fail "cannot write $bin/anamnesis: what was there stays"
	new=
	echo "installed $("$bin/anamnesis" version | head -n 1) as $bin/anamnesis"
	case ":$PATH:" in *":$bin:"*) next=anamnesis ;; *)
		next="$bin/anamnesis"
		echo "$bin is not in your PATH; add to your shell's profile: export PATH=\"$bin:\$PATH\"" ;;
	esac
	echo "next: '$next demo' shows what it does, without a key (it needs Go); or '$next' in a project"
}

main
