#!/usr/bin/env bash
# Install what `make test-page` needs besides .venv: Chromium, ffmpeg, a font and mosquitto by apt, and
# Playwright (which drives the installed Chromium and downloads no browser) by pip. Says what is missing
# where apt is not the way, or the user may not install.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -z ${PYTHON:-} ]]; then
    PYTHON=python3
    [[ ! -x .venv/bin/python ]] || PYTHON=.venv/bin/python
fi
# Commands and the Debian packages that have them.
declare -A PACKAGES=([chromium]=chromium [ffmpeg]=ffmpeg [mosquitto]=mosquitto [fc-list]=fontconfig)
# Debian puts servers where only root looks.
PATH=$PATH:/usr/sbin

wanted() {
    local name
    for name in "${!PACKAGES[@]}"; do
        # Another browser may take Chromium's place, as in the tests.
        [[ $name != chromium || ! -x ${LRTFLITE_CHROMIUM:-} ]] || continue
        command -v "$name" >/dev/null || echo "${PACKAGES[$name]}"
    done
    # Without any font a page has no text, and no text has a size.
    [[ $(fc-list 2>/dev/null) ]] || echo fonts-dejavu-core
}

mapfile -t packages < <(wanted)
if ((${#packages[@]})); then
    as_root=()
    [[ $(id -u) == 0 ]] || as_root=(sudo --non-interactive)
    if command -v apt-get >/dev/null && { [[ $(id -u) == 0 ]] || sudo --non-interactive true 2>/dev/null; }; then
        echo "install_page.sh: apt-get install ${packages[*]}" >&2
        "${as_root[@]}" apt-get -qq update
        DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -qq --yes \
            install --no-install-recommends "${packages[@]}" >/dev/null
        mapfile -t packages < <(wanted)
    fi
fi
if ! "$PYTHON" -c 'import playwright' 2>/dev/null; then
    echo "install_page.sh: pip install playwright" >&2
    "$PYTHON" -m pip install --quiet --disable-pip-version-check playwright || packages+=("playwright (pip)")
fi
if ((${#packages[@]})); then
    echo "install_page.sh: missing: ${packages[*]}; install them by hand" >&2
    exit 1
fi
