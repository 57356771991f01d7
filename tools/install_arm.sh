#!/usr/bin/env bash
# Fill .arm (or $LRTFLITE_ARM) with what runs 64-bit ARM Python on this computer, for `make test-arm`:
# qemu's user-mode emulator, Debian's Python 3.11 for arm64, and the aarch64 wheels of both runtimes.
# Packages come from the apt sources and the pip index that this computer is set up with. They are
# unpacked, not installed, so no root is needed and nothing outside the folder changes.
set -euo pipefail
cd "$(dirname "$0")/.."

# The older runtime has no wheels for later Pythons.
PYTHON_ARM=3.11
WHEELS=(ai-edge-litert==2.3.0 tflite-runtime==2.14.0 numpy==1.26.4 'click>=8.1')
# tflite-runtime's wheel asks for glibc 2.34; Debian 12 has 2.36.
PLATFORMS=()
for glibc in manylinux_2_34 manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014; do
    PLATFORMS+=(--platform "${glibc}_aarch64")
done

folder=$(realpath -m "${LRTFLITE_ARM:-.arm}")
# Another version of this script installs again.
version=$(sha256sum <tools/install_arm.sh)
if [[ -z ${PYTHON:-} ]]; then
    PYTHON=python3
    [[ ! -x .venv/bin/python ]] || PYTHON=.venv/bin/python
fi

fail() {
    echo "install_arm.sh: $1" >&2
    exit 1
}

# What a command said is shown only if it failed: the first line that names an error, or the last.
quietly() {
    local why=$1 said
    shift
    if ! said=$("$@" 2>&1); then
        fail "$why: $(grep -m 1 -E '^(E|ERROR):|Error' <<<"$said" || tail -n 1 <<<"$said")"
    fi
}

apt_arm() {
    apt-get -qq --yes \
        -o APT::Architecture=arm64 \
        -o APT::Architectures::=arm64 \
        -o APT::Architectures::="$(dpkg --print-architecture)" \
        -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::Languages=none \
        -o Debug::NoLocking=true \
        -o Dir::Cache="$new/apt" \
        -o Dir::State::lists="$new/apt/lists" \
        -o Dir::State::status="$new/apt/status" \
        "$@"
}

if [[ -f $folder/installed && $(<"$folder/installed") == "$version" ]]; then
    exit 0
fi
if [[ -e $folder && ! -f $folder/installed ]]; then
    fail "Expected no folder $folder, or one that this script made; delete it, or set LRTFLITE_ARM"
fi
for tool in apt-get dpkg-deb "$PYTHON"; do
    command -v "$tool" >/dev/null || fail "Expected the command $tool; this needs Debian 12 or alike"
done

mkdir -p "$(dirname "$folder")"
# INVARIANT: the folder appears complete or not at all.
new=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$new"' EXIT

echo "install_arm.sh: 64-bit ARM Python $PYTHON_ARM and its wheels, into $folder" >&2
mkdir -p "$new/apt/lists/partial" "$new/apt/archives/partial" "$new/root/proc"
# With no package counted as installed, apt names everything that Python needs, libc included.
touch "$new/apt/status"
quietly "cannot read the apt sources" apt_arm update
quietly "apt has no Python $PYTHON_ARM for arm64 or no qemu-user-static" \
    apt_arm install --no-install-recommends --download-only \
    "python$PYTHON_ARM" libstdc++6 "qemu-user-static:$(dpkg --print-architecture)"
for package in "$new"/apt/archives/*_{arm64,all}.deb; do
    quietly "cannot unpack" dpkg-deb --extract "$package" "$new/root"
done
# Of qemu's forty programs, one.
dpkg-deb --fsys-tarfile "$new"/apt/archives/qemu-user-static_*.deb |
    tar --extract --to-stdout ./usr/bin/qemu-aarch64-static >"$new/qemu-aarch64" ||
    fail "qemu-user-static has no qemu-aarch64-static"
chmod +x "$new/qemu-aarch64"
rm -rf "$new/apt"

# LiteRT's CPU detection crashes on an x86 /proc/cpuinfo, which qemu 7.2 would pass through.
for core in 0 1; do
    printf 'processor\t: %s\n' "$core"
    printf 'Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid\n'
    printf 'CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n'
    printf 'CPU part\t: 0xd08\nCPU revision\t: 3\n\n'
done >"$new/root/proc/cpuinfo"

quietly "pip cannot fetch the aarch64 wheels" \
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
    --python-version "$PYTHON_ARM" --implementation cp "${PLATFORMS[@]}" \
    --target "$new/packages" "${WHEELS[@]}"

# One command that starts the emulated Python. It stands next to the real one and passes its own name
# on (-0), so that sys.executable is this command and a child process is emulated too.
# -L: absolute paths are looked up in that folder first, those of shared libraries too.
cat >"$new/root/usr/bin/emulated-python" <<END
#!/bin/sh
root=\$(dirname "\$0")/../..
exec "\$root/../qemu-aarch64" -0 "\$0" -L "\$root" -cpu cortex-a72 "\$root/usr/bin/python$PYTHON_ARM" "\$@"
END
chmod +x "$new/root/usr/bin/emulated-python"

PYTHONPATH=$new/packages quietly "the emulated Python does not run" \
    "$new/root/usr/bin/emulated-python" -c \
    'import ai_edge_litert.interpreter, tflite_runtime.interpreter'

echo "$version" >"$new/installed"
chmod 755 "$new"
rm -rf "$folder"
mv "$new" "$folder"
